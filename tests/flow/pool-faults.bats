#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Whoever fills, takes or is taken is killed at any moment: nothing is left without an owner,
# nothing is given twice, and every run has its end.

load common
load sandbox
load kept
load pool

setup() {
    common_setup
}

teardown() {
    empty_pools
}

all_told() {
    settled "${1:-0}"
    empty_pools
    brig sandbox list >/dev/null 2>&1
    eventually 10 nobody_left
    no_sandbox_left
    eventually 10 told || each_run_ended
    chain_holds
}

# Who was killed may be held for a moment by what clears up behind him: the next look tells of him.
told() {
    brig sandbox list >/dev/null 2>&1
    each_run_ended 2>/dev/null
}

nobody_left() {
    brig sandbox list >/dev/null 2>&1
    no_sandbox_left 2>/dev/null
}

need_crash_points() {
    [ "$(brig version --json | jq -r .crash_points)" = true ] || skip "built without crash points"
}

POINTS="pool-configured pool-entered pool-settled pool-taken pool-unlisted"

@test "the points below are those in the sources" {
    [ -d "$BRIG_ROOT/src" ] || skip "no sources here"
    run sed -n 's/.*CRASH_POINT("\(pool-[a-z-]*\)");.*/\1/p' "$BRIG_ROOT"/src/flow/execute/*.c
    [ "$(sort -u <<<"$output")" = "$(tr ' ' '\n' <<<"$POINTS")" ]
}

@test "a taker killed at each point leaves a sandbox of its own, or none" {
    need_crash_points
    fill 1
    for point in pool-taken pool-unlisted pool-configured pool-settled; do
        settled 1
        id=$(pooled)
        pid=$(pool_pid "$id")
        run env BRIG_CRASH_AT="$point" timeout -k 5 $PATIENCE "$BRIG" sandbox create --name "$point"
        status_is 137
        if [ "$point" = pool-settled ]; then
            run brig sandbox show "$point"
            json_is .sandbox_id "$id"
        else
            eventually 2 gone "$pid"
            run brig sandbox show "$point"
            status_is 66
        fi
        run ! grep -qxF "$id" <<<"$(pooled)"
        brig pool refill
    done
    for point in pool-taken pool-unlisted; do
        settled 1
        pid=$(pool_pid "$(pooled)")
        run env BRIG_CRASH_AT="$point" timeout -k 5 $PATIENCE "$BRIG" sandbox exec -- true </dev/null
        status_is 137
        eventually 2 gone "$pid"
        brig pool refill
    done
    all_told 1
}

@test "a filler killed before it let go leaves nothing to take" {
    need_crash_points
    run env BRIG_CRASH_AT=pool-entered timeout -k 5 $PATIENCE "$BRIG" pool fill --size 2
    status_is 137
    eventually 2 is_settled 0
    run brig sandbox exec --quiet -- true </dev/null
    status_is 0
    settled 2
    all_told 2
}

@test "takers and fillers killed at any moment" {
    fill 2
    for wait in 0.002 0.004 0.006 0.008 0.010 0.013 0.016 0.020; do
        "$BRIG" sandbox create --ttl 60s >/dev/null 2>&1 &
        one=$!
        "$BRIG" sandbox exec --quiet -- sleep 0.01 >/dev/null 2>&1 </dev/null &
        two=$!
        "$BRIG" pool refill >/dev/null 2>&1 &
        three=$!
        sleep "$wait"
        kill -9 $one $two $three 2>/dev/null || true
        wait $one $two $three 2>/dev/null || true
    done
    brig pool refill
    all_told 2
}

@test "a command out of the pool ends with its Brig" {
    fill 1
    pid=$(pool_pid "$(pooled)")
    "$BRIG" sandbox exec --quiet -- sh -c 'setsid sleep 300 & echo here; sleep 300' >out </dev/null &
    caller=$!
    eventually 3 grep -q here out
    kill -9 "$caller"
    eventually 2 gone "$pid"
    brig sandbox list >/dev/null 2>&1
    command_is .reason_code RUN_ABANDONED
    all_told 0
}

@test "a command whose supervisor is killed ends, and its caller is told" {
    fill 1
    pid=$(pool_pid "$(pooled)")
    timeout -k 5 60 "$BRIG" sandbox exec -- sh -c 'echo here; sleep 300' >out 2>err </dev/null &
    caller=$!
    eventually 3 grep -q here out
    kill -9 "$(outer_of "$pid")"
    status=0
    wait "$caller" || status=$?
    [ "$status" -eq 69 ]
    grep -q SANDBOX_FAILED err
    eventually 2 gone "$pid"
    settled 1
    all_told 1
}

@test "a supervisor that does not answer is passed over" {
    fill 2
    id=$(pooled | head -n 1)
    outer=$(outer_of "$(pool_pid "$id")")
    kill -STOP "$outer"
    exec_json -- echo served </dev/null
    kill -CONT "$outer"
    status_is 0
    json_is '.stdout | rtrimstr("\n")' served
    [ "$(of_command .sandbox_id)" != "$id" ]
}
