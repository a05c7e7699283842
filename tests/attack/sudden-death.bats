#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# E05: whoever of Brig is killed, nothing of the sandbox is alive 2 s later, and the next command
# clears up and gives the abandoned run its receipt.

load attack

setup() {
    common_setup
    name=$(a_name)
}

teardown() {
    wait
}

# start: a sandbox with 20 processes that do not want to go; sets $brig and $outer.
start() {
    start_box -- /mnt/attack/linger "$name" 20 detach ignore stop
    brig=$box
    eventually 10 grep -q "$name" "$WORK/said"
    outer=$(child_of "$brig")
    [ "$(called "$name")" -ge 20 ] # control: they are there
}

gone_in_2s() {
    eventually 2 none_called "$name"
    eventually 2 eval "! kill -0 $outer 2>/dev/null"
    wait "$brig" || true
}

cleared_up() {
    run -0 box -- true
    nothing_left
    each_run_ended_once
    [ "$(receipts length)" -eq 4 ]
}

@test "Brig is killed" {
    start
    kill -KILL "$brig"
    gone_in_2s
    cleared_up
    [ "$(receipts '.[1].reason_code')" = RUN_ABANDONED ]
    [ "$(receipts '.[0].run_id == .[1].run_id')" = true ]
}

@test "the supervisor is killed" {
    start
    kill -KILL "$outer"
    gone_in_2s
    nothing_left # Brig itself was there to clear up
    [ "$(receipts '.[1].reason_code')" = SANDBOX_FAILED ]
    cleared_up
}

@test "both are killed" {
    start
    kill -KILL "$brig" "$outer"
    gone_in_2s
    cleared_up
    [ "$(receipts '.[1].reason_code')" = RUN_ABANDONED ]
}

@test "the supervisor is stopped, then Brig is killed" {
    start
    kill -STOP "$outer"
    kill -KILL "$brig"
    kill -KILL "$outer"
    gone_in_2s
    cleared_up
}

@test "PID 1 of the sandbox is killed from outside" {
    start
    kill -KILL "$(child_of "$outer")"
    gone_in_2s
    nothing_left
    each_run_ended_once
    cleared_up
}

@test "killed at any moment of its building, nothing stays" {
    for ms in 0 1 2 3 4 5 6 7 8 10 12 15 20; do
        for whom in brig both; do
            bash -c 'exec "$BRIG" sandbox exec --quiet --mount "$1:/mnt/attack" -- /mnt/attack/linger "$2" 3 ignore' \
                sh "$ATTACK" "$name" >/dev/null 2>&1 3>&- &
            brig=$!
            sleep "$(printf '0.%03d' $ms)"
            outer=$(child_of "$brig" 2>/dev/null) || outer=
            kill -KILL "$brig" ${outer:+$([ $whom = both ] && echo "$outer")} 2>/dev/null || true
            wait "$brig" 2>/dev/null || true
        done
    done
    eventually 2 none_called "$name"
    # A supervisor that was not told to end yet holds its folder; the next run takes what is free.
    eventually 2 none_held
    run -0 box -- true
    eventually 5 nothing_left
    each_run_ended_once
    run -0 brig receipts verify
}
