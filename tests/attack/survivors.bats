#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# E01, E02: when a run is over nothing of it is left, however it tried to stay.

load attack

setup() {
    common_setup
    name=$(a_name)
}

# Deadline 10 s, in which also a busy machine makes them; a quarter of a second between the polite signal
# and the other one; and then all of them are gone when the command is, which they would never be.
@test "1000 detached, signal-ignoring, half of them stopped processes are gone in time" {
    run box --pids 1200 --timeout 10s --json -- /mnt/attack/linger "$name" 1000 detach ignore stop
    none_called "$name"
    status_is 124
    json_is .timed_out true
    json_is .reason_code LIMIT_TIME
    [[ $(jq -r .stdout <<<"$output") == *": 1000" ]] # control: they all were there
    [ "$(jq .duration_ms <<<"$output")" -lt 60000 ]
    nothing_left
}

@test "what a command leaves in the background ends with it, and stdio is released" {
    status=0
    output=$(timeout -k 5 100 "$BRIG" sandbox exec --quiet --timeout 200s --mount "$ATTACK:/mnt/attack:ro" -- \
        sh -c "/mnt/attack/linger $name 20 detach ignore & sleep 0.2; echo done; exit 7") || status=$?
    [[ $output == *"done"* ]]
    [ "$status" -eq 7 ]
    eventually 1 none_called "$name"
    each_run_ended_once
}

@test "a background process that keeps the streams open does not keep the caller" {
    run -0 timeout 25 bash -c '"$BRIG" sandbox exec --quiet -- sh -c "sleep 1000 & echo finished" | cat'
    [ "$output" = finished ]
}

@test "a command that was stopped ends at its deadline" {
    run box --timeout 1s -- sh -c 'kill -STOP $$'
    status_is 124
    run box --timeout 1s -- sh -c 'trap "" TERM INT HUP QUIT; while :; do :; done'
    status_is 124
    each_run_ended_once
}

@test "a command that ends at once on the signal may still say a word" {
    eventually 10 says_goodbye # a busy machine may take longer than its quarter of a second
}

says_goodbye() {
    run box --timeout 2s -- sh -c 'trap "echo goodbye; exit 0" TERM; while :; do sleep 0.05; done'
    status_is 124
    says goodbye
}

@test "a reader that does not read does not hold up the end at the deadline" {
    mkfifo pipe
    exec 8<>pipe # open for reading, and nobody reads
    began=$SECONDS
    run timeout 100 bash -c '"$BRIG" sandbox exec --quiet --timeout 1s -- yes >"$1/pipe"' sh "$WORK"
    exec 8>&-
    status_is 124
    [ $((SECONDS - began)) -lt 90 ] # its own end, not that of our patience
    each_run_ended_once
    [ "$(receipts length)" -eq 2 ]
    nothing_left
}
