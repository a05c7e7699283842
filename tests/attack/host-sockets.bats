#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# B19, B20: no service of the host can be reached over a unix socket, by name or without one.

load attack

setup() {
    common_setup
    mkdir shared
}

teardown() {
    [ -z "${server:-}" ] || kill "$server" 2>/dev/null || true
    wait
}

serve() {
    "$ATTACK/sockets" listen "$1" >"$WORK/said" 3>&- &
    server=$!
    eventually 5 grep -q "listen: worked" "$WORK/said"
}

@test "no socket of the host is visible" {
    run -0 box -- sh -c 'find / -type s 2>/dev/null; echo looked'
    [ "$output" = looked ]
    run -0 box -- cat /proc/net/unix
    [ "$(wc -l <<<"$output")" -le 4 ] # the heading, and the box's own
    [[ $output != */* ]]
}

@test "an abstract socket of the host does not exist inside" {
    serve "@brig-attack-$$"
    run -0 box -- /mnt/attack/sockets connect "@brig-attack-$$"
    answers connect ECONNREFUSED
    run -0 "$ATTACK/sockets" connect "@brig-attack-$$" # control: outside it answers
    answers connect worked
    # control: inside, one's own can be used
    run box -- sh -c "$own_socket"
    answers connect worked
}

@test "a service's socket in a folder to be mounted is refused, not handed in" {
    serve "$WORK/shared/service"
    for access in ro rw; do
        run box --mount "$WORK/shared:/workspace:$access" -- /mnt/attack/sockets connect /workspace/service
        status_is 77
        [ "$(receipts 'last | .reason_code')" = MOUNT_FORBIDDEN ]
    done
    run box --mount "$WORK/shared:/workspace:$access" -- true
    # control: without the service the folder is fine, also with the dead socket in it
    kill "$server"
    wait "$server" || true
    run -0 box --mount "$WORK/shared:/workspace" -- /mnt/attack/sockets connect /workspace/service
    answers connect ECONNREFUSED
}

@test "the host's network and its loopback services are not there" {
    run -0 box -- sh -c 'ls /proc/sys/net/ipv4/conf'
    [ "$(sort <<<"$output" | tr '\n' ' ')" = "all default lo " ]
    run -0 box -- cat /proc/net/tcp
    [ "$(wc -l <<<"$output")" -eq 1 ]
    run box -- bash -c 'exec 3<>/dev/tcp/192.0.2.1/80'
    [ "$status" -ne 0 ]
    says "Network is unreachable" # at once, not after a while
}
