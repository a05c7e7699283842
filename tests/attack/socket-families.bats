#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# C07: unix, IPv4, IPv6 and the routing netlink socket; TCP and UDP. Nothing else.

load attack

@test "other families do not exist, also with bits above the 32 the kernel reads" {
    run -0 box -- /mnt/attack/sockets families
    for family in 1 2 10 16; do
        answers "family $family" worked # control
        output=$(grep -vx "family $family: worked" <<<"$output")
    done
    [ "$(wc -l <<<"$output")" -eq 60 ]
    refuses EAFNOSUPPORT
}

@test "other protocols do not exist" {
    run -0 box -- /mnt/attack/sockets protocols
    for name in tcp udp route; do
        answers "$name" worked # control
    done
    output=$(grep -vE '^(tcp|udp|route):' <<<"$output")
    # Raw access under the names of allowed protocols: the kernel's own refusal.
    answers "raw tcp" EPERM
    answers "packet under the old name" EPERM
    without "raw tcp" "packet under the old name"
    refuses EPROTONOSUPPORT
}

@test "interfaces and routes can be asked for, not changed" {
    need ip
    run -0 box -- ip -o link show
    [ "$(wc -l <<<"$output")" -eq 1 ]
    says "lo:"
    run box -- ip link add dummy0 type dummy
    [ "$status" -ne 0 ]
    says "Operation not permitted"
    run box -- ip link set lo down
    [ "$status" -ne 0 ]
    says "Operation not permitted"
}

@test "servers on the loopback interface work" {
    run -0 box -- bash -c 'perl -MIO::Socket::INET -e "
        my \$s = IO::Socket::INET->new(Listen => 1, LocalAddr => q(127.0.0.1), LocalPort => 8080) or die;
        if (fork) { my \$c = \$s->accept; print \$c qq(hello\n); close \$c; wait }
        else { my \$c = IO::Socket::INET->new(PeerAddr => q(127.0.0.1:8080)) or die; print <\$c> }"'
    [ "$output" = hello ]
}
