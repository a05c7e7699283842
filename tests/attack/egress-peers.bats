#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# From one sandbox into another: only where the rules of both say so, only to the port both name,
# never to another tenant's, and never to what egress itself listens on. "front" connects, "back" has
# a server at 8080 of its own loopback.

load ../flow/common
load ../flow/sandbox

front_rules='    endpoints: [{sandbox: "back*", ports: [8080, 8081]}]'
back_peers='network_peers: {front: {sandbox: "front*", port: 8080}}'

setup() {
    common_setup
    need curl perl jq
}

teardown() {
    local home each
    for home in "$BRIG_HOME" "$BATS_TEST_TMPDIR/theirs"; do
        [ -d "$home" ] || continue
        for each in $(BRIG_HOME=$home "$BRIG" sandbox list --json | jq -r '.sandboxes[].sandbox_id'); do
            BRIG_HOME=$home "$BRIG" sandbox destroy "$each" >/dev/null || true
        done
    done
}

# make NAME LINES…: a kept sandbox under a policy of these lines; its id
make() {
    local name=$1
    shift
    printf '%s\n' 'version: 1' "$@" >"$name.yaml"
    brig sandbox create --name "$name" --policy "$name.yaml" --json | jq -er .sandbox_id
}

make_front() {
    make "${1:-front}" 'network_policies:' '  back:' "${2:-$front_rules}" '    binaries: [{path: /usr/bin/curl}]'
}

# serve ID [PORT]: answers with the path it was asked for and where from; /hold begins and never ends
serve() {
    brig sandbox exec --detach "$1" -- perl -MIO::Socket::INET -e '
        $SIG{CHLD} = "IGNORE";
        my $l = IO::Socket::INET->new(Listen => 64, LocalAddr => "127.0.0.1", LocalPort => $ARGV[0]) or die;
        while (my $c = $l->accept) {
            next if fork;
            my ($method, $path) = split / /, scalar <$c>;
            while (<$c>) { last if /^\r?$/ }
            $c->autoflush(1);
            print $c "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n$method $path from ", $c->peerhost, "\n";
            while ($path eq "/hold") { print $c "still\n" or exit; sleep 1 }
            exit;
        }' "${2:-8080}" >/dev/null
    eventually 60 reaches_itself "$1" "${2:-8080}"
}

reaches_itself() {
    brig sandbox exec --quiet "$1" -- perl -MIO::Socket::INET -e \
        'exit !IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $ARGV[0])' "$2" </dev/null
}

# ask ID URL [OPT…]: curl in that sandbox, into $output
ask() {
    local id=$1 url=$2
    shift 2
    run timeout -k 5 "$PATIENCE" "$BRIG" sandbox exec --quiet "$id" -- curl -sS --max-time 30 "$@" "$url" </dev/null
}

pair() {
    back=$(make back "$back_peers")
    front=$(make_front)
    serve "$back"
}

@test "control: what both allow is reached, by proxy, tunnel, SOCKS and past the proxy" {
    pair
    ask "$front" http://back.sandbox.internal:8080/proxy
    [ "$output" = "GET /proxy from 127.0.0.2" ]
    ask "$front" http://back.sandbox.internal:8080/tunnel --proxytunnel
    [ "$output" = "GET /tunnel from 127.0.0.2" ]
    ask "$front" http://back.sandbox.internal:8080/socks --noproxy '' --proxy socks5h://127.0.0.1:3128
    [ "$output" = "GET /socks from 127.0.0.2" ]
    ask "$front" http://back.sandbox.internal:8080/past --noproxy '*'
    [ "$output" = "GET /past from 127.0.0.2" ]
}

@test "many at once each get their own connection" {
    pair
    run timeout -k 5 "$PATIENCE" "$BRIG" sandbox exec --quiet "$front" -- bash -c '
        for i in $(seq 24); do curl -sS --max-time 60 "http://back.sandbox.internal:8080/$i" & done; wait' </dev/null
    for i in $(seq 24); do
        grep -qx "GET /$i from 127.0.0.2" <<<"$output"
    done
    [ "$(wc -l <<<"$output")" -eq 24 ]
}

