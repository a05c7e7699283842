#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# --workspace: the folder a run works on, and the files in it that other programs run.

load common
load sandbox
load kept

quiet() {
    timeout -k 5 "$PATIENCE" "$BRIG" sandbox exec --quiet "$@" </dev/null
}

setup() {
    common_setup
    mkdir project
    echo content >project/file
}

teardown() {
    destroy_all
}

# a_repository DIR: as git init makes one, without asking git.
a_repository() {
    mkdir -p "$1/hooks" "$1/info" "$1/objects" "$1/refs"
    echo 'ref: refs/heads/main' >"$1/HEAD"
    printf '[core]\n\tbare = false\n' >"$1/config"
    echo '#!/bin/sh' >"$1/hooks/pre-commit.sample"
}

# ---- access ----

@test "the workspace is read-only unless rw is said, and where commands start" {
    run quiet --workspace project -- sh -c 'pwd; cat file; touch new'
    [ "$status" -ne 0 ]
    [[ $output == "/workspace"$'\n'"content"$'\n'*"Read-only file system" ]]
    run quiet --workspace "$PWD/project:ro" -- touch new
    [ "$status" -ne 0 ]
    quiet --workspace project:rw -- sh -c 'echo written >new'
    [ "$(cat project/new)" = written ]
    [ "$(stat -c %u:%g project/new)" = "$(id -u):$(id -g)" ]
    run quiet --workspace project --workdir /tmp -- pwd
    [ "$output" = /tmp ]
}

@test "with none there is an empty folder that stays empty" {
    run quiet --workspace project:none -- sh -c 'exec 2>&1; pwd; ls -A; touch new; mkdir x; echo done'
    status_is 0
    [[ $output == "/workspace"$'\n'*"Read-only"*"Read-only"*"done" ]]
    run quiet --workspace :none -- ls -A /workspace
    status_is 0
    [ -z "$output" ]
    run quiet --workspace project:none --mount "$PWD/project:/workspace" -- true
    status_is 77
    says "--workspace says that nothing is there"
}

@test "what is no workspace is refused with what to write" {
    for text in project:wr :rw "project:ro:rwx"; do
        run brig sandbox exec --workspace "$text" -- true
        status_is 64
        says "write DIR, DIR:ro, DIR:rw, DIR:none or DIR:mirror"
    done
    run quiet --workspace nowhere -- true
    status_is 77
    says "MOUNT_FORBIDDEN"
    mkdir 'with:colon'
    quiet --workspace with:colon:rw -- touch made
    [ -e with:colon/made ]
}

@test "it is judged like every mount: never a home, never Brig's own state, never twice" {
    mkdir -p home/.ssh
    run quiet --workspace home:rw -- true
    status_is 77
    says ".ssh"
    receipt_is .reason_code MOUNT_FORBIDDEN
    run quiet --workspace "$BRIG_HOME" -- true
    status_is 77
    says "Brig's own state"
    run quiet --workspace /etc -- true
    status_is 77
    run quiet --workspace project --mount "$PWD/project:/workspace/sub" -- true
    status_is 77
    says "overlaps with /workspace"
}

@test "the policy's filesystem rules hold for it" {
    cat >policy.yaml <<'P'
version: 1
filesystem_policy:
  include_workdir: false
  read_only: [/usr, /lib, /lib64, /bin, /etc, /workspace]
  read_write: [/tmp]
landlock:
  compatibility: best_effort
P
    quiet --policy policy.yaml --workspace project -- cat /workspace/file
    run quiet --policy policy.yaml --workspace project:rw -- true
    status_is 77
    says "filesystem_policy lists it neither as read_write"
}

@test "access is in the plan: each has a mounts_hash of its own, and preflight sees it" {
    for access in ro rw none; do
        brig sandbox preflight --json --workspace "project:$access" >"$access"
        [ "$(jq -r .pass "$access")" = true ]
        jq -r .mounts_hash "$access"
    done | sort -u >hashes
    [ "$(wc -l <hashes)" -eq 3 ]
    exec_json --workspace project:rw -- true
    json_is .mounts_hash "$(jq -r .mounts_hash rw)"
    # what was asked is bound, too
    [ "$(ledger "SELECT count(DISTINCT json_extract(body, '\$.request_hash')) FROM receipts")" -ge 3 ]
}

