#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A06, B01, C01 to C07 in a sandbox that stays: its second command, and what runs detached in it,
# meet the walls that a one-shot sandbox has.

load attack

setup() {
    common_setup
    id=$("$BRIG" sandbox create --json --mount "$ATTACK:/mnt/attack:ro" | jq -r .sandbox_id)
    kept -- true </dev/null
}

teardown() {
    "$BRIG" sandbox destroy "$id" 2>/dev/null
}

kept() {
    "$BRIG" sandbox exec "$id" --quiet "$@"
}

@test "every attempt is answered as in a one-shot sandbox" {
    for program in calls namespaces sockets; do
        box -- "/mnt/attack/$program" </dev/null >one 2>&1 || true
        kept -- "/mnt/attack/$program" </dev/null >other 2>&1 || true
        [ -s one ]
        diff one other
    done
}

@test "the same for a detached command" {
    box -- /mnt/attack/calls </dev/null >one 2>&1 || true
    "$BRIG" sandbox exec "$id" --detach -- /mnt/attack/calls
    "$BRIG" sandbox logs "$id" --follow >other 2>&1
    diff one other
}

@test "no capability, no new privileges, a filter, no groups, never root outside" {
    run -0 kept -- grep -E '^(Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs|Seccomp|Groups):' /proc/self/status </dev/null
    for set in Inh Prm Eff Bnd Amb; do
        says "Cap$set:	0000000000000000"
    done
    says "NoNewPrivs:	1"
    says "Seccomp:	2"
    if is_root; then
        grep -qxE 'Groups:[[:space:]]*' <<<"$output"
    fi
    name=$(a_name)
    kept --keep -- sh -c "cp /bin/sleep /tmp/$name; /tmp/$name 100 >/dev/null 2>&1 &" </dev/null || true
    pid=$("$BRIG" sandbox show "$id" | jq .pid)
    [ "$(awk '/^Uid:/ { print ($2 != 0 && $3 != 0 && $4 != 0 && $5 != 0) }' "/proc/$pid/status")" -eq 1 ]
}

@test "no sysctl of the machine is writable" {
    run kept -- sh -c 'for f in kernel/core_pattern kernel/modprobe kernel/hostname vm/overcommit_memory \
        net/ipv4/ip_forward fs/file-max; do [ -w /proc/sys/$f ] && echo "writable $f"
        (echo 1 >/proc/sys/$f) 2>/dev/null && echo "wrote $f"; done; echo looked' </dev/null
    [ "$output" = looked ]
}

@test "PID 1 and the keepers are closed to the commands" {
    run kept -- sh -c 'for p in /proc/1 /proc/$PPID; do
        ls -l $p/fd $p/root $p/exe >/dev/null 2>&1 && echo "open $p"
        cat $p/mem $p/environ >/dev/null 2>&1 && echo "read $p"; done; echo looked' </dev/null
    [ "$output" = looked ]
}

@test "neither the sandbox's folder nor its sockets are to be seen from inside" {
    run kept -- sh -c 'find / -xdev \( -name "$1" -o -name execs -o -name control -o -name "*.lock" \) 2>/dev/null |
        grep -v -e ^/proc -e ^/usr -e ^/var/lib -e ^/etc; grep -c "$1" /proc/self/mountinfo /proc/net/unix; true' sh "$id" </dev/null
    [[ $output != *control* && $output != *execs* ]]
}
