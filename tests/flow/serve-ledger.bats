#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Requests of a daemon that read the ledger while others append to it.

load common
load sandbox
load serve

setup() {
    common_setup
    need curl jq sqlite3
    without_daemon "it starts its own"
}

teardown() {
    serve_end
}

# at_once STATUS COMMAND: twenty times in a row by eight at once, and always answered so.
at_once() {
    local status=$1 i pids=() failed=0
    for i in 1 2 3 4 5 6 7 8; do
        (for _ in $(seq 20); do
            "$2" "$i"
            [ "$http" = "$status" ] || {
                echo "$http $output"
                exit 1
            }
        done) 3>&- 4>&- &
        pids+=($!)
    done
    for i in "${pids[@]}"; do
        wait "$i" || failed=1
    done
    return $failed
}

ledger_is_sound() {
    serve_end
    [ "$(ledger 'PRAGMA integrity_check')" = ok ] && chain_holds
}

asks_to_run() {
    post /v1/runs '{"command":["/usr/bin/true"]}'
}

@test "whether an agent is released is looked up for many at once" {
    printf 'version: 1\nrequires_release: agent\n' >ceiling.yaml
    brig policy ceiling set ceiling.yaml
    serve
    TOKEN=$(token --scope run)
    at_once 403 asks_to_run
    ledger_is_sound
}

runs_or_reads() {
    if [ $(($1 % 2)) = 0 ]; then
        asks_to_run
    else
        api /v1/usage
    fi
}

@test "what was used is summed up while others run" {
    serve
    TOKEN=$(token --scope run --scope read)
    at_once 200 runs_or_reads
    ledger_is_sound
}