@test "a kept sandbox keeps its workspace, wherever its commands are started from" {
    make --workspace project:rw --name keeper
    (cd / && in_it -- sh -c 'pwd; echo more >>file')
    [ "$(cat project/file)" = $'content\nmore' ]
    run brig sandbox exec "$id" --workspace project -- true
    status_is 64
    says "--workspace belongs to the sandbox"
    run brig sandbox explain keeper
    says "workspace  $PWD/project:rw"
    says "drift      none"
    json_is .workspace "$PWD/project:rw" "$(brig sandbox show keeper)"
    run brig sandbox create --reuse --name keeper --workspace project:ro --json
    [ "$(jq -r .sandbox_id <<<"$output")" != "$id" ]
}

@test "started by root, a workspace of another user stays that user's" {
    is_root || skip "needs root"
    a_repository project/.git
    chown -R 12345:23456 project
    quiet --workspace project:rw -- sh -c 'mkdir d; echo x >d/f; echo o >.git/objects/o; ! touch .git/hooks/x'
    for name in d d/f .git/objects/o; do
        [ "$(stat -c %u:%g "project/$name")" = 12345:23456 ]
    done
}

# ---- protected files ----

@test "protected files are in the plan and their mounts are observed" {
    without_daemon "it builds with the box it was started with"
    brig sandbox preflight --json --workspace project:rw >before
    a_repository project/.git
    brig sandbox preflight --json --workspace project:rw >after
    [ "$(jq -r .pass after)" = true ]
    [ "$(jq -r .mounts_hash before)" != "$(jq -r .mounts_hash after)" ]
    degraded_box protected
    run brig sandbox exec --workspace project:rw -- touch /workspace/ran
    status_is 77
    receipt_is .reason_code PREFLIGHT_MOUNT_POLICY
    [ ! -e project/ran ]
}

@test "what is new, changed or gone is in the receipt with its hash, and said" {
    exec_json --workspace project:rw -- sh -c 'echo evil >.envrc; mkdir -p sub/.git/hooks; echo e >sub/.git/hooks/pre-push'
    status_is 0
    json_is '.protected_changes | map(.path) | join(" ")' "/workspace/.envrc /workspace/sub/.git/hooks/pre-push"
    json_is .protected_complete true
    [[ $stderr == *"protected: /workspace/.envrc is new"* ]]
    receipt_is '.outcome.protected_changes[0].hash' "sha256:$(sha256sum <project/.envrc | cut -c 1-64)"
    receipt_is .outcome.protected_changes_count 2
    receipt_is '.outcome.protected_changes[0].change' new
    # they are protected from now on: nothing changes any more
    exec_json --workspace project:rw -- sh -c 'echo more >>.envrc; true'
    receipt_is .outcome.protected_changes_count 0
    exec_json --workspace project:rw --allow-protected -- sh -c 'echo more >>.envrc; rm -r sub'
    receipt_is '.outcome.protected_changes | map(.change) | join(" ")' "changed removed"
    receipt_is .allow_protected true
    # where nothing can be written there is nothing to look at
    exec_json --workspace project -- true
    receipt_is .outcome.protected_changes null
    chain_holds
}

@test "more changes than a receipt names are counted" {
    exec_json --workspace project:rw -- sh -c 'for i in $(seq 100); do mkdir d$i; : >d$i/.envrc; done'
    receipt_is .outcome.protected_changes_count 100
    receipt_is '.outcome.protected_changes | length' 64
    [ "$(grep -c 'is new' <<<"$stderr")" -eq 8 ]
}

@test "in a kept sandbox each change is told once, also one that a left-over process made" {
    a_repository project/.git
    make --workspace project:rw
    in_it -- sh -c 'echo 1 >.npmrc' 2>said
    grep -q '/workspace/.npmrc is new' said
    receipt_is '.outcome.protected_changes[0].path' /workspace/.npmrc
    in_it -- true
    receipt_is .outcome.protected_changes_count 0
    # It goes on when its command has ended; the end of the sandbox looks once more.
    in_it --keep -- sh -c '(until [ -e go ]; do sleep 0.02; done; echo 1 >.zshrc; touch gone) >/dev/null 2>&1 &'
    receipt_is .outcome.protected_changes_count 0
    touch project/go
    eventually 5 [ -e project/gone ]
    run brig sandbox destroy "$id"
    says "/workspace/.zshrc is new"
    receipt_is .action destroy
    receipt_is '.outcome.protected_changes[0].path' /workspace/.zshrc
    no_sandbox_left
    [ -z "$(ls -A "$BRIG_HOME/guards")" ]
}

