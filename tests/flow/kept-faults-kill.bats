#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# SIGKILL for any process that has to do with a kept sandbox, while anything is asked of it: the
# next command says what is true, every intent has one end that says why, and nothing is left.

load common
load sandbox
load kept

setup() {
    common_setup
}

teardown() {
    destroy_all
}

# one_end_each: every intent has exactly one closing receipt.
one_end_each() {
    local wrong
    wrong=$(ledger "SELECT i.body, (SELECT count(*) FROM receipts e WHERE e.run_id = i.run_id AND e.kind <> 'intent') n
        FROM receipts i WHERE i.kind = 'intent' AND n <> 1")
    [ -z "$wrong" ] || {
        printf 'not with one end:\n%s\n' "$wrong" >&2
        return 1
    }
}

# end_of RUN: the reason code of its closing receipt.
end_of() {
    ledger "SELECT json_extract(body, '\$.reason_code') FROM receipts WHERE run_id = '$1' AND kind <> 'intent'"
}

all_is_told() {
    brig sandbox list >/dev/null 2>&1
    one_end_each && chain_holds && run brig receipts verify --json && json_is .open_runs 0
}

# ---- files and ports ----

# killed_while PATTERN CMD…: it runs until its intent is there, and is killed then.
killed_while() {
    local before after pid
    before=$(receipts_of intent)
    "$@" >/dev/null 2>&1 <&9 &
    pid=$!
    eventually 5 more_intents_than "$before"
    kill -9 "$pid"
    wait "$pid" || true
}

more_intents_than() {
    [ "$(receipts_of intent)" -gt "$1" ]
}

@test "a Brig killed while it moves files or holds a port open: the next command closes the run" {
    make
    mkfifo never
    exec 9<>never # no byte comes, and no end
    in_it -- sh -c 'mkfifo /tmp/pipe; echo kept >/tmp/file' </dev/null
    killed_while "$BRIG" sandbox files write "$id" /tmp/file
    killed_while "$BRIG" sandbox files watch "$id" /tmp
    killed_while "$BRIG" sandbox port "$id" 8080
    exec 9>&-
    eventually 5 no_run_is_held
    all_is_told
    [ "$(ledger "SELECT count(*) FROM receipts WHERE body LIKE '%RUN_ABANDONED%'")" -eq 3 ]
    # What was half written never took the place of what was there.
    [ "$(brig sandbox files cat "$id" /tmp/file 2>/dev/null)" = kept ]
    brig sandbox destroy "$id"
    no_sandbox_left
}

# ---- why a command ended that its sandbox took with it ----

detach() {
    brig sandbox exec "$id" --detach -- "$@" 2>/dev/null </dev/null
}

@test "a detached command that ends with its sandbox has the sandbox's reason" {
    make
    run_id=$(detach sh -c 'echo said; sleep 300')
    eventually 3 said_something
    brig sandbox destroy "$id"
    [ "$(end_of "$run_id")" = SANDBOX_DESTROYED ]
    [ "$(ledger "SELECT json_extract(body, '\$.outcome.stdout_bytes') FROM receipts
        WHERE run_id = '$run_id' AND kind = 'outcome'")" -eq 5 ]

    make
    run_id=$(detach sleep 300)
    brig sandbox extend "$id" --ttl 500ms
    eventually 4 flock -n "$BRIG_HOME/boxes/$id.lock" true
    all_is_told
    [ "$(end_of "$run_id")" = SANDBOX_EXPIRED ]

    make --disk 8m
    run_id=$(detach sh -c 'for part in 1 2; do head -c 8000000 /dev/zero >/tmp/$part; done; sleep 300')
    eventually 10 flock -n "$BRIG_HOME/boxes/$id.lock" true
    all_is_told
    [ "$(end_of "$run_id")" = LIMIT_DISK ]

    make
    run_id=$(detach sleep 300)
    kill -9 "$(outer_of "$(pid_one)")"
    eventually 2 flock -n "$BRIG_HOME/boxes/$id.lock" true
    all_is_told
    [ "$(end_of "$run_id")" = RUN_ABANDONED ]
    no_sandbox_left
}

said_something() {
    [ "$(brig sandbox logs "$id" 2>/dev/null)" = said ]
}

@test "a detached command whose keeper is killed is told about while the sandbox goes on" {
    make
    run_id=$(detach sleep 300)
    pid=$(pid_one)
    kill -9 "$(awk '{ print $1 }' "/proc/$pid/task/$pid/children")"
    eventually 2 told_of "$run_id"
    [ "$(end_of "$run_id")" = RUN_ABANDONED ]
    [ "$(in_it -- echo on </dev/null)" = on ]
}

told_of() {
    brig sandbox list >/dev/null 2>&1
    [ -n "$(end_of "$1")" ]
}

@test "a command that ends with its sandbox says which limit or order it was" {
    make --disk 8m
    run --separate-stderr brig sandbox exec "$id" --json -- sh -c 'for part in 1 2; do head -c 8000000 /dev/zero >/tmp/$part; done; sleep 300' </dev/null
    status_is 137
    json_is .reason_code LIMIT_DISK
    json_is .signal 9

    make
    "$BRIG" sandbox exec "$id" --json -- sh -c 'sleep 300; :' >out 2>err </dev/null &
    caller=$!
    eventually 3 running_in_it
    brig sandbox extend "$id" --ttl 500ms
    await "$caller"
    json_is .reason_code SANDBOX_EXPIRED "$(cat out)"

    make
    "$BRIG" sandbox exec "$id" --json -- sh -c 'echo here >&2; sleep 300' >out 2>err </dev/null &
    caller=$!
    eventually 3 running_in_it
    brig sandbox destroy "$id"
    wait "$caller" || true
    json_is .reason_code SANDBOX_DESTROYED "$(cat out)"
    all_is_told
    no_sandbox_left
}

running_in_it() {
    [ "$(brig sandbox show "$id" | jq .processes)" -gt 2 ]
}

@test "one that is paused expires like any other" {
    make
    in_it --keep -- sh -c 'setsid sleep 300 >/dev/null 2>&1 &' </dev/null
    pid=$(pid_one)
    inside=$(descendants "$pid")
    brig sandbox pause "$id"
    brig sandbox extend "$id" --ttl 500ms
    # shellcheck disable=SC2086 # pids
    eventually 5 gone "$pid" $inside
    ended_with SANDBOX_EXPIRED
    no_sandbox_left
}

# ---- at random ----

# One out of the words given, always the same sequence.
one_of() {
    local words=("$@")
    chosen=${words[RANDOM % $#]}
}

is_let_go() {
    [ ! -e "$1" ] || flock -n "$1" true
}

# Everything that is said to run has a PID 1 and an outer process.
listed_are_there() {
    local each pid
    for each in $(brig sandbox list --json 2>/dev/null | jq -r '.sandboxes[] | "\(.sandbox_id):\(.pid)"'); do
        pid=${each#*:}
        # It may have ended since it was listed; then its lock is free, or soon will be or be gone.
        [ -e "/proc/$pid" ] || eventually 5 is_let_go "$BRIG_HOME/boxes/${each%:*}.lock" || {
            echo "listed without a process: $each" >&2
            return 1
        }
    done
}

# Nothing else has. Who clears up behind a sandbox holds its lock until that is done, and no longer.
others_are_gone() {
    local listed held
    listed=$(brig sandbox list --json 2>/dev/null | jq '.sandboxes | length')
    held=$(for lock in "$BRIG_HOME"/boxes/*.lock; do [ ! -e "$lock" ] || flock -n "$lock" true || echo "$lock"; done | wc -l)
    [ "$held" -le "$listed" ]
}

act() {
    (
        case $1 in
        create) exec "$BRIG" sandbox create --ttl 60s ;;
        exec) exec "$BRIG" sandbox exec "$id" -- sh -c 'sleep 0.05; sleep 0.05 & true' ;;
        keep) exec "$BRIG" sandbox exec "$id" --keep -- sh -c 'setsid sleep 300 & true' ;;
        detach) exec "$BRIG" sandbox exec "$id" --detach -- sh -c 'echo x; sleep 300' ;;
        files) exec "$BRIG" sandbox files write "$id" /tmp/some <some ;;
        tree) exec "$BRIG" sandbox cp "$id:/tmp" "$WORK/fetched-$i" ;;
        *) exec "$BRIG" sandbox "$1" "$id" ;;
        esac
    ) >/dev/null 2>&1 </dev/null &
    actor=$!
}

victim_of() {
    local pid
    case $1 in
    brig) victim=$actor ;;
    outer) victim=$old_outer ;;
    one) victim=$old_pid ;;
    keeper)
        read -r victim _ <"/proc/$old_pid/task/$old_pid/children" || true
        ;;
    esac 2>/dev/null
}

a_sandbox() {
    id=$(brig sandbox list --json 2>/dev/null | jq -r '.sandboxes[0].sandbox_id // empty')
    [ -n "$id" ] || make --ttl 60s
    old_pid=$("$BRIG" sandbox show "$id" 2>/dev/null | jq -r .pid) && old_outer=$(outer_of "$old_pid" 2>/dev/null)
}

@test "eighty kills of whatever process, while whatever is done" {
    RANDOM=20261116
    kills=0
    head -c 300000 /dev/zero >some
    for i in $(seq 80); do
        a_sandbox || continue
        one_of create exec keep detach files tree pause resume extend destroy
        action=$chosen
        one_of brig brig outer one keeper
        who=$chosen
        after=0.0$((RANDOM % 30 + 10))
        act "$action"
        sleep "$after"
        victim=
        victim_of "$who"
        [ -z "$victim" ] || ! kill -9 "$victim" 2>/dev/null || kills=$((kills + 1))
        wait "$actor" 2>/dev/null || true
        { listed_are_there && eventually 5 others_are_gone; } || {
            echo "after $action, $who killed" >&2
            ls -l "$BRIG_HOME/boxes" >&2
            false
        }
    done
    [ "$kills" -gt 30 ]
    brig sandbox resume "$id" >/dev/null 2>&1 || true
    destroy_all
    eventually 3 all_locks_free
    all_is_told
    no_sandbox_left
}

all_locks_free() {
    local lock
    for lock in "$BRIG_HOME"/runs/*.lock "$BRIG_HOME"/boxes/*.lock; do
        [ ! -e "$lock" ] || flock -n "$lock" true || return 1
    done
}

# ---- at each point of the write path ----

POINTS="opening-before opening-locked opening-inserted opening-committed closing-before closing-locked
    closing-inserted closing-committed"

crash() {
    run env BRIG_CRASH_AT="$point" timeout -k 5 "$PATIENCE" "$BRIG" sandbox "$@" </dev/null
    [ "$status" -eq 137 ] || {
        echo "$point: sandbox $* ended with $status: $output" >&2
        return 1
    }
}

@test "killed at each point of the write path, whatever is asked of a kept sandbox" {
    [ "$(brig version --json | jq -r .crash_points)" = true ] || skip "built without crash points"
    echo text >some
    for point in $POINTS; do
        rm -rf "$BRIG_HOME"
        crash create --ttl 60s
        make --ttl 60s
        crash exec "$id" -- true
        case $point in
        closing-*) ;; # the end of a detached command is told later
        *) crash exec "$id" --detach -- sleep 300 ;;
        esac
        crash files write "$id" /tmp/x
        crash cp some "$id:/tmp/some"
        crash pause "$id"
        brig sandbox resume "$id" || true
        crash extend "$id"
        crash destroy "$id"
        eventually 3 all_locks_free_but_living
        listed_are_there
        eventually 5 others_are_gone
        destroy_all
        eventually 3 all_locks_free
        all_is_told
        no_sandbox_left
    done
}

all_locks_free_but_living() {
    local lock
    for lock in "$BRIG_HOME"/runs/*.lock; do
        [ ! -e "$lock" ] || flock -n "$lock" true || grep -q ^detached "$lock" || return 1
    done
}
