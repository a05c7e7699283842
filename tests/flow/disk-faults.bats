#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A state directory on a file system that is full, has no place for another file, or may only be read:
# no run that is not charged, no word that half counts, and with room again everything goes on.

load common
load sandbox
load serve

# The state directory is a small file system of the test's own, in a mount namespace that $disk keeps.
setup() {
    common_setup
    need unshare nsenter sqlite3
    without_daemon "it is started where the file system is"
    rights=(--mount)
    within=(--mount)
    is_root || rights+=(--user --map-current-user --keep-caps)
    is_root || within+=(--user --preserve-credentials)
    unshare "${rights[@]}" true 2>/dev/null || skip "no mounts of its own for this user"
    mkdir -p "$BRIG_HOME" "$WORK/out"
    mkfifo orders
    # shellcheck disable=SC2016 # its shell, not ours
    unshare "${rights[@]}" --propagation private bash -euc '
        mount -t tmpfs -o size=8m,nr_inodes=300,mode=0700 none "$BRIG_HOME"
        : >ready
        exec <>orders
        while read -r mode; do
            # What clears up behind a sandbox may still have something open.
            until mount -o "remount,$mode" "$BRIG_HOME"; do sleep 0.1; done
            echo "$mode" >did
        done' </dev/null >disk.log 2>&1 3>&- &
    disk=$!
    eventually 10 test -e ready || { cat disk.log >&2; return 1; }
    inside "$BRIG" sandbox exec --quiet -- true || skip "no sandbox in a mount namespace of this user"
}

teardown() {
    local status=0
    serve_end || status=$?
    [ -z "${disk-}" ] || kill "$disk" 2>/dev/null || true
    return $status
}

inside() {
    nsenter -t "$disk" "${within[@]}" --wd="$PWD" -- "$@"
}

brig() {
    inside timeout -k 5 "$PATIENCE" "$BRIG" "$@"
}

# Without what SQLite keeps beside its files, as after the last one closed them: then it has to be made.
tidy() {
    local name
    for name in receipts budget approvals; do
        inside sh -c "[ ! -e \"\$BRIG_HOME/$name.db\" ] || sqlite3 \"\$BRIG_HOME/$name.db\" 'SELECT count(*) FROM sqlite_schema' >/dev/null"
    done
}

# Three ways to have no room, and back.
full() {
    inside sh -c 'cat /dev/zero >"$BRIG_HOME/filler"' 2>/dev/null || true
}

no_files() {
    inside sh -c 'mkdir "$BRIG_HOME/files"; i=0; while : >"$BRIG_HOME/files/$i"; do i=$((i + 1)); done' 2>/dev/null || true
}

# By whoever made it: an ordinary user has no rights to that in here.
remount() {
    rm -f did
    echo "$1" >orders
    eventually 10 grep -qsx "$1" did || { cat disk.log >&2; return 1; }
}

read_only() {
    remount ro
}

room() {
    remount rw
    inside rm -rf "$BRIG_HOME/filler" "$BRIG_HOME/files"
}

no_run_is_held() {
    # shellcheck disable=SC2016 # its shell, not ours
    inside sh -c 'for lock in "$BRIG_HOME"/runs/*.lock; do [ ! -e "$lock" ] || flock -n "$lock" true || exit; done'
}

cleared_up() {
    inside sh -c '[ -z "$(ls -A "$BRIG_HOME/runs" 2>/dev/null)" ]'
}

# What clears up behind a sandbox gives room back, after the fault too. Who is done has nothing open here that
# is deleted or can be written, without which there is no `ro`.
settle() {
    eventually 10 cleared_up || { echo "never cleared up" >&2; return 1; }
    remount ro
    remount rw
}

FAULTS='full No space left on device|disk (or the quota) is full
no_files No space left on device|No space left on device
read_only Read-only file system|Read-only file system'

