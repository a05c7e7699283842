#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# B13, B16 on the way back: what a sandbox made of a mirrored workspace reaches the folder it was
# copied from and nothing else, and nothing of it is run by a tool of this machine.

load attack

setup() {
    common_setup
    mkdir -p p/sub outside
    echo a >p/a
    echo b >p/sub/b
    echo safe >outside/b
    id=$("$BRIG" sandbox create --json --workspace "$WORK/p:mirror" --mount "$ATTACK:/mnt/attack:ro" 2>/dev/null | jq -r .sandbox_id)
}

teardown() {
    [ -z "${swapper:-}" ] || kill "$swapper" 2>/dev/null || true
    "$BRIG" sandbox destroy "$id" 2>/dev/null || true
}

inside() {
    "$BRIG" sandbox exec "$id" --quiet -- sh -c "$1" </dev/null
}

sync_all() {
    run timeout 60 "$BRIG" sandbox sync "$id" --apply --theirs "$@"
}

@test "control: an ordinary change comes back" {
    inside 'echo changed >sub/b'
    sync_all
    status_is 0
    [ "$(cat p/sub/b)" = changed ]
}

@test "a folder exchanged for a link on this machine is not written through" {
    inside 'echo evil >sub/b; echo evil >sub/new'
    rm -r p/sub
    ln -s "$WORK/outside" p/sub
    sync_all
    [ "$status" -ne 0 ]
    [ "$(cat outside/b)" = safe ]
    [ ! -e outside/new ]
}

@test "nor while it is exchanged all the time" {
    ln -s "$WORK/outside" p/link
    "$ATTACK/swap" "$WORK/p/sub" "$WORK/p/link" 3>&- >/dev/null &
    swapper=$!
    for i in $(seq 30); do
        inside "echo evil$i >sub/b; echo evil >sub/new$i"
        sync_all
        [ "$(cat outside/b)" = safe ]
        [ "$(ls outside)" = b ]
    done
}

@test "links made inside lead nowhere, whatever is behind them" {
    inside 'rm -r sub; ln -s ../outside sub; ln -s /etc/passwd a2; rm a; ln -s ../outside/b a'
    sync_all
    [ "$(cat outside/b)" = safe ]
    [ -d p/sub ]
    [ ! -L p/a ]
    # made a folder again, with something in it
    inside 'rm sub; mkdir sub; echo x >sub/b'
    sync_all
    [ "$(cat outside/b)" = safe ]
    [ "$(cat p/sub/b)" = x ]
}

@test "set-id bits, special files and names do not come back" {
    inside '/mnt/attack/set-id /workspace >/dev/null 2>&1; mkfifo pipe; chmod 777 a; mkdir "$(printf "a\nb")"
        echo x >"$(printf "\033[31mred")"; echo x >"$(printf "\377")"; echo x >-rf'
    sync_all
    [ -z "$(find p -perm /7000)" ]
    [ ! -e p/pipe ]
    [ "$(stat -c %a p/a)" = 777 ]
    [ -e p/-rf ]
    [[ $output != *$'\033'* ]]
}

@test "what tools of this machine run does not come back, by any name" {
    mkdir -p p/.git/hooks p/hooks.d p/bare
    echo '[core]' >p/.git/config
    printf '\thooksPath = hooks.d\n' >>p/.git/config
    inside 'mkdir -p .git/hooks n/.git/hooks .git/modules/m/hooks bare/objects bare/refs bare/hooks hooks.d .husky .vscode x/.cargo
        echo ref >bare/HEAD; for f in .git/hooks/pre-commit n/.git/hooks/pre-push n/.git/config .git/modules/m/hooks/a \
            .git/modules/m/config .git/commondir bare/hooks/a bare/config hooks.d/pre-commit .husky/pre-commit \
            .vscode/tasks.json .envrc x/.envrc .mcp.json .npmrc x/.cargo/config.toml .git/info; do echo evil >$f; done
        echo fine >Makefile; echo fine >n/.git/HEAD'
    sync_all
    status_is 75
    [ "$(grep -rl evil p)" = "" ]
    [ "$(cat p/Makefile p/n/.git/HEAD)" = $'fine\nfine' ]
    says "protected: tools of this machine run it by themselves"
    # control
    sync_all --include-protected
    [ "$(grep -rl evil p | wc -l)" -eq 17 ]
}

@test "a file system full of nothing ends with a limit, not with a hang" {
    inside 'd=.; for i in $(seq 70); do d=$d/d; mkdir $d; done'
    sync_all
    [ "$status" -ne 0 ]
    says "folders inside each other"
    [ ! -e p/d ]
    [ "$("$BRIG" sandbox show "$id" | jq -r .state)" = running ]
    [ "$(receipts 'last | .reason_code')" = FILE_FAILED ]
}
