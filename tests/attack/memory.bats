#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# D02: the memory limit holds for every kind of memory, ends only the sandbox it belongs to, and the
# receipt says so.

load attack

teardown() {
    [ -z "${other:-}" ] || kill "$other" 2>/dev/null || true
    wait
}

# over_limit KIND: 192 MiB of it in a sandbox that may have 64.
over_limit() {
    run box --memory 64M --timeout 15s --json -- /mnt/attack/memory "$1" 192
    json_is .oom_killed true
    json_is .reason_code LIMIT_MEMORY
    [[ $(jq -r .stdout <<<"$output") != *kept* ]]
    [ "$(receipts 'last | .outcome.oom_killed')" = true ]
    [ "$(receipts 'last | .reason_code')" = LIMIT_MEMORY ]
}

# within_limit KIND: the control.
within_limit() {
    run -0 box --memory 64M --timeout 15s --json -- /mnt/attack/memory "$1" 16
    json_is .oom_killed false
    json_is .exit_code 0
}

@test "private memory" {
    over_limit anon
    within_limit anon
}

@test "shared memory" {
    over_limit shared
    within_limit shared
}

@test "memory files that are written to and never mapped" {
    run box --memory 64M --timeout 15s --json -- /mnt/attack/memory memfd 192
    held_or_refused memfd
}

@test "memory files of a process that hides its descriptors" {
    run box --memory 64M --timeout 15s --json -- /mnt/attack/memory hidden-memfd 192
    held_or_refused hidden-memfd
}

@test "memory files on their way through a socket" {
    run box --memory 64M --timeout 15s --json -- /mnt/attack/memory memfd-in-flight 192
    held_or_refused memfd-in-flight
}

@test "segments of System V nobody is attached to" {
    run box --memory 64M --timeout 15s --json -- /mnt/attack/memory sysv 192
    held_or_refused sysv
}

# Where no cgroup counts them, kinds of memory that nobody could count are not to be had at all.
held_or_refused() {
    if [ "$(jq -r .oom_killed <<<"$output")" = true ]; then
        json_is .reason_code LIMIT_MEMORY
        within_limit "$1"
    else
        json_is .limits.memory_bytes.means watch
        json_is .exit_code 1
        [[ $(jq -r .stdout <<<"$output") == *": "@(ENOSYS|EPERM)* ]]
    fi
}

@test "files of a file system in memory" {
    # Its own size is below the limit, so it is full before the limit is reached ...
    run box --memory 64M --timeout 15s --json -- /mnt/attack/memory tmpfs 192
    json_is .exit_code 1
    json_is .stdout "write: ENOSPC"
    # ... and what is in it counts like any other memory.
    run box --memory 64M --timeout 15s --json -- sh -c \
        'head -c 30M /dev/zero >/dev/shm/x; exec /mnt/attack/memory anon 48'
    json_is .oom_killed true
    run -0 box --memory 64M --json -- sh -c 'head -c 16M /dev/zero >/dev/shm/x; /mnt/attack/memory anon 16'
    json_is .oom_killed false
}

@test "private copies of a file's pages" {
    over_limit private-file
    within_limit private-file
}

@test "many processes, each of them small" {
    over_limit many
    within_limit many
}

@test "only that sandbox is ended" {
    name=$(a_name)
    start_box --memory 64M -- /mnt/attack/linger "$name" 2
    other=$box
    eventually 10 grep -q "$name" "$WORK/said"
    for kind in anon shared; do
        run box --memory 64M --timeout 15s --json -- /mnt/attack/memory "$kind" 192
        json_is .oom_killed true
    done
    kill -0 "$other"
    [ "$(called "$name")" -eq 3 ]
}

@test "the machine's score for the out-of-memory killer cannot be lowered" {
    run box -- sh -c 'echo -1000 >/proc/self/oom_score_adj'
    [ "$status" -ne 0 ]
    says "Permission denied"
    run -0 box -- cat /proc/self/oom_score_adj # control
}
