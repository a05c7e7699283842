#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A06: no capability, no way to get one, a filter, no groups, and never root of the host.

load attack

status_line() {
    awk -v key="$1:" '$1 == key { $1 = ""; sub(/^ /, ""); print }' <<<"$output"
}

@test "all capability sets are empty, no_new_privs and seccomp are on, no groups" {
    run -0 box -- cat /proc/self/status
    for set in CapInh CapPrm CapEff CapBnd CapAmb; do
        [ "$(status_line $set)" = 0000000000000000 ]
    done
    [ "$(status_line NoNewPrivs)" = 1 ]
    [ "$(status_line Seccomp)" = 2 ]
    [ -z "$(status_line Groups)" ]
    [ "$(status_line Uid)" = "1000 1000 1000 1000" ]
    # control: outside it is otherwise
    [ "$(awk '/^Seccomp:/ { print $2 }' /proc/self/status)" != 2 ] || skip "already under a filter"
    [ "$(awk '/^CapBnd:/ { print $2 }' /proc/self/status)" != 0000000000000000 ]
}

@test "seen from the host, no process of the sandbox is root, nor PID 1" {
    name=$(a_name)
    start_box -- /mnt/attack/linger "$name" 3
    eventually 10 grep -q "$name" "$WORK/said"
    for pid in $(grep -lx "$name" /proc/[0-9]*/comm | sed 's,[^0-9],,g') \
        "$(child_of "$(child_of "$box")")"; do
        read -r _ real effective saved fs < <(grep ^Uid: "/proc/$pid/status")
        read -r _ greal geffective gsaved gfs < <(grep ^Gid: "/proc/$pid/status")
        for id in $real $effective $saved $fs $greal $geffective $gsaved $gfs; do
            [ "$id" -ne 0 ]
            if is_root; then
                [ "$id" -ge 65536 ] # nobody else's either
            fi
        done
        for set in CapInh CapPrm CapEff CapBnd CapAmb; do
            [ "$(awk -v k="$set:" '$1 == k { print $2 }' "/proc/$pid/status")" = 0000000000000000 ]
        done
    done
    kill "$box"
    wait "$box" || true
}

@test "there is no other identity to change to" {
    for id in 0 1 65534 1001; do
        for call in setuid setgid; do
            run -0 box -- perl -MPOSIX -e "POSIX::$call($id) ? print q(worked) : print \"\$!\""
            [ "$output" = "Invalid argument" ] # not mapped, so it is not even a number
        done
    done
    run -0 box -- perl -e '$) = "1000 0"; print "$!"'
    [ "$output" = "Operation not permitted" ]
    run -0 box -- perl -MPOSIX -e 'POSIX::setuid(1000) and print q(worked)' # control
    [ "$output" = worked ]
}

@test "the id maps cannot be written again" {
    run -0 box -- /mnt/attack/open write /proc/self/uid_map /proc/self/gid_map /proc/self/setgroups
    for file in uid_map gid_map; do
        run box -- sh -c "echo 0 0 1 >/proc/self/$file"
        [ "$status" -ne 0 ]
        [[ $output == *"Permission denied"* || $output == *"not permitted"* ]]
    done
}

@test "a set-user-id program gains nothing" {
    run -0 box -- sh -c 'find /usr/bin -perm -4000 | head -n 1'
    [ -n "$output" ] || skip "no set-user-id program on this machine"
    run box -- su -c id
    [ "$status" -ne 0 ]
    run -0 box -- grep -w /usr /proc/self/mounts
    says nosuid
}
