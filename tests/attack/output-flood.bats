#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# D05: a gibibyte of output is counted and hashed in full, kept in part, and costs Brig no memory.

load attack

GIB=1073741824

# resident OPTION… -- CMD…: what Brig needed, in KiB; its output in $WORK/out.
resident() {
    "$ATTACK/measure" "$WORK/resident" "$BRIG" sandbox exec --quiet "$@" >"$WORK/out" || return
    cat "$WORK/resident"
}

@test "with --json: truncated, the true count, the hash of all of it, at most 32 MiB more" {
    expected=$(head -c $GIB /dev/zero | sha256sum | cut -d ' ' -f 1)
    small=$(resident --json -- true)
    large=$(resident --json --timeout 120s -- head -c $GIB /dev/zero)
    output=$(jq -c 'del(.stdout)' "$WORK/out") # bash takes its time over megabytes
    json_is .truncated true
    json_is .stdout_bytes $GIB
    json_is .stdout_hash "sha256:$expected"
    [ "$(jq -r '.stdout // "" | length' "$WORK/out")" -le 10485760 ]
    echo "resident: $small KiB for nothing, $large KiB for a gibibyte"
    [ $((large - small)) -le $((32 * 1024)) ]
    [ "$(receipts 'last | .outcome.stdout_hash')" = "sha256:$expected" ]
    [ "$(receipts 'last | .outcome.stdout_bytes')" = $GIB ]
}

@test "passed through: every byte arrives, in order, and the receipt's hash is that of what arrived" {
    small=$(resident -- true)
    arrived=$("$ATTACK/measure" "$WORK/resident" "$BRIG" sandbox exec --quiet --timeout 120s -- \
        head -c 268435456 /dev/urandom | tee >(wc -c >"$WORK/count") | sha256sum | cut -d ' ' -f 1)
    eventually 5 test -s "$WORK/count"
    [ "$(cat "$WORK/count")" -eq 268435456 ]
    [ "$(receipts 'last | .outcome.stdout_hash')" = "sha256:$arrived" ]
    [ "$(receipts 'last | .outcome.truncated')" = false ] # nothing of it was lost
    [ $(($(cat "$WORK/resident") - small)) -le $((32 * 1024)) ]
}

@test "both streams at once, and a reader that leaves, end well" {
    run -0 bash -c '"$BRIG" sandbox exec --quiet --timeout 3s -- sh -c "yes | head -c 20000000; yes >&2" 2>/dev/null | head -c 10 | wc -c'
    [ "$output" -eq 10 ]
    eventually 30 each_run_ended_once
}

@test "a command that never stops printing ends with its time" {
    status=0
    box --timeout 1s --json -- yes >"$WORK/out" || status=$?
    status_is 124
    output=$(jq -c 'del(.stdout)' "$WORK/out")
    json_is .truncated true
    json_is .timed_out true
}
