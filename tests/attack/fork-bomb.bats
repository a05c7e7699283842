#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# D01: a fork bomb stays within its number of processes, the receipt names the limit, and nobody
# else notices.

load attack

@test "the number of processes stops at the limit, with the kernel's own answer" {
    run box --pids 32 --timeout 4s -- /mnt/attack/linger "$(a_name)" 100
    says "fork: EAGAIN"
    made=$(sed -n 's/^atk.*: //p' <<<"$output")
    [ "$made" -ge 16 ]
    [ "$made" -le 32 ]
    # control: fewer than the limit are possible
    run box --pids 128 --timeout 1s -- /mnt/attack/linger "$(a_name)" 100
    [[ $output != *EAGAIN* ]]
}

@test "a bomb that ignores everything ends with its time, and nothing is left of it" {
    name=$(a_name)
    run box --pids 64 --timeout 2s --json -- /mnt/attack/linger "$name" 10 detach ignore bomb
    status_is 124
    json_is .timed_out true
    none_called "$name"
    nothing_left
}

@test "a command that ran into the limit and ended by itself has it in its receipt" {
    run box --pids 16 --json -- bash -c 'for i in $(seq 40); do sleep 5 & done 2>/dev/null; kill %1; exit 0'
    json_is .reason_code LIMIT_PIDS
    [ "$(receipts 'last | .reason_code')" = LIMIT_PIDS ]
    [ "$(receipts 'last | .outcome | has("limits_unseen")')" = false ]
    # control: one that did not
    run -0 box --pids 16 --json -- true
    json_is .reason_code POLICY_DEFAULT_ALLOW
}

@test "where nobody counts refusals, a receipt that names no limit says that it might have been reached" {
    run -0 box --pids 16 --json -- true
    case $(jq -r .limits.pids.means <<<"$output") in
    rlimit) [ "$(receipts 'last | .outcome.limits_unseen | join(" ")')" = pids ] ;;
    cgroup) [ "$(receipts 'last | .outcome | has("limits_unseen")')" = false ] ;;
    *) false ;;
    esac
}

@test "meanwhile the host forks, and another sandbox runs" {
    name=$(a_name)
    start_box --pids 64 -- /mnt/attack/linger "$name" 5 bomb
    eventually 10 eval '[ "$(called "$name")" -gt 40 ]'
    for _ in 1 2 3 4 5; do
        run -0 box -- sh -c 'for i in 1 2 3 4 5 6 7 8; do /bin/true & done; wait; echo fine'
        [ "$output" = fine ]
        [ "$(called "$name")" -le 64 ]
    done
    kill -TERM "$box"
    wait "$box" || true
    eventually 5 none_called "$name"
    each_run_ended_once
}

@test "threads count as well" {
    run box --pids 32 --timeout 4s -- /mnt/attack/linger "$(a_name)" 100 threads
    says "fork: EAGAIN"
    made=$(sed -n 's/^atk.*: //p' <<<"$output")
    [ "$made" -ge 16 ]
    [ "$made" -le 32 ]
}