# each COMMAND…: with every fault, and with the stores as they are left in both ways; $text is what is said.
each() {
    local fault texts
    while read -r fault texts <&4; do
        for prepare in true tidy; do
            settle || return
            "$prepare"
            "$fault"
            text=${texts%|*} or=${texts#*|}
            "$@" || { echo "$fault, $prepare" >&2; return 1; }
        done
    done 4<<<"$FAULTS"
}

policy() {
    printf 'version: 1\ndefault: allow\nbudget: [%s]\n' "$1" >p.yaml
}

# try NAME: a command whose effect is a file of this name in $WORK/out.
try() {
    run brig sandbox exec --policy "${2-p.yaml}" --mount "$WORK/out:/out:rw" -- touch "/out/$1"
}

amount() {
    brig budget show --policy p.yaml --json |
        jq -r ".budgets[0].amounts[] | select(.kind == \"runs\") | .$1"
}

# stopped: it failed by itself, and said why.
stopped() {
    [ "$status" -ne 0 ] && [ "$status" -ne 124 ] && [ "$status" -lt 128 ] || {
        printf 'status is %s; output:\n%s\n' "$status" "$output" >&2
        return 1
    }
    [[ $output == *"$text"* || $output == *"$or"* ]] || says "$text"
    # That it may only be read is the machine's fault, and nobody's no.
    [ "$text" != "Read-only file system" ] || status_is 69
}

# Denied with a receipt, or refused because there can be none; never run, never charged.
no_run() {
    for _ in 1 2; do
        try uncharged
        stopped || return
    done
    [ ! -e out/uncharged ] || return
    room
    [ "$(amount used)" = "$used" ] && [ "$(amount reserved)" = 0 ] || return
    brig receipts verify >/dev/null
}

@test "what cannot be charged does not run, whatever the disk lacks; with room everything goes on" {
    policy '{per: principal, within: 1h, runs: 3}'
    try first
    status_is 0
    used=1
    each no_run
    for name in second third; do
        try "$name"
        status_is 0
        [ -e "out/$name" ]
    done
    try fourth
    status_is 77
    says BUDGET_EXCEEDED
    [ ! -e out/fourth ]
    # The ledger has as many: those three, and the one of setup.
    ran=$(inside sqlite3 "$BRIG_HOME/receipts.db" "SELECT count(*) FROM receipts WHERE kind = 'outcome'
        AND json_extract(body, '\$.outcome.started')")
    [ "$ran" -eq 4 ] || { echo "$ran ran" >&2; return 1; }
}

@test "so does the first run there ever is" {
    policy '{per: principal, within: 1h, runs: 1}'
    each first_run
}

first_run() {
    room
    inside find "$BRIG_HOME" -mindepth 1 -delete
    "$fault"
    try uncharged
    stopped || return
    [ ! -e out/uncharged ] || return
    room
    try charged
    status_is 0 || return
    rm out/charged
    [ "$(amount used)" = 1 ] || return
    try uncharged
    status_is 77
}

@test "what runs while the disk becomes full is charged" {
    policy '{per: principal, within: 1h, runs: 5}'
    try first
    status_is 0
    PATIENCE=300 brig sandbox exec --quiet --timeout 5m --policy p.yaml --mount "$WORK/out:/out:rw" -- \
        sh -c 'touch /out/began; until [ -e /out/go ]; do sleep 0.05; done' >during 2>&1 &
    running=$!
    eventually 10 test -e out/began
    full
    touch out/go
    await "$running"
    room
    eventually 10 no_run_is_held
    brig sandbox list >/dev/null # whoever comes next tells the end of what has none
    [ "$(amount used)" = 2 ]
    [ "$(amount reserved)" = 0 ]
    run -0 brig receipts verify
}

# ---- what a person says ----

people() {
    printf 'version: 1\ndefault: ask\napprovals: {default: {by: ["custodian:*"], quorum: %s}}\n' "$1" >ask.yaml
    for name in anna ben; do
        echo "$name correct horse battery" >"$name.pass"
        chmod 600 "$name.pass"
    done
    brig approvals enroll anna --passphrase-file anna.pass >/dev/null
    brig approvals enroll ben --passphrase-file ben.pass --by anna --by-passphrase-file anna.pass >/dev/null
    run brig sandbox exec --json --policy ask.yaml --mount "$WORK/out:/out:rw" -- touch /out/asked
    approval=$(jq -r .approval_id <<<"$output")
}

word() {
    run brig approvals "$1" "$approval" --as "$2" --passphrase-file "$2.pass"
}

# Neither word counts: what was said before it does, and no more.
no_word() {
    word confirm ben
    stopped || return
    word reject ben
    stopped || return
    room
    run brig approvals show "$approval" --json
    json_is .state pending && json_is .confirmations "$said" || return
    try asked ask.yaml
    status_is 77 && [ ! -e out/asked ] || return
    brig receipts verify >/dev/null
}

@test "a word that cannot be kept is an error, and what waits goes on waiting" {
    people 1
    said=0
    each no_word
    word confirm ben
    status_is 0
    try asked ask.yaml
    status_is 0
    [ -e out/asked ]
    rm out/asked
    try asked ask.yaml # once
    status_is 77
    approval=$(brig approvals list --state pending --json | jq -r '.approvals[0].approval_id')
    settle
    full
    word reject anna
    text="No space left on device" or="is full" stopped
    room
    word reject anna
    status_is 0
    run brig approvals show "$approval" --json
    json_is .state rejected
}

@test "the second of two words that cannot be kept leaves the first" {
    people 2
    word confirm anna
    status_is 0
    said=1
    each no_word
    word confirm ben
    status_is 0
    try asked ask.yaml
    status_is 0
}

# ---- the stop button ----

# Neither takes effect without its receipt.
no_stop() {
    run brig freeze --reason test
    stopped || return
    run brig approvals enroll dora --passphrase-file anna.pass
    stopped || return
    room
    run -0 brig freeze --status
    says "nothing is frozen" || return
    try "ran-$prepare-$text"
    status_is 0 || return
    brig freeze --reason test >/dev/null
    settle || return
    "$fault"
    run brig unfreeze
    # Where it found the room that it takes, it is done.
    if [ "$status" -ne 0 ] || [ "$fault" = read_only ]; then
        stopped || return
        room
        try frozen
        status_is 77 && says SYSTEM_FROZEN || return
        brig unfreeze >/dev/null
    fi
    room
    try thawed
    status_is 0 || return
    brig receipts verify >/dev/null
}

@test "a freeze or an enrolment that cannot be written is an error of the machine, and nothing changes" {
    printf 'version: 1\ndefault: allow\n' >p.yaml
    echo "anna correct horse battery" >anna.pass
    chmod 600 anna.pass
    each no_stop
    run -0 brig approvals custodians --json
    json_is '.custodians | length' 0
}

# ---- a daemon ----

# What its sandboxes leave is cleared up by children of its spawner.
nobody_clears_up() {
    local child
    for child in $(pgrep -P "$DAEMON"); do
        ! pgrep -x -P "$child" box >/dev/null || return 1
    done
}

@test "a daemon refuses while there is no room, and goes on by itself when there is" {
    need curl
    brig budget set --per principal --within 1h --runs 3 >/dev/null
    nsenter -t "$disk" "${within[@]}" --wd="$PWD" -- "$BRIG" serve --listen 127.0.0.1:0 --socket "$WORK/d.sock" >serve.out 2>serve.err </dev/null 3>&- &
    DAEMON=$!
    eventually 10 grep -q 'listening on unix:' serve.out
    PORT=$(sed -n 's/.*listening on http:.*:\([0-9]*\)$/\1/p' serve.out)
    TOKEN=$(brig token create --scope run --scope read 2>/dev/null)
    post /v1/runs '{"command":["true"]}'
    [ "$http" = 200 ]
    for fault in full no_files; do # what is open to be written cannot be made read-only
        eventually 10 nobody_clears_up
        "$fault"
        for _ in 1 2; do
            post /v1/runs '{"command":["true"]}'
            [ "$http" -ge 400 ] || { echo "$fault: $output" >&2; return 1; }
            json_is '.error.message | test("full|No space left")' true
            [ "$fault" != full ] || json_is .error.reason_code NO_SPACE
        done
        room
    done
    for expect in 200 200 403; do
        post /v1/runs '{"command":["true"]}'
        [ "$http" = "$expect" ] || { echo "$http: $output" >&2; return 1; }
    done
    json_is .error.reason_code BUDGET_EXCEEDED
    api /v1/budgets
    json_is '.budgets[0].amounts[0].used' 3
    json_is '.budgets[0].amounts[0].reserved' 0
    serve_end
}
