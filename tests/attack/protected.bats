#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# B16: files that tools of this machine run by themselves cannot be changed through a folder that
# may be written; what cannot be prevented is in the receipt.

load attack

setup() {
    common_setup
    mkdir shared
    a_repository shared/.git
}

a_repository() {
    mkdir -p "$1/hooks" "$1/info" "$1/objects" "$1/refs"
    echo 'ref: refs/heads/main' >"$1/HEAD"
    printf '[core]\n\tbare = false\n' >"$1/config"
    echo sample >"$1/hooks/pre-commit.sample"
}

# attempts CMD…: each in a sandbox of its own that may write; the folder must stay as it is.
unchanged_by() {
    local before
    before=$(tree)
    run box --workspace "$WORK/shared:rw" -- sh -c "$1"
    [ "$(tree)" = "$before" ] || {
        echo "changed by: $1" >&2
        diff <(echo "$before") <(tree) >&2
        return 1
    }
}

tree() {
    (cd shared && find . -printf '%p %y %m %l ' -type f -exec sha256sum {} + && find . -type d -printf '%p\n' | sort)
}

paths() {
    receipts 'last | .outcome.protected_changes | map(.path) | join(" ")'
}

@test "control: the same folder can be written, git's own files included" {
    run -0 box --workspace "$WORK/shared:rw" -- sh -c 'echo x >file; echo o >.git/objects/o; mv .git/HEAD .git/x; mv .git/x .git/HEAD'
    [ -e shared/file ]
    [ -e shared/.git/objects/o ]
}

@test "hooks, config and attributes of git cannot be changed, by any way" {
    for attempt in 'echo x >.git/hooks/pre-commit' 'echo x >>.git/config' 'echo x >.git/info/attributes' \
        'rm .git/config' 'rm -r .git/hooks' 'mv .git/config .git/c' 'mv .git/hooks .git/h' \
        'mv .git moved' 'rm -r .git/hooks/pre-commit.sample' 'chmod 777 .git/hooks/pre-commit.sample' \
        'ln .git/hooks/pre-commit.sample h' 'truncate -s 0 .git/config' 'touch -d 2001-01-01 .git/config' \
        'ln -sf /tmp/x .git/config' 'mkdir e && mv -T e .git/hooks' 'echo y >c && mv c .git/config'; do
        unchanged_by "$attempt" || [ "$attempt" = 'mkdir e && mv -T e .git/hooks' ] ||
            [ "$attempt" = 'echo y >c && mv c .git/config' ]
        [ "$(cat shared/.git/hooks/pre-commit.sample)" = sample ]
        [ "$(head -n 1 shared/.git/config)" = '[core]' ]
        [ ! -e shared/.git/hooks/pre-commit ]
    done
}

@test "the folder above them cannot be moved away to make room for another" {
    run box --workspace "$WORK/shared:rw" -- sh -c 'mv .git x; mkdir -p .git/hooks; echo evil >.git/hooks/pre-commit'
    says "busy"
    [ ! -e shared/.git/hooks/pre-commit ]
    [ ! -e shared/x ]
    # exchanging two names is moving, too
    run box --workspace "$WORK/shared:rw" -- /mnt/attack/swap /workspace/.git /workspace/other
    [ -e shared/.git/HEAD ]
}

@test "control: without protection all of that works" {
    run -0 box --workspace "$WORK/shared:rw" --allow-protected -- \
        sh -c 'mv .git x; mkdir -p .git/hooks; echo evil >.git/hooks/pre-commit; echo y >>x/config'
    [ -e shared/.git/hooks/pre-commit ]
    [[ $(paths) == *"/workspace/.git/hooks/pre-commit"* ]]
}

