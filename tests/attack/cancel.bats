#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# E03: a signal in any phase ends the run with one closing receipt, at most 5 s later.

load attack

# ends_within_5s PID: it does, and how is in $status.
ends_within_5s() {
    if ! eventually 5 eval "! kill -0 $1 2>/dev/null"; then
        echo "$1 is still there" >&2
        kill -KILL "$1"
        return 1
    fi
    status=0
    wait "$1" || status=$?
}

@test "cancelled at any moment of its building, a run has one end" {
    # Whole start-up in steps of a millisecond: before the ledger, while the box is built, parked,
    # released, running.
    for signal in INT TERM HUP; do
        for ms in 0 1 2 3 4 5 6 8 10 12 15 20 30 50; do
            run timeout -k 60 -s "$signal" "$(printf '0.%03d5' "$ms")" \
                "$BRIG" sandbox exec --quiet -- sleep 30
            status_is 124 # it ended on the signal; 137 would be by the second one, a minute later
        done
    done
    # A busy machine may not have begun any of these by then.
    for s in 0.2 0.5 1 2 4 8 16; do
        [ "$(receipts '[.[] | select(.reason_code == "CANCELLED")] | length')" -le 3 ] || break
        for signal in INT TERM HUP; do
            run timeout -k 60 -s "$signal" "$s" "$BRIG" sandbox exec --quiet -- sleep 30
            status_is 124
        done
    done
    each_run_ended_once
    # control: not all of them were cancelled before they began
    [ "$(receipts '[.[] | select(.reason_code == "CANCELLED")] | length')" -gt 3 ]
    nothing_left
}

@test "a command that ignores the signal is ended, and with what it had started" {
    name=$(a_name)
    start_box -- /mnt/attack/linger "$name" 20 detach ignore stop
    brig=$box
    eventually 10 grep -q "$name" "$WORK/said"
    kill -TERM "$brig"
    ends_within_5s "$brig"
    none_called "$name"
    [ "$(receipts 'last | .reason_code')" = CANCELLED ]
    each_run_ended_once
    nothing_left
}

@test "the second signal does not wait" {
    name=$(a_name)
    start_box -- /mnt/attack/linger "$name" 1 ignore
    brig=$box
    eventually 10 grep -q "$name" "$WORK/said"
    kill -INT "$brig" && sleep 0.1 && kill -INT "$brig"
    eventually 2 eval "! kill -0 $brig 2>/dev/null"
    wait "$brig" || true
    each_run_ended_once
}

it_is_meant() {
    [ "$(receipts '[.[] | select(.kind == "intent")] | length')" -gt 0 ]
}

@test "cancelled while nobody reads its output, a run has its end" {
    mkfifo pipe
    exec 8<>pipe # open for reading, and nobody reads
    "$BRIG" sandbox exec --quiet -- yes >pipe 3>&- 8>&- &
    brig=$!
    eventually 10 it_is_meant
    kill -TERM "$brig"
    ends_within_5s "$brig"
    exec 8>&-
    [ "$(receipts 'last | .reason_code')" = CANCELLED ]
    each_run_ended_once
    nothing_left
}

@test "cancelled while it waits for input nobody sends" {
    mkfifo input
    exec 8<>input # open for writing, and nobody writes
    "$BRIG" sandbox exec --quiet -- cat <input 3>&- 8>&- >/dev/null &
    brig=$!
    eventually 10 it_is_meant
    kill -INT "$brig"
    ends_within_5s "$brig"
    exec 8>&-
    each_run_ended_once
}

@test "control: not cancelled, the same run ends by itself" {
    run -0 box -- sleep 0.1
    [ "$(receipts 'last | .reason_code')" != CANCELLED ]
}