@test "a kept sandbox that dies is looked at all the same" {
    make --workspace project:rw
    in_it --keep -- sh -c '(until [ -e go ]; do sleep 0.02; done; echo 1 >.bashrc; touch gone; sleep 100) >/dev/null 2>&1 &'
    touch project/go
    eventually 5 [ -e project/gone ]
    kill -9 "$(outer_of "$(pid_one)")"
    eventually 5 ended_with RUN_ABANDONED
    receipt_is '.outcome.protected_changes | map(.path) | join(" ")' /workspace/.bashrc
    [ -z "$(ls -A "$BRIG_HOME/guards")" ]
}

@test "a kept sandbox goes on with new repositories in it" {
    make --workspace project:rw
    in_it -- sh -c 'mkdir -p new/.git/hooks; echo x >new/.git/config' 2>/dev/null
    in_it -- true
    run brig sandbox explain "$id"
    says "drift      none"
    # made again, it protects what is there by then
    id=$(brig sandbox recreate "$id" --json | jq -r .sandbox_id)
    run in_it -- touch new/.git/hooks/x
    [ "$status" -ne 0 ]
}

@test "a protected file replaced on this machine closes the sandbox, with a sentence" {
    echo a >project/.envrc
    make --workspace project:rw
    echo b >project/.envrc.new
    mv project/.envrc.new project/.envrc
    run in_it -- sh -c 'echo evil >.envrc'
    status_is 77
    says "SANDBOX_DRIFT"
    says "/project/.envrc was replaced on this machine"
    [ "$(cat project/.envrc)" = b ]
}

@test "a profile can open what is protected, and explain says so" {
    printf 'version: 1\nallow_protected: true\n' >profile.yaml
    echo a >project/.envrc
    make --workspace project:rw --profile profile.yaml
    in_it -- sh -c 'echo b >.envrc' 2>/dev/null
    [ "$(cat project/.envrc)" = b ]
    receipt_is .allow_protected true
    receipt_is '.outcome.protected_changes[0].change' changed
    run brig sandbox explain "$id"
    says "protected  nothing: it was allowed to change all of it"
    json_is .protected.allowed true "$(brig sandbox explain "$id" --json)"
    printf 'version: 1\nallow_protected: yes\n' >profile.yaml
    run brig sandbox exec --profile profile.yaml -- true
    status_is 64
    says "should be true or false"
}

@test "explain names what is protected here, and every name with its reason" {
    a_repository project/.git
    make --workspace project:rw
    run brig sandbox explain "$id"
    says "/workspace/.git/hooks: git runs"
    says "sandbox create --allow-protected"
    run brig sandbox explain "$id" --json
    json_is '[.protected.places[].path] | join(" ")' \
        "/workspace/.git/config /workspace/.git/hooks /workspace/.git/info"
    json_is '[.protected.names[] | select(.name == ".envrc" and (.why | length > 0))] | length' 1
    json_is '[.protected.names[] | select(.name == "Makefile")] | length' 0
}

@test "a folder too large to be looked through is not handed out for writing" {
    # deeper than there is patience
    (cd project && for _ in $(seq 70); do mkdir d && cd d; done)
    run quiet --workspace project:rw -- true
    status_is 77
    says "folders in too many folders"
    says "--allow-protected"
    quiet --workspace project:ro -- true
    exec_json --workspace project:rw --allow-protected -- true
    status_is 0
    json_is .protected_complete false
    [[ $stderr == *"not everything could be looked through"* ]]
}

@test "who hides a file behind too many folders is found out, if not the file" {
    exec_json --workspace project:rw -- sh -c 'for i in $(seq 80); do mkdir d && cd d; done; echo x >.envrc'
    json_is .protected_complete false
    receipt_is .outcome.protected_complete false
    [[ $stderr == *"not everything could be looked through"* ]]
}

@test "more than can be mounted over is refused" {
    for i in $(seq 300); do
        mkdir "project/d$i"
        : >"project/d$i/.envrc"
    done
    run quiet --workspace project:rw -- true
    status_is 77
    says "more than 256 files and folders"
    rm -r project/d1[0-9][0-9] project/d2[0-9][0-9]
    quiet --workspace project:rw -- sh -c '! echo x >d77/.envrc' 2>/dev/null
}
