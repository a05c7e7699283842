#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A14: the host's keyrings cannot be seen or used, and nobody's key quota is.

load attack

@test "the key calls are refused by the filter" {
    run -0 box -- /mnt/attack/calls key
    refuses EPERM
    [ "$(wc -l <<<"$output")" -eq 3 ]
    # control: the kernel itself would answer otherwise
    run -0 "$ATTACK/calls" key
    answers add_key EFAULT
    answers request_key EFAULT
}

@test "no key is listed inside" {
    [ -e /proc/keys ] || skip "this kernel has no keyrings"
    run -0 box -- /mnt/attack/open read /proc/keys /proc/key-users
    refuses 'empty|EACCES'
}

@test "the user's key quota is untouched" {
    [ -e /proc/key-users ] || skip "this kernel has no keyrings"
    before=$(awk -v u="$(id -u):" '$1 == u { print $4, $5 }' /proc/key-users)
    for _ in 1 2 3; do
        run -0 box -- /mnt/attack/calls key
    done
    [ "$before" = "$(awk -v u="$(id -u):" '$1 == u { print $4, $5 }' /proc/key-users)" ]
}
