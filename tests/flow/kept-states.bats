#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What list and show say of a sandbox is what it is, from before it stands until after it is gone.

load common
load sandbox
load kept

setup() {
    common_setup
}

teardown() {
    [ -z "${holder-}" ] || kill "$holder" 2>/dev/null || true
    destroy_all
}

state_of() {
    "$BRIG" sandbox list --json 2>/dev/null | jq -r '[.sandboxes[] | .state] | join(" ")'
}

says_state() {
    [ "$(state_of)" = "$1" ]
}

# The ledger held by somebody else: a Brig that makes a sandbox waits with it parked.
hold_ledger() {
    brig sandbox exec --quiet -- true </dev/null
    mkfifo hold
    sqlite3 "$BRIG_HOME/receipts.db" <hold >held 2>&1 &
    holder=$!
    exec 8>hold
    echo "BEGIN IMMEDIATE; SELECT 'held';" >&8
    eventually 5 grep -q held held
}

let_ledger_go() {
    exec 8>&-
    wait "$holder" || true
    holder=
}

@test "one that is being made is said to be, and runs when it stands" {
    need sqlite3
    hold_ledger
    "$BRIG" sandbox create --json >made 2>/dev/null 8>&- &
    maker=$!
    eventually 5 says_state creating
    id=$("$BRIG" sandbox list --json 2>/dev/null | jq -r '.sandboxes[0].sandbox_id')
    json_is .state creating "$("$BRIG" sandbox show "$id" 2>/dev/null)"
    let_ledger_go
    wait "$maker"
    json_is .state running "$(cat made)"
    says_state running
    [ "$(in_it -- echo on </dev/null)" = on ]
}

@test "a maker that is killed takes the unfinished sandbox with it" {
    need sqlite3
    hold_ledger
    "$BRIG" sandbox create --json >/dev/null 2>&1 8>&- &
    maker=$!
    eventually 5 says_state creating
    pid=$("$BRIG" sandbox list --json 2>/dev/null | jq -r '.sandboxes[0].pid')
    kill -9 "$maker"
    wait "$maker" || true
    eventually 2 gone "$pid"
    let_ledger_go
    eventually 2 says_state ''
    no_sandbox_left
}

# poll_states FILE: what list says, as fast as it can, until stopped. A process that is listed but
# gone must have a lock that is free.
poll_states() {
    local each pid
    while [ ! -e stop ]; do
        for each in $("$BRIG" sandbox list --json 2>/dev/null | jq -r '.sandboxes[] | "\(.sandbox_id):\(.pid):\(.state)"'); do
            IFS=: read -r each pid state <<<"$each"
            [ -e "/proc/$pid" ] || flock -w 20 "$BRIG_HOME/boxes/$each.lock" true 2>/dev/null ||
                [ ! -e "$BRIG_HOME/boxes/$each.lock" ] || echo "untrue $each $pid $state"
            echo "$state"
        done
    done >"$1"
}

@test "polled while sandboxes are made, used, paused, crash and go, list never says what is not" {
    poll_states seen &
    poller=$!
    for i in 1 2 3 4; do
        make
        in_it -- true </dev/null
        brig sandbox pause "$id"
        says_state paused
        json_is .state paused "$("$BRIG" sandbox show "$id" 2>/dev/null)"
        brig sandbox resume "$id"
        says_state running
        if [ $((i % 2)) -eq 0 ]; then
            kill -9 "$(outer_of "$(pid_one)")"
            eventually 2 says_state ''
        else
            brig sandbox destroy "$id"
            says_state ''
        fi
        run brig sandbox show "$id"
        status_is 66
    done
    touch stop
    wait "$poller"
    not grep untrue seen
    grep -q running seen
    grep -q paused seen
    no_sandbox_left
    each_run_ended
}

# stack_kib PID: what of its stack is in memory.
stack_kib() {
    awk '/\[stack\]/ { at = 1 } at && /^Rss:/ { print $2; exit }' "/proc/$1/smaps"
}

stack_is_small() {
    [ "$(stack_kib "$1")" -le 32 ]
}

@test "a sandbox in which nothing happens gives back the memory it was built with" {
    [ "$EUID" -eq 0 ] || skip "only root may look into the memory of PID 1"
    [ "$(brig version --json | jq -r .crash_points)" = false ] || skip "sanitizers have larger frames"
    make
    pid=$(pid_one)
    eventually 20 stack_is_small "$pid"
    eventually 20 stack_is_small "$(outer_of "$pid")"
    run -0 in_it -- true # it is still there for whoever comes
}
