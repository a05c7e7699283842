#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The ledger followed over HTTP: no receipt is lost, none comes twice, whoever writes and however
# slowly it is read.

load common
load sandbox
load kept
load serve

setup() {
    common_setup
    need curl
    serve
    TOKEN=$(token)
}

teardown() {
    local status=0
    serve_end || status=$?
    return $status
}

# follow FILE ARGS… QUERY: curl in the background; its pid is in $follower, the answer's head in FILE.head.
follow() {
    local to=$1 query=${!#}
    shift
    set -- "${@:1:$#-1}"
    curl -sSN --max-time 300 -D "$to.head" -H "Authorization: Bearer $TOKEN" "$@" "http://127.0.0.1:$PORT/v1/receipts/tail$query" >"$to" 2>"$to.err" 3>&- &
    follower=$!
}

lines_are() {
    [ "$(wc -l <"$1")" -ge "$2" ]
}

is_chain() {
    jq -s -e '[.[].seq] as $s | $s == [range($s[0]; $s[0] + ($s | length))]' "$1" >/dev/null
}

@test "what this daemon and others append is told once, in order, as an export has it" {
    post /v1/runs '{"command":["true"]}'
    follow all '?after=0'
    every=$follower
    follow new ''
    fresh=$follower
    follow events -H 'Accept: text/event-stream' '?after=0'
    events=$follower
    # token create, intent and outcome of a run: the first lines are there without anything new
    eventually 10 lines_are all 4
    # Whoever follows what is new is there before there is something new.
    eventually 10 test -s new.head
    (for _ in 1 2 3 4 5; do post /v1/runs '{"command":["true"]}'; done) &
    runs=$!
    for _ in 1 2 3; do "$BRIG" sandbox exec --quiet -- true; done
    wait "$runs"
    eventually 15 lines_are all 20
    eventually 15 lines_are new 16
    is_chain all
    is_chain new
    brig receipts export >export
    head -n "$(wc -l <all)" export | cmp - all
    tail -n "$(wc -l <new)" export | cmp - new
    brig verify all >/dev/null
    kill "$every" "$fresh" "$events"
    wait "$every" "$fresh" "$events" || true
    sed -n 's/^data: //p' events | cmp - all
    sed -n 's/^id: //p' events >ids
    jq -r .seq all | cmp - ids
    # Whoever comes back with the number of an event goes on behind it; it counts more than after.
    api -H 'Accept: text/event-stream' -H 'Last-Event-ID: 18' '/v1/receipts/tail?after=0&limit=2'
    [ "$(printf '%s\n' "$output" | sed -n 's/^id: //p' | tr '\n' ' ')" = "19 20 " ]
    api '/v1/receipts/tail?after=18&limit=2'
    [ "$(printf '%s\n' "$output" | jq -r .seq | tr '\n' ' ')" = "19 20 " ]
    api -H 'Last-Event-ID: x' /v1/receipts/tail
    refused 400 invalid
    api '/v1/receipts/tail?wait_ms=50'
    [ "$http" = 200 ]
    [ -z "$output" ]
    # Nothing of another tenant is in it, and the scope counts.
    TOKEN=$(token --tenant other) api '/v1/receipts/tail?after=0&wait_ms=50'
    [ -z "$output" ]
    TOKEN=$(token --scope read) api '/v1/receipts/tail?after=0&wait_ms=50'
    refused 403 forbidden
}

@test "slow readers hold nobody up and miss nothing; who leaves is let go; there is a ceiling" {
    need perl
    for _ in $(seq 40); do post /v1/runs '{"command":["true"]}'; done
    # A reader that takes a few bytes at a time, with the smallest buffer there is.
    PORT=$PORT TOKEN=$TOKEN perl -MSocket -e '
        socket(my $s, AF_INET, SOCK_STREAM, 0); setsockopt($s, SOL_SOCKET, SO_RCVBUF, 2048);
        connect($s, pack_sockaddr_in($ENV{PORT}, inet_aton("127.0.0.1"))) or die;
        syswrite $s, "GET /v1/receipts/tail?after=0&limit=80 HTTP/1.0\r\nHost: localhost\r\nAuthorization: Bearer $ENV{TOKEN}\r\n\r\n";
        while (sysread $s, my $b, 997) { print $b; select undef, undef, undef, 0.001 }' >slow 3>&- &
    slow=$!
    post /v1/runs '{"command":["true"]}'
    [ "$http" = 200 ]
    wait "$slow"
    sed '1,/^\r$/d' slow >lines
    [ "$(wc -l <lines)" = 80 ]
    is_chain lines

    pids=
    for i in $(seq 32); do
        follow "t$i" '?after=0'
        pids="$pids $follower"
    done
    for i in $(seq 32); do
        eventually 10 lines_are "t$i" 80
    done
    api '/v1/receipts/tail?wait_ms=1'
    refused 429 limit
    kill $pids
    wait $pids || true
    free() {
        api '/v1/receipts/tail?wait_ms=1'
        [ "$http" = 200 ]
    }
    eventually 10 free
    # A daemon that is told to stop does not wait for those who follow.
    follow last '?after=0'
    eventually 10 lines_are last 80
    before=$SECONDS
    serve_end
    [ $((SECONDS - before)) -lt 200 ] # curl would follow for 300
    wait "$follower" || true
}
