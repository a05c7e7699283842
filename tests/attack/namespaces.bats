#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A15: no new namespace from inside, by any call and with any bits.

load attack

@test "unshare, clone and setns are refused with the filter's error" {
    run -0 box -- /mnt/attack/namespaces
    answers "clone of nothing new" worked # control
    answers clone3 ENOSYS                 # so that the C library falls back to clone
    answers "unshare user" EPERM
    answers "clone user with high bits" EPERM
    without "clone of nothing new" clone3
    [ "$(wc -l <<<"$output")" -eq 23 ]
    refuses EPERM
}

@test "control: outside, a user namespace can be had" {
    run -0 "$ATTACK/namespaces"
    answers "unshare user" worked
    answers "clone user" worked
}

@test "a second user namespace is refused to the tool as well" {
    need unshare
    run box -- unshare --user true
    status_is 1
    says "Operation not permitted"
    [ "$(receipts 'last | .outcome.exit_code')" = 1 ]
}

@test "threads and processes still work" {
    run -0 box -- bash -c 'for i in 1 2 3; do (echo $i) & done; wait'
    [ "$(sort <<<"$output" | tr '\n' ' ')" = "1 2 3 " ]
}
