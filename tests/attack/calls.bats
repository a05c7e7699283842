#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# C01-C04, C06: the kernel's wide and dangerous parts answer with the filter's error, whatever the
# kernel has: the arguments are such that the kernel itself would mostly say something else.

load attack

@test "io_uring is refused" {
    run -0 box -- /mnt/attack/calls uring
    refuses EPERM
    run -0 "$ATTACK/calls" uring # control: outside the kernel looks at the arguments
    answers io_uring_setup EFAULT
}

@test "bpf, perf, userfaultfd, fanotify and the like are refused" {
    run -0 box -- /mnt/attack/calls surface
    refuses EPERM
    [ "$(wc -l <<<"$output")" -ge 16 ]
    run -0 "$ATTACK/calls" surface
    answers perf_event_open EFAULT
    answers move_pages ESRCH
}

@test "modules, kexec, port access, clock and host name are refused" {
    run -0 box -- /mnt/attack/calls machine
    refuses EPERM
    [ "$(wc -l <<<"$output")" -ge 14 ]
}

@test "old and new mount calls are refused" {
    run -0 box -- /mnt/attack/calls mount
    refuses EPERM
    [ "$(wc -l <<<"$output")" -eq 11 ]
    run -0 "$ATTACK/calls" mount
    answers chroot EFAULT
    answers open_tree EINVAL
}

@test "file handles are refused" {
    run -0 box -- /mnt/attack/calls handle
    refuses EPERM
    run -0 "$ATTACK/calls" handle
    answers name_to_handle_at EINVAL
}

@test "calls that work on oneself outside are refused inside" {
    run -0 box -- /mnt/attack/calls to-oneself
    refuses EPERM
    [ "$(wc -l <<<"$output")" -eq 7 ]
    run -0 "$ATTACK/calls" to-oneself
    refuses worked
}

@test "calls the filter does not know answer as if the kernel were older" {
    run -0 box -- /mnt/attack/calls later
    refuses ENOSYS
}

@test "foreign calling conventions end the program" {
    [ "$(uname -m)" = x86_64 ] || skip "only x86-64 has others"
    run box -- /mnt/attack/calls x32
    status_is 159 # SIGSYS
    run box -- /mnt/attack/calls int80
    status_is 159
    [ "$(receipts 'last | .outcome.signal')" = 31 ]
}

@test "a further filter can only take away" {
    run -0 box -- sh -c 'grep Seccomp_filters /proc/self/status'
    run -0 box -- bash -c 'exec 3</dev/null; echo fine' # control: ordinary programs run
    [ "$output" = fine ]
}
