#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Servers inside sandboxes, reached by path with a token or with a preview's address: what reaches
# them, what comes back, and what neither side may do.

load common
load sandbox
load kept
load serve

setup() {
    common_setup
    need curl jq perl
    serve
    TOKEN=$(token --scope read --scope run)
    post /v1/sandboxes '{"name":"s"}'
    [ "$http" = 201 ]
    id=$(printf '%s' "$output" | jq -r .sandbox_id)
    api -T "$BRIG_ROOT/tests/flow/port-server.pl" '/v1/sandboxes/s/files?path=/sandbox/tmp/server.pl'
    post /v1/sandboxes/s/exec '{"command":["perl","/sandbox/tmp/server.pl","3000"],"detach":true}'
    [ "$http" = 202 ]
    ready() {
        api '/v1/sandboxes/s/files/stat?path=/sandbox/tmp/ready'
        [ "$http" = 200 ]
    }
    eventually 10 ready
}

teardown() {
    local status=0
    serve_end || status=$?
    destroy_all
    return $status
}

is_status() {
    [ "$http" = "$1" ] || {
        printf 'status is %s, should be %s: %s\n' "$http" "$1" "$output" >&2
        return 1
    }
}

P=/v1/sandboxes/s/ports/3000

# open_preview [JSON]: its path is in $preview.
open_preview() {
    post "$P/preview" "${1-{\}}"
    is_status 201 || return
    preview=$(printf '%s' "$output" | jq -r .path)
    preview=${preview%/}
}