@test "both sides tell of it: counters, receipts, events" {
    pair
    run --separate-stderr timeout -k 5 "$PATIENCE" "$BRIG" sandbox exec --json "$front" -- \
        curl -sS --max-time 30 http://back.sandbox.internal:8080/told </dev/null
    json_is .egress.requests 1
    json_is '.egress.bytes_out > 20' true
    out=$(jq .egress.bytes_out <<<"$output")
    in=$(jq .egress.bytes_in <<<"$output")
    ask "$front" http://back.sandbox.internal:8081/
    [[ $output == *EGRESS_PEER* ]]
    # What went out at the one came in at the other.
    brig sandbox destroy "$back" >/dev/null 2>&1
    run ledger "SELECT body FROM receipts WHERE json_extract(body, '$.kind') = 'outcome' AND json_extract(body, '$.action') = 'destroy'"
    json_is .outcome.egress.requests 1
    json_is .outcome.egress.refused 1
    json_is .outcome.egress.bytes_in "$out"
    json_is .outcome.egress.bytes_out "$in"
    grep -h "$back" "$BRIG_HOME"/egress/journal.* | grep -q 'front.sandbox.internal.*network_peers.front'
    grep -h "$back" "$BRIG_HOME"/egress/journal.* | grep -q EGRESS_PEER
}

@test "without the other's consent nobody comes in" {
    pair
    silent=$(make back-silent 'network_policies: {none: {endpoints: []}}')
    serve "$silent"
    ask "$front" http://back-silent.sandbox.internal:8080/
    [[ $output == *'"EGRESS_PEER"'*"does not let this one in"* ]]
    ask "$front" http://back-silent.sandbox.internal:8080/ --noproxy '*'
    [ "$status" -ne 0 ]
    # somebody else by name
    stranger=$(make_front stranger)
    ask "$stranger" http://back.sandbox.internal:8080/
    [[ $output == *'"EGRESS_PEER"'* ]]
    # and one whose id is named in place of a name
    named=$(make back-named "network_peers: {one: {sandbox: $stranger, port: 8080}}")
    serve "$named"
    ask "$stranger" http://back-named.sandbox.internal:8080/
    [ "$output" = "GET / from 127.0.0.2" ]
    ask "$front" http://back-named.sandbox.internal:8080/
    [[ $output == *'"EGRESS_PEER"'* ]]
}

@test "consent opens no way back, and no other sandbox without a rule" {
    pair
    serve "$front"
    run brig sandbox exec --quiet "$back" -- curl -sS --max-time 30 http://front.sandbox.internal:8080/ </dev/null
    [[ $output == *EGRESS_NO_RULES* ]]
    other=$(make other 'network_peers: {all: {sandbox: "*", port: 8080}}')
    serve "$other"
    ask "$front" http://other.sandbox.internal:8080/
    [[ $output == *EGRESS_NO_RULE* ]]
    ask "$front" "http://$other.sandbox.internal:8080/"
    [[ $output == *EGRESS_NO_RULE* ]]
}

@test "another port is refused, by whichever side does not name it" {
    pair
    serve "$back" 8081
    serve "$back" 8082
    ask "$front" http://back.sandbox.internal:8081/
    [[ $output == *'"EGRESS_PEER"'*"not at port 8081"* ]]
    ask "$front" http://back.sandbox.internal:8082/
    [[ $output == *EGRESS_PORT* ]]
    # control
    ask "$front" http://back.sandbox.internal:8080/
    [ "$output" = "GET / from 127.0.0.2" ]
}

@test "rules look into what is said there" {
    back=$(make back "$back_peers")
    front=$(make_front front '    endpoints: [{sandbox: back, port: 8080, protocol: rest, rules: [{allow: {method: GET, path: /open}}]}]')
    serve "$back"
    ask "$front" http://back.sandbox.internal:8080/open
    [ "$output" = "GET /open from 127.0.0.2" ]
    ask "$front" http://back.sandbox.internal:8080/shut
    [[ $output == *EGRESS_REQUEST* ]]
    ask "$front" http://back.sandbox.internal:8080/open --data x
    [[ $output == *EGRESS_REQUEST* ]]
    ask "$front" http://back.sandbox.internal:8080/open --header "Host: other.sandbox.internal" --noproxy '*'
    [[ $output == *EGRESS_HOST_MISMATCH* ]]
}

@test "another tenant's sandbox, one that is gone and one that never was are the same: unknown" {
    pair
    theirs=$(BRIG_HOME=$BATS_TEST_TMPDIR/theirs make backtheirs 'network_peers: {all: {sandbox: "*", port: 8080}}')
    BRIG_HOME=$BATS_TEST_TMPDIR/theirs serve "$theirs"
    for name in backtheirs back-never; do
        ask "$front" "http://$name.sandbox.internal:8080/"
        [[ $output == *EGRESS_PEER_UNKNOWN* ]]
    done
    closed=$(make back-closed) # no rules, no network
    serve "$closed"
    ask "$front" http://back-closed.sandbox.internal:8080/
    [[ $output == *EGRESS_PEER_UNKNOWN* ]]
    # control, then the same once it is gone
    ask "$front" http://back.sandbox.internal:8080/
    [ "$output" = "GET / from 127.0.0.2" ]
    brig sandbox destroy "$back" >/dev/null 2>&1
    ask "$front" http://back.sandbox.internal:8080/
    [[ $output == *EGRESS_PEER_UNKNOWN* ]]
}

