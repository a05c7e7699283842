#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Many programs, one ledger: no gap, no fork, nothing lost.

load common
load sandbox

# at_once PROCESSES RUNS ARGS…: so many loops beside each other; fails when one run did.
at_once() {
    local processes=$1 runs=$2 pids=() i
    shift 2
    for ((i = 0; i < processes; i++)); do
        (
            for ((j = 0; j < runs; j++)); do
                timeout -k 5 "$PATIENCE" "$BRIG" sandbox exec --quiet "$@" >/dev/null </dev/null || exit
            done
        ) &
        pids+=($!)
    done
    for i in "${pids[@]}"; do
        wait "$i"
    done
}

@test "8 programs x 200 runs append to one chain" {
    at_once 8 200 --provider mock -- true
    chain_holds 3200
    [ "$(receipts_of intent)" -eq 1600 ]
    [ "$(receipts_of outcome)" -eq 1600 ]
    [ "$(ledger 'SELECT count(DISTINCT run_id) FROM receipts')" -eq 1600 ]
}

@test "8 programs x 10 sandboxes, none in the way of another" {
    at_once 8 10 -- sh -c 'echo $$ >/tmp/x && [ "$(cat /tmp/x)" = $$ ]'
    chain_holds 160
    nothing_is_left
}

@test "the first use by many at once makes one key and one ledger" {
    at_once 8 1 --provider mock -- true
    chain_holds 16
    [ "$(ledger "SELECT count(DISTINCT json_extract(body, '\$.key_id')) FROM receipts")" -eq 1 ]
    [ "$(stat -c %a "$BRIG_HOME/receipts.key")" = 600 ]
}

@test "reading goes on while others write" {
    at_once 4 20 --provider mock -- true &
    writers=$!
    while kill -0 "$writers" 2>/dev/null; do
        [ ! -e "$BRIG_HOME/receipts.db" ] || chain_holds
    done
    wait "$writers"
    chain_holds 160
}