# Without a token.
plain() {
    local path=${!#}
    set -- "${@:1:$#-1}"
    output=$(curl -sS --max-time 60 -w '\n%{http_code}' "$@" "http://127.0.0.1:$PORT$path")
    http=${output##*$'\n'}
    output=${output%$'\n'*}
}

@test "requests and answers pass both ways; nothing of ours goes in, nothing that acts comes out" {
    # What the server sees: its own name, the path as it came, no token, no cookie, no way back.
    api -H 'Cookie: session=1' -H 'X-API-Key: k' -H 'Referer: http://127.0.0.1/secret' -H 'Origin: http://localhost:9' -H 'X-Forwarded-For: 1.2.3.4' -H 'Connection: X-Hop' -H 'X-Hop: 1' -H 'X-App: yes' \
        "$P/echo/a%20b?c=d&c=e"
    is_status 200
    says 'GET /echo/a%20b?c=d&c=e HTTP/1.1'
    says 'Host: localhost:3000'
    says 'X-App: yes'
    says 'origin: http://localhost:3000'
    for word in Authorization Cookie X-API-Key Referer X-Forwarded X-Hop "$TOKEN" localhost:9; do
        [[ ${output,,} != *"${word,,}"* ]] || {
            echo "it saw $word" >&2
            return 1
        }
    done
    api -D head "$P/bad"
    is_status 200
    grep -qi '^content-security-policy: sandbox allow-scripts' head
    [ "$(grep -ci '^content-security-policy' head)" = 1 ]
    not grep -i 'allow-same-origin\|allow-top-navigation' head
    grep -qi '^x-own: yes' head
    grep -qi '^etag: "e"' head
    grep -qi '^cache-control: no-store' head
    grep -qi '^referrer-policy: no-referrer' head
    grep -qi '^content-type: text/html' head
    not grep -i '^set-cookie\|^service-worker\|^clear-site\|^access-control\|^strict-tr\|^www-auth\|^keep-alive\|^x-request-id: mine' head

    head -c 3000000 /dev/zero >big
    api -X PUT -T big "$P/upload"
    [[ $output == 'PUT length 3000000'* ]]
    api -X PATCH -H 'Transfer-Encoding: chunked' -T big "$P/upload"
    [[ $output == 'PATCH chunked 30'* ]]
    api -X DELETE "$P/echo"
    says 'DELETE /echo'
    [ "$(curl -sS -H "Authorization: Bearer $TOKEN" "http://127.0.0.1:$PORT$P/large" | wc -c)" = 8388608 ]
    api "$P/until-close"
    [ "$output" = 'to the end' ]
    api -D head "$P/none"
    is_status 204
    grep -qi '^x-own: 204' head
    api -I "$P/large"
    is_status 200

    # Redirects lead back to the same port, or nowhere: the token must not be carried to us.
    api -D head "$P/redirect?/there"
    is_status 307
    grep -qi "^location: $P/there" head
    api -D head "$P/redirect?..%2F..%2F..%2F..%2Fv1%2Ftokens"
    grep -qi "^location: $P/v1/tokens" head
    api -D head "$P/redirect?http:%2F%2F127.0.0.1:$PORT%2Fv1%2Ftokens"
    is_status 307
    not grep -i '^location' head

    # What is no answer is an error; half an answer shows as one.
    api "$P/garbage"
    refused 503 unavailable
    api "$P/two"
    refused 503 unavailable
    run ! curl -sS -o /dev/null -H "Authorization: Bearer $TOKEN" "http://127.0.0.1:$PORT$P/cut"
    api /v1/sandboxes/s/ports/3001/
    refused 503 unavailable
    says 'nothing listens at port 3001'
    for port in 0 65536 x; do
        api "/v1/sandboxes/s/ports/$port/"
        refused 400 invalid
    done
    api /v1/sandboxes/none/ports/3000/
    refused 404 not_found
    TOKEN=$(token --tenant other) api "$P/echo"
    refused 404 not_found
    TOKEN=$(token --scope read) api "$P/echo"
    refused 403 forbidden
    # A client that leaves in the middle is no matter to anybody.
    run curl -sS --max-time 1 -o /dev/null -H "Authorization: Bearer $TOKEN" "http://127.0.0.1:$PORT$P/stream"
    api "$P/echo"
    is_status 200
    # All of it is one door that was opened, judged and recorded: not one a request.
    doors=$("$BRIG" receipts export | jq -c 'select(.. | objects | select(.verb? == "connect"))' | jq -s 'map(select(.kind == "outcome")) | length')
    [ "$doors" -ge 1 ] && [ "$doors" -le 3 ]
}

@test "a preview opens in a browser without a token, for its port, for its time, and no longer" {
    open_preview
    json_is .url "http://127.0.0.1:$PORT$preview/"
    json_is .sandbox_id "$id"
    receipt=$(printf '%s' "$output" | jq -r .receipt_id)
    "$BRIG" receipts show "$receipt" | jq -e '[.. | objects | select(.verb? == "preview")] | length > 0'
    plain -D head "$preview/bad"
    is_status 200
    grep -qi '^content-security-policy: sandbox' head
    grep -qi '^access-control-allow-origin: \*' head
    not grep -qi '^set-cookie\|allow-credentials' head
    # A page without an origin may fetch from its own server, and its browser may ask before.
    plain -H 'Origin: null' -H "Authorization: Bearer $TOKEN" "$preview/echo"
    is_status 200
    [[ $output != *"$TOKEN"* ]]
    says 'origin: http://localhost:3000'
    plain -X OPTIONS -D head -H 'Origin: null' -H 'Access-Control-Request-Method: PUT' "$preview/echo"
    is_status 204
    grep -qi '^access-control-allow-methods: .*PUT' head
    plain -H 'Host: rebound.example' "$preview/echo"
    refused 403 forbidden
    # Bent anywhere, it is none.
    grant=${preview#/v1/previews/}
    for bent in "A${grant:1}" "${grant%?}0" "${grant%?}" "$grant.x" "${grant#*.}" x; do
        [ "$bent" != "$grant" ] || continue
        plain "/v1/previews/$bent/echo"
        [ "$http" = 404 ] || [ "$http" = 400 ] || {
            echo "$bent: $http" >&2
            return 1
        }
    done
    plain "/v1/previews/${grant%?}$(printf '%s' "${grant: -1}" | tr '0-9a-f' '1-9a-f0')/echo"
    refused 404 not_found

    open_preview '{"ttl_ms":1000}'
    ended() {
        plain "$preview/echo"
        [ "$http" = 404 ]
    }
    eventually 10 ended
    # With the token it was made with, and with the sandbox.
    OLD=$TOKEN
    TOKEN=$(token --scope run)
    open_preview
    words=${TOKEN#brig_}
    plain "$preview/echo"
    is_status 200
    brig token revoke "${words%%_*}"
    plain "$preview/echo"
    refused 404 not_found
    TOKEN=$OLD
    open_preview
    plain "$preview/echo"
    is_status 200
    # A freeze closes it at once, and thawed it is open again.
    brig freeze
    plain "$preview/echo"
    [ "$http" = 403 ] || [ "$http" = 423 ] || [ "$http" = 503 ] || {
        echo "frozen: $http $output" >&2
        return 1
    }
    brig unfreeze
    plain "$preview/echo"
    is_status 200
    api -X DELETE /v1/sandboxes/s
    plain "$preview/echo"
    refused 404 not_found
}

@test "a WebSocket passes through, bytes as they are" {
    open_preview
    PORT=$PORT PREVIEW=$preview perl -MSocket -e '
        socket(my $s, AF_INET, SOCK_STREAM, 0); connect($s, pack_sockaddr_in($ENV{PORT}, inet_aton("127.0.0.1"))) or die;
        $SIG{ALRM} = sub { die "too long" }; alarm 20;
        syswrite $s, "GET $ENV{PREVIEW}/ws HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nOrigin: null\r\n\r\n";
        my $in = ""; while ($in !~ /first$/) { sysread($s, $in, 65536, length $in) or die "ended: $in" }
        my $sent = join "", map { chr($_ % 256) } 1 .. 300000; my $at = 0; my $back = "";
        while (length $back < length $sent) {
            $at += syswrite $s, substr($sent, $at, 10000) if $at < length $sent;
            sysread($s, $back, 65536, length $back) or die "ended";
        }
        print $in, "\n", $back eq $sent ? "same" : "other", "\n";' >got
    grep -q '^HTTP/1.1 101' got
    grep -qi '^sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=' got
    not grep -qi '^set-cookie' got
    [ "$(tail -n 1 got)" = same ]
    # The end of either side is the end of the other.
    api "$P/echo"
    is_status 200
}