@test "one name for two is none; the id is the one" {
    first=$(make back "$back_peers")
    second=$(make back "$back_peers")
    serve "$first"
    front=$(make_front front "    endpoints: [{sandbox: back, port: 8080}, {sandbox: $first, port: 8080}]")
    ask "$front" http://back.sandbox.internal:8080/
    [[ $output == *EGRESS_PEER_AMBIGUOUS* ]]
    ask "$front" "http://$first.sandbox.internal:8080/id"
    [ "$output" = "GET /id from 127.0.0.2" ]
    brig sandbox destroy "$second" >/dev/null 2>&1
    ask "$front" http://back.sandbox.internal:8080/
    [ "$output" = "GET / from 127.0.0.2" ]
}

@test "no loops: not to itself, not to what egress listens on, not by an address" {
    loop=$(make_front back-loop '    endpoints: [{sandbox: "*", ports: [3128, 8080, 15001, 15002]}]')
    ask "$loop" http://back-loop.sandbox.internal:8080/
    [[ $output == *EGRESS_PEER_SELF* ]]
    for port in 3128 15001 15002; do
        printf 'version: 1\nnetwork_peers: {all: {sandbox: "*", port: %s}}\n' "$port" >own.yaml
        run brig sandbox create --policy own.yaml
        [ "$status" -ne 0 ]
        says "port $port is a listener of egress itself"
    done
    back=$(make back 'network_peers: {all: {sandbox: "*", port: 8080}}')
    serve "$back"
    for port in 3128 15001 15002; do
        ask "$loop" "http://back.sandbox.internal:$port/"
        [[ $output == *'"EGRESS_PEER"'* ]]
    done
    ask "$loop" http://127.0.0.2:8080/
    [[ $output == *EGRESS_ADDRESS* ]]
    # control
    ask "$loop" http://back.sandbox.internal:8080/
    [ "$output" = "GET / from 127.0.0.2" ]
}

@test "where sockets come from is nothing for those inside, and crowding it hurts nobody else" {
    pair
    run brig sandbox exec --quiet "$back" -- perl -MIO::Socket::INET -e '
        my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.2", PeerPort => 15002) or die "closed";
        print $s "GET / HTTP/1.1\r\n\r\n"; print "said: ", join("", <$s>), "."' </dev/null
    [[ $output == "said: ."* ]]
    calm=$(make back-calm "$back_peers")
    serve "$calm"
    brig sandbox exec --detach "$back" -- perl -MIO::Socket::INET -e '
        while (1) { push @s, IO::Socket::INET->new(PeerAddr => "127.0.0.2", PeerPort => 15002); shift @s if @s > 300 }' >/dev/null
    ask "$front" http://back-calm.sandbox.internal:8080/
    [ "$output" = "GET / from 127.0.0.2" ]
    ask "$front" http://back.sandbox.internal:8080/ # it may get through, or be told
    [[ $output == "GET / from 127.0.0.2" || $output == *EGRESS_UNREACHABLE* ]]
    ask "$front" http://back-calm.sandbox.internal:8080/
    [ "$output" = "GET / from 127.0.0.2" ]
}

@test "nothing listens: told, at once" {
    make back "$back_peers" >/dev/null
    front=$(make_front)
    ask "$front" http://back.sandbox.internal:8080/
    [[ $output == *EGRESS_UNREACHABLE* ]]
}

@test "consent that is withdrawn closes what is open" {
    pair
    "$BRIG" sandbox exec --quiet --timeout 5m "$front" -- curl -sSN http://back.sandbox.internal:8080/hold >held 2>&1 </dev/null 3>&- &
    job=$!
    eventually 60 grep -q still held
    printf 'version: 1\nnetwork_peers: {other: {sandbox: other, port: 8080}}\n' >less.yaml
    run --separate-stderr brig policy apply --sandbox "$back" less.yaml --json
    status_is 0
    eventually 60 gone "$job"
    ask "$front" http://back.sandbox.internal:8080/
    [[ $output == *'"EGRESS_PEER"'* ]]
    brig policy apply --sandbox "$back" back.yaml >/dev/null 2>&1
    ask "$front" http://back.sandbox.internal:8080/
    [ "$output" = "GET / from 127.0.0.2" ]
}

@test "a sandbox that ends takes what leads into it along" {
    pair
    "$BRIG" sandbox exec --quiet --timeout 5m "$front" -- curl -sSN http://back.sandbox.internal:8080/hold >held 2>&1 </dev/null 3>&- &
    job=$!
    eventually 60 grep -q still held
    brig sandbox destroy "$back" >/dev/null 2>&1
    eventually 60 gone "$job"
}

gone() {
    not kill -0 "$1" 2>/dev/null
}