@test "the same for repositories in it, submodules, bare ones, and files that name a git folder" {
    a_repository shared/lib/.git
    a_repository shared/.git/modules/sub
    mkdir shared/sub
    echo 'gitdir: ../.git/modules/sub' >shared/sub/.git
    a_repository shared/data/bare
    mkdir -p shared/.git/worktrees/w
    echo ../.. >shared/.git/worktrees/w/commondir
    echo 'ref: x' >shared/.git/worktrees/w/HEAD
    for attempt in 'echo x >lib/.git/hooks/a' 'echo x >>lib/.git/config' 'mv lib/.git lib/x' \
        'echo x >.git/modules/sub/hooks/a' 'echo x >>.git/modules/sub/config' 'mv .git/modules .git/m' \
        'echo gitdir: /x >sub/.git' 'rm sub/.git' 'mv sub/.git x' \
        'echo x >data/bare/hooks/a' 'echo x >>data/bare/config' 'mv data/bare data/b' \
        'echo x >.git/worktrees/w/commondir' 'mv .git/worktrees .git/w'; do
        unchanged_by "$attempt"
    done
    # control
    run -0 box --workspace "$WORK/shared:rw" -- sh -c 'echo x >lib/f; echo x >sub/f; echo o >.git/modules/sub/objects/o'
}

@test "hooks and config that git's config names elsewhere in the folder" {
    mkdir -p shared/tools/hooks shared/own
    echo hook >shared/tools/hooks/pre-commit
    echo '[alias]' >shared/own/config
    printf '[Core]\n\thooksPath = "tools/hooks" ; here\n[include]\n\tpath = ../own/config\n' >>shared/.git/config
    unchanged_by 'echo x >tools/hooks/pre-commit'
    unchanged_by 'echo x >tools/hooks/post-merge'
    unchanged_by 'echo x >>own/config'
    unchanged_by 'mv tools/hooks tools/h'
    # Renaming what it lies in is not prevented, but told.
    run -0 box --workspace "$WORK/shared:rw" -- sh -c 'mv tools t; mkdir -p tools/hooks; echo evil >tools/hooks/pre-commit'
    [[ $(paths) == *"/workspace/tools/hooks/pre-commit"* ]]
}

@test "files of shells, editors, agents, direnv and package managers" {
    for name in .envrc .mcp.json .bashrc .zshrc .profile .npmrc .yarnrc.yml .pnpmfile.cjs .gitmodules \
        .pre-commit-config.yaml .devcontainer.json; do
        echo a >"shared/$name"
    done
    for name in .vscode .idea .husky .githooks .devcontainer .cursor .claude .cargo .yarn/releases; do
        mkdir -p "shared/$name"
    done
    echo a | tee shared/.vscode/settings.json shared/.cursor/mcp.json shared/.claude/settings.json \
        shared/.cargo/config.toml >/dev/null
    for name in .envrc .mcp.json .bashrc .zshrc .profile .npmrc .yarnrc.yml .pnpmfile.cjs .gitmodules \
        .pre-commit-config.yaml .devcontainer.json .vscode/settings.json .vscode/tasks.json \
        .idea/workspace.xml .husky/pre-commit .githooks/pre-commit .devcontainer/devcontainer.json \
        .cursor/mcp.json .claude/settings.json .claude/settings.local.json .cargo/config.toml \
        .yarn/releases/yarn.cjs; do
        unchanged_by "echo x >$name"
    done
    for name in .envrc .vscode .husky .claude; do
        unchanged_by "mv $name x"
        unchanged_by "rm -r $name"
    done
    # control: what nobody runs unasked is not protected
    run -0 box --workspace "$WORK/shared:rw" -- sh -c 'echo all: >Makefile; echo x >run.sh; echo x >.cargo/other; echo x >.env'
}

@test "in the folders of a dependency only repositories are protected" {
    mkdir -p shared/node_modules/p/.vscode
    a_repository shared/node_modules/p/.git
    unchanged_by 'echo x >node_modules/p/.git/hooks/a'
    run -0 box --workspace "$WORK/shared:rw" -- sh -c 'echo x >node_modules/p/.npmrc; echo x >node_modules/p/.vscode/settings.json'
}

@test "links among them: what they lead to is protected, their exchange is told, none leads out" {
    mkdir shared/real outside
    rm -r shared/.git/hooks
    ln -s ../real shared/.git/hooks
    ln -s "$WORK/outside" shared/.husky
    ln -s "$WORK/outside/rc" shared/.bashrc
    unchanged_by 'echo x >.git/hooks/pre-commit'
    unchanged_by 'echo x >real/pre-commit'
    run -0 box --workspace "$WORK/shared:rw" -- sh -c 'rm .git/hooks; mkdir .git/hooks; echo evil >.git/hooks/pre-commit; rm .bashrc; echo x >.bashrc'
    [[ $(paths) == "/workspace/.bashrc /workspace/.git/hooks /workspace/.git/hooks/pre-commit" ]]
    [ -z "$(ls -A outside)" ]
}

