#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A profile with "sockets: none": no process inside can make a socket of any kind, whoever built the
# sandbox. What may then be shared is out of reach.

load attack

setup() {
    common_setup
    printf 'version: 1\nsockets: none\n' >profile.yaml
}

# Every kind of socket an ordinary sandbox has, and none here.
no_sockets() {
    run -0 box -- /mnt/attack/sockets families
    for family in 1 2 10 16; do
        answers "family $family" worked # control: without the profile
    done
    run -0 box --profile profile.yaml -- /mnt/attack/sockets families
    for family in 1 2 10 16; do
        answers "family $family" EACCES
    done
    refuses 'EACCES|EAFNOSUPPORT'
}

no_pairs() {
    run -0 box -- perl -MSocket -e 'socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, 0) and print "made"'
    says made # control
    run -0 box --profile profile.yaml -- \
        perl -MSocket -e 'socketpair(my $a, my $b, AF_UNIX, SOCK_STREAM, 0) and print "made"; print "$!\n"'
    [ "$output" = "Permission denied" ]
}

@test "no socket can be made" {
    no_sockets
    no_pairs
}

@test "--sockets none is the same wall" {
    run -0 box --sockets none -- /mnt/attack/sockets families
    refuses 'EACCES|EAFNOSUPPORT'
    flag=$(receipts 'last | .posture.sandbox_spec_hash')
    run -0 box --profile profile.yaml -- true
    [ "$flag" = "$(receipts 'last | .posture.sandbox_spec_hash')" ]
    run -0 box -- true
    [ "$flag" != "$(receipts 'last | .posture.sandbox_spec_hash')" ]
    run "$BRIG" sandbox exec --sockets all -- true
    status_is 64
    says none
}

@test "a kept sandbox made with --sockets none stays so" {
    id=$("$BRIG" sandbox create --sockets none --mount "$ATTACK:/mnt/attack:ro" --json | jq -r .sandbox_id)
    run -0 "$BRIG" sandbox exec --quiet "$id" -- /mnt/attack/sockets families
    refuses 'EACCES|EAFNOSUPPORT'
    run -0 "$BRIG" sandbox explain "$id"
    says "none (--sockets none)"
    says "drift      none"
    run "$BRIG" sandbox exec --sockets none "$id" -- true
    status_is 64
    says "belongs to the sandbox"
    run -0 "$BRIG" sandbox recreate "$id" --json
    id=$(jq -r .sandbox_id <<<"$output")
    run -0 "$BRIG" sandbox exec --quiet "$id" -- /mnt/attack/sockets families
    refuses 'EACCES|EAFNOSUPPORT'
    run -0 "$BRIG" sandbox destroy "$id"
}

@test "what works without sockets works" {
    run -0 box --profile profile.yaml -- sh -c 'echo a | cat; ls /proc/self/fd | wc -l; sleep 0 & wait; hostname'
    says sandbox
}

@test "the posture says so, and the same with and without a spawner" {
    spec() {
        "$1" sandbox exec --quiet --profile profile.yaml -- true </dev/null &&
            receipts 'last | .posture | .sandbox_spec_hash + .egress_policy_hash + .evidence'
    }
    plain=$(spec "$BRIG")
    [ "$plain" = "$(spec "$BRIG_BUILD/tests/flow/spawner/brig-spawner")" ]
    run -0 "$BRIG" sandbox exec --quiet -- true
    [ "$plain" != "$(receipts 'last | .posture | .sandbox_spec_hash + .egress_policy_hash + .evidence')" ]
}

@test "made by a spawner: no socket can be made" {
    BRIG=$BRIG_BUILD/tests/flow/spawner/brig-spawner
    no_sockets
    no_pairs
}

@test "made by a spawner: the network namespace is not the machine's, and nothing in it is up" {
    BRIG=$BRIG_BUILD/tests/flow/spawner/brig-spawner
    run -0 box --profile profile.yaml -- readlink /proc/self/ns/net
    [ "$output" != "$(readlink /proc/self/ns/net)" ]
    run -0 box --profile profile.yaml -- cat /proc/self/net/dev
    [ "$(tail -n +3 <<<"$output" | wc -l)" -eq 1 ]
    run -0 box --profile profile.yaml -- cat /proc/self/net/if_inet6
    [ -z "$output" ] # an interface that is up would have an address
    run -0 box -- cat /proc/self/net/if_inet6
    says lo # control
}
