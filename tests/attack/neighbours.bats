#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A08, A10, A19: other processes cannot be seen, looked into, changed or signalled: neither the
# supervisor, nor the host's, nor another sandbox's.

load attack

setup() {
    common_setup
    name=$(a_name)
    sleep 1000 3>&- &
    victim=$!
}

teardown() {
    kill "$victim" 2>/dev/null || true
    [ -z "${other:-}" ] || kill "$other" 2>/dev/null || true
    wait
}

@test "nothing can be done to processes of the host" {
    run -0 box -- /mnt/attack/neighbours "$victim" "$$" "$PPID"
    # By the filter, before it even asks whom; or because there is no such process.
    refuses 'EPERM|ESRCH|ENOENT'
    answers "$victim ptrace" EPERM
    answers "$victim process_vm_readv" EPERM
    answers "$victim pidfd_getfd" EPERM
    answers "$victim kcmp" EPERM
    answers "$victim kill" ESRCH
    answers "$victim prlimit" ESRCH
    kill -0 "$victim"
    # control: outside the same program kills it
    run "$ATTACK/neighbours" "$victim"
    answers "$victim kill" worked
    eventually 5 eval '! kill -0 "$victim" 2>/dev/null'
}

@test "nothing can be done to the supervisor, by its number inside or outside" {
    run -0 box -- /mnt/attack/neighbours 1
    without "1 pidfd_open" # a number, not an access
    refuses 'EPERM|EACCES'
    answers "1 ptrace" EPERM
    answers "1 writes mem" EACCES
    answers "1 reads fd" EACCES
}

@test "nothing can be done to another sandbox" {
    start_box -- /mnt/attack/linger "$name" 2
    other=$box
    eventually 10 grep -q "$name" "$WORK/said"
    pid=$(pid_called "$name")
    outer=$(child_of "$other")
    run -0 box -- /mnt/attack/neighbours "$pid" "$other" "$outer" "$(child_of "$outer")"
    refuses 'EPERM|ESRCH|ENOENT'
    run box -- sh -c 'kill -9 -1; kill -STOP -1; true'
    kill -0 "$other"
    [ "$(called "$name")" -eq 3 ]
}

@test "killing everyone kills nobody outside, and PID 1 does not care" {
    run box -- sh -c 'kill -KILL 1; kill -STOP 1; kill -SEGV 1; echo still here'
    says "still here"
    status_is 0
    run box -- sh -c 'sleep 100 & kill -KILL -1'
    kill -0 "$victim"
    each_run_ended_once
}

@test "/proc shows the sandbox's own processes only, and no secret in them" {
    export CANARY=canary-$RANDOM$RANDOM
    run -0 box -- sh -c 'ls -d /proc/[0-9]* | wc -l; cat /proc/[0-9]*/cmdline | tr "\0" "\n"'
    [ "${lines[0]}" -le 4 ]
    [[ $output != *sleep* ]]
    run -0 box -- sh -c 'cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline 2>/dev/null; echo looked'
    [[ $output != *"$CANARY"* ]]
    run box -- grep -l canary -r /proc/1/ /proc/self/environ
    [[ $output != *"$CANARY"* ]]
    # control: asked for by name it is there
    run -0 box --env CANARY -- sh -c 'cat /proc/self/environ'
    [[ $output == *"$CANARY"* ]]
}

@test "the host's processes are not counted, timed or named anywhere in /proc" {
    run -0 box -- sh -c "ls /proc/$victim; ls /proc/$$; cat /proc/$victim/comm; true"
    refuses "No such file or directory"
    run -0 box -- cat /proc/sys/kernel/ns_last_pid /proc/loadavg
    run box -- sh -c 'echo 5 >/proc/sys/kernel/ns_last_pid'
    [ "$status" -ne 0 ]
}

@test "a sandbox that strangles its own PID 1 still ends with a receipt" {
    run box --timeout 5s -- sh -c 'prlimit --pid 1 --nofile=0:0 --cpu=1:1 --fsize=0:0 --as=1:1; echo done; sleep 1; exit 3'
    each_run_ended_once
    [ "$(receipts length)" -eq 2 ]
    nothing_left
}