@test "a hard link to a hook that was there before is no way round the receipt" {
    ln shared/.git/hooks/pre-commit.sample shared/other
    run -0 box --workspace "$WORK/shared:rw" -- sh -c 'echo evil >other'
    [[ $(paths) == "/workspace/.git/hooks/pre-commit.sample" ]]
}

@test "what redirects git from inside its folder is told" {
    run -0 box --workspace "$WORK/shared:rw" -- sh -c 'echo /workspace/evil >.git/commondir'
    [[ $(paths) == "/workspace/.git/commondir" ]]
}

@test "a source that is such a thing itself is not handed out for writing" {
    echo a >shared/.envrc
    for source in .git/hooks .git/config .git .envrc; do
        denied MOUNT_FORBIDDEN "not handed out for writing" --mount "$WORK/shared/$source:/mnt/x:rw" -- true
        run -0 box --mount "$WORK/shared/$source:/mnt/x:ro" -- true
    done
    # a bare repository by another name is handed out, its hooks are not
    a_repository bare
    run -0 box --mount "$WORK/bare:/mnt/x:rw" -- sh -c 'echo x >/mnt/x/objects/o; ! echo x >/mnt/x/hooks/a'
    # and so is a checkout that an agent keeps in its own folder
    mkdir -p shared/.claude/worktrees/w
    run -0 box --workspace "$WORK/shared/.claude/worktrees/w:rw" -- touch x
}

@test "the same for every folder that may be written, not only the workspace" {
    run box --mount "$WORK/shared:/srv/a:rw" -- sh -c 'echo x >/srv/a/.git/hooks/pre-commit'
    says "Read-only file system"
    run -0 box --mount "$WORK/shared:/srv/a:rw" -- sh -c 'echo x >/srv/a/.envrc'
    [ "$(paths)" = /srv/a/.envrc ]
}

@test "a folder on the way exchanged for a link is never followed" {
    mkdir -p shared/sub outside
    a_repository shared/sub/.git
    a_repository outside/.git
    ln -s "$WORK/outside" shared/link
    "$ATTACK/swap" "$WORK/shared/sub" "$WORK/shared/link" 3>&- >/dev/null &
    swapper=$!
    won=0
    for _ in $(seq 40); do
        run box --workspace "$WORK/shared:rw" -- sh -c 'echo x >sub/.git/hooks/pre-commit; echo x >link/.git/hooks/pre-commit'
        [ "$status" -eq 77 ] || won=$((won + 1))
        [ ! -e outside/.git/hooks/pre-commit ]
    done
    kill "$swapper"
    wait "$swapper" || true
    [ "$won" -gt 0 ]
}

@test "nothing sets a set-id bit in a workspace" {
    run -0 box --workspace "$WORK/shared:rw" -- /mnt/attack/set-id /workspace
    answers "an ordinary mode" worked
    without "an ordinary mode" "set-user-id by mkdir" "set-group-id by mkdir"
    refuses 'EPERM|ENOSYS'
    [ -z "$(find shared -perm /6000)" ]
}

@test "hostile names, configs and sizes neither stop nor blind the look" {
    printf '[include\n\tpath = ../../../../../../etc\n[core]hooksPath=/etc\n[core]\nhooksPath=..\nhooksPath="\n[include]path=.git/../../..\n' >shared/.git/config
    mkdir -p "shared/$(printf 'a\nb')/.git/hooks" "shared/$(printf '\377')/.git/hooks"
    head -c 2000000 /dev/zero >shared/.envrc
    mkfifo shared/.npmrc
    run -0 timeout 30 "$BRIG" sandbox exec --quiet --workspace "$WORK/shared:rw" -- \
        sh -c 'for d in */; do ! echo x >"$d/.git/hooks/a" || exit 1; done; ! echo x >>.envrc; ! rm .npmrc'
    run -0 timeout 30 "$BRIG" sandbox exec --quiet --workspace "$WORK/shared:rw" -- sh -c 'd=$(printf "\375"); mkdir $d; echo x >$d/.envrc'
    [ "$(receipts 'last | .outcome.protected_changes[0].path_b64 | @base64d | length > 0')" = true ]
}
