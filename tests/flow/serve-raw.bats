#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Output as it is: Accept: application/octet-stream.

load common
load sandbox
load kept
load serve

setup() {
    common_setup
    need curl
    need jq
}

teardown() {
    local status=0
    serve_end || status=$?
    destroy_all
    return $status
}

# raw PATH COMMAND [CURL OPTION…]: the body to "got", the head and what comes behind the body to "heads".
raw() {
    local path=$1 command=$2
    shift 2
    curl -sSN --max-time 60 -D heads -o got -H "Authorization: Bearer $TOKEN" -H 'Accept: application/octet-stream' \
        -H 'Content-Type: application/json' -d "{\"command\":$command}" "$@" "${SCHEME:-http}://127.0.0.1:$PORT$path"
}

field() {
    tr -d '\r' <heads | sed -n "s/^$1: //Ip"
}

# Bytes of all kinds, more than any buffer on the way holds; a part of them in small pieces.
noise='["perl","-e","$| = 1; binmode STDOUT; my $x = 7; for my $i (1..3000) { my $s = q(); for (1..($i % 40 ? 300 : 9000)) { $x = ($x * 1103515245 + 12345) & 0x7fffffff; $s .= chr($x >> 16 & 255) } print $s } print STDERR qq(aside\n); exit 3"]'

@test "all bytes of standard output come as they are, and how it ended behind them" {
    serve
    TOKEN=$(token)
    raw /v1/runs "$noise"
    [[ "$(head -n 1 heads)" == "HTTP/1.1 200"* ]]
    [ "$(field content-type)" = application/octet-stream ]
    [ "$(field brig-exit-code)" = 3 ]
    [ "$(wc -c <got)" = $((75 * 9000 + 2925 * 300)) ]
    [ "$(field brig-stdout-hash)" = "sha256:$(sha256sum <got | cut -d' ' -f1)" ]
    cp got first
    # Count and hash of both streams are in the receipt that is named.
    run=$(field brig-run-id)
    api "/v1/receipts/$(field brig-receipt-id)"
    json_is .kind outcome
    json_is .run_id "$run"
    # The same to a reader who takes its time, and over the other socket.
    raw /v1/runs "$noise" --limit-rate 1M
    cmp first got
    [ "$(field brig-exit-code)" = 3 ]
    raw /v1/runs "$noise" --unix-socket "$WORK/d.sock"
    cmp first got
    [ "$(field brig-exit-code)" = 3 ]
}

@test "the same over TLS, where nothing can be handed on as pages" {
    need openssl
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=brig -addext subjectAltName=IP:127.0.0.1 \
        -keyout tls.key -out tls.pem 2>/dev/null
    serve --tls-cert tls.pem --tls-key tls.key
    TOKEN=$(token)
    SCHEME=https raw /v1/runs "$noise" --cacert tls.pem
    [ "$(field brig-exit-code)" = 3 ]
    [ "$(wc -c <got)" = $((75 * 9000 + 2925 * 300)) ]
    [ "$(field brig-stdout-hash)" = "sha256:$(sha256sum <got | cut -d' ' -f1)" ]
}

@test "a kept sandbox, a signal, no output, no such command" {
    serve
    TOKEN=$(token)
    post /v1/sandboxes '{"name":"kept"}'
    raw /v1/sandboxes/kept/exec '["sh","-c","echo hello; kill -9 $$"]'
    [ "$(cat got)" = hello ]
    [ "$(field brig-signal)" = 9 ]
    [ -z "$(field brig-exit-code)" ]
    raw /v1/sandboxes/kept/exec '["true"]'
    [ "$(field brig-exit-code)" = 0 ]
    [ ! -s got ]
    raw /v1/sandboxes/kept/exec '["no-such-program"]'
    [ "$(field brig-exit-code)" = 127 ]
    # What is older has no place for what comes behind.
    raw /v1/sandboxes/kept/exec '["echo","old"]' --http1.0
    [ "$(cat got)" = old ]
    [ -n "$(field brig-run-id)" ]
    [ -z "$(field brig-exit-code)" ]
}

@test "what is refused is an error as any other" {
    cat >p.yaml <<'Y'
version: 1
default: allow
commands:
  - {name: no-rm, deny: [rm, "**"]}
Y
    serve --policy p.yaml
    TOKEN=$(token)
    raw /v1/runs '["rm","x"]'
    [[ "$(head -n 1 heads)" == "HTTP/1.1 403"* ]]
    [ "$(field content-type)" = application/json ]
    jq -e '.error.reason_code == "POLICY_DENY"' got
    raw /v1/sandboxes/nobody/exec '["true"]'
    [[ "$(head -n 1 heads)" == "HTTP/1.1 404"* ]]
}

@test "output that ends early does not look complete" {
    serve
    TOKEN=$(token)
    : >got
    raw /v1/runs '["sh","-c","echo begun; sleep 300"]' 3>&- &
    client=$!
    eventually 10 grep -q begun got
    kill -KILL "$DAEMON"
    wait "$DAEMON" || true
    DAEMON=
    status=0
    wait "$client" || status=$?
    [ "$status" -ne 0 ]
    [ -z "$(field brig-exit-code)" ]
}
