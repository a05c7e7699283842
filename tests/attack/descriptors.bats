#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A01: the first instruction sees descriptors 0, 1 and 2, and none leads outside the root.

load attack

@test "descriptors the caller has open are not there inside" {
    exec 7<"$BATS_TEST_FILENAME" 8<"$BRIG_ROOT" 9>"$WORK/outside"
    run -0 box -- sh -c 'for fd in /proc/self/fd/*; do echo "${fd##*/}"; done'
    exec 7<&- 8<&- 9>&-
    # The shell's glob opens the folder itself: one more, which is gone afterwards.
    [ "$output" = $'0\n1\n2\n3' ]
}

@test "the descriptors above 2 are closed, not merely unlisted" {
    exec 7<"$BATS_TEST_FILENAME"
    for fd in 3 4 5 6 7 8 9 10 63 511 512 1023; do
        run box -- bash -c "true <&$fd"
        exec_status=$status
        [ "$exec_status" -ne 0 ]
        says "Bad file descriptor"
    done
    exec 7<&-
    # control: those that are meant to be there
    run -0 box -- bash -c 'true <&0 && true >&1 && true >&2'
}

@test "0, 1 and 2 are pipes, not the caller's files" {
    echo secret >"$WORK/in"
    run -0 bash -c '"$BRIG" sandbox exec --quiet -- sh -c "readlink /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 >&2" \
        <"$1/in" 2>"$1/err" >"$1/out"' sh "$WORK"
    [ "$(grep -c '^pipe:' "$WORK/err")" -eq 3 ]
    [ "$(grep -vc '^pipe:' "$WORK/err")" -eq 0 ]
    # control: bytes still arrive
    run -0 bash -c '"$BRIG" sandbox exec --quiet -- cat <"$1/in"' sh "$WORK"
    [ "$output" = secret ]
}

@test "a descriptor cannot be walked up out of the root" {
    run -0 box -- sh -c 'cd /proc/self/cwd/../../../../../.. && ls'
    inside=$output
    run -0 box -- ls /
    [ "$inside" = "$output" ]
    run -0 box -- sh -c 'stat -c %d:%i /proc/self/root/ /.. /proc/self/root/../..'
    [ "$(sort -u <<<"$output" | wc -l)" -eq 1 ]
}
