#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# HELM's protocol: what its SDK and adapters send, and what they must get.

load common
load sandbox
load kept
load serve

setup() {
    common_setup
    need node
    need curl
}

teardown() {
    local status=0
    [ -z "$UPSTREAM" ] || kill "$UPSTREAM" 2>/dev/null || true
    serve_end || status=$?
    destroy_all
    return $status
}

UPSTREAM=

# A fake model on loopback, with TLS when it gets a certificate and a key; its address is in $url.
upstream() {
    node "$BRIG_ROOT/tests/flow/helm-upstream.mjs" "$@" >upstream.port 2>upstream.err </dev/null 3>&- &
    UPSTREAM=$!
    eventually 10 test -s upstream.port
    url=http://127.0.0.1:$(cat upstream.port)
}

client() {
    node "$BRIG_ROOT/tests/flow/helm-client.mjs" "http://127.0.0.1:$PORT" "$TOKEN" "$@"
}

strict_policy() {
    cat >policy.yaml <<'END'
version: 1
default: allow
commands:
  - deny: [rm, "**"]
    reason: nothing is removed here
  - deny: ["tool:delete_all", "**"]
  - deny: ["tool:llm_inference", '{"model":"forbidden-model"}']
  - ask: [git, push, "**"]
network_policies: {}
END
}

@test "both kinds of questions are judged, answered and recorded" {
    strict_policy
    serve --policy policy.yaml
    TOKEN=$(token)
    client allowed
    client denied
    client evaluate
    run -0 brig receipts verify --json
    json_is .integrity intact
    json_is .open_runs 0
    # What is frozen is told no.
    brig freeze
    client frozen
    brig unfreeze
    client allowed
}

@test "a crowd of questions, of two tenants: each has its own answer and its own receipt" {
    strict_policy
    serve --policy policy.yaml
    TOKEN=$(token --tenant other)
    client crowd 3>&- &
    local other=$!
    TOKEN=$(token)
    client crowd
    wait "$other"
    run -0 brig receipts verify --json
    json_is .integrity intact
    # Three kinds of seven are allowed, of 350; the token's receipts came before, and nothing is doubled.
    brig receipts list --limit 1000 --json >list.json
    [ "$(grep -o '"kind": *"decision"' list.json | wc -l)" = 150 ]
}

@test "what is malformed is refused, with a receipt" {
    serve
    TOKEN=$(token)
    client malformed
}

# raw TEXT: what a connection that says this gets.
raw() {
    printf '%b' "$1" | timeout 20 node -e '
        const s = require("net").connect(Number(process.argv[1]), "127.0.0.1");
        process.stdin.on("data", (d) => s.write(d));
        s.on("data", (d) => process.stdout.write(d));
        s.on("error", () => {});' "$PORT"
}

@test "what is too large, or cannot be read, is DENIED on its routes, and only there" {
    serve
    TOKEN=$(token)
    head -c 5000000 /dev/zero | tr '\0' ' ' >large
    for path in /v1/chat/completions /v1/tools/evaluate; do
        http=$(curl -sS -D head -o body -w '%{http_code}' -H "Authorization: Bearer $TOKEN" -H 'Expect:' --data-binary @large "http://127.0.0.1:$PORT$path")
        [ "$http" = 413 ]
        grep -qi '^x-helm-status: DENIED' head
        run raw "POST $path HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n"
        says '400 Bad Request'
        [[ "${output,,}" == *"x-helm-status: denied"* ]]
    done
    http=$(curl -sS -D head -o body -w '%{http_code}' -H "Authorization: Bearer $TOKEN" -H 'Expect:' --data-binary @large "http://127.0.0.1:$PORT/v1/runs")
    [ "$http" = 413 ]
    run ! grep -qi '^x-helm-status' head
    run raw "POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n"
    says '400 Bad Request'
    [[ "${output,,}" != *"x-helm-status"* ]]
}

@test "the calls of the Mastra adapter; only the approved vector runs, once" {
    serve
    TOKEN=$(token)
    client mastra
    client bound
    # Somebody else's approval is nobody's.
    a=$TOKEN
    b=$(token --principal other)
    id=$(curl -sS -H "Authorization: Bearer $a" -d '{}' "http://127.0.0.1:$PORT/sandbox" | jq -r .sandboxId)
    content=$(jq -nc --arg id "$id" '{type:"sandbox_exec_intent",sandbox_id:$id,command:["id"]}')
    post /v1/chat/completions "$(jq -nc --arg c "$content" '{model:"helm-governance",messages:[{role:"user",content:$c}]}')"
    [ "$http" = 200 ]
    TOKEN=$b post "/sandbox/$id/process/execute" '{"command":"id"}'
    refused 403 forbidden
    TOKEN=$a post "/sandbox/$id/process/execute" '{"command":"id"}'
    [ "$http" = 200 ]
}

@test "the SDK's operations answer from the ledger; a changed bundle fails" {
    serve
    TOKEN=$(token)
    client proof
    client evidence
    client conformance
    # A bundle of another tenant is signed by nobody this one trusts.
    curl -sS -H "Authorization: Bearer $TOKEN" -d '{}' -o mine.tgz "http://127.0.0.1:$PORT/api/v1/evidence/export"
    TOKEN=$(token --tenant other)
    post /v1/runs '{"command":["true"]}'
    api -F bundle=@mine.tgz /api/v1/evidence/verify
    json_is .verdict FAIL
    json_is .checks.signatures FAIL
    json_is .checks.causal_chain PASS
    TOKEN=$(token --scope run)
    post /api/v1/evidence/export '{}'
    refused 403 forbidden
}

@test "calls in answers of another model are judged; what is denied is not in them" {
    strict_policy
    upstream
    echo upstream-secret >key
    chmod 600 key
    serve --policy policy.yaml --upstream "$url/v1/" --upstream-key-file key
    TOKEN=$(token)
    client proxy "$url"
    client proxyStream "$url"
    # It is still there, and well.
    api /v1/whoami
    [ "$http" = 200 ]
    run -0 brig receipts verify --json
    json_is .integrity intact
}

@test "an upstream that is not there, not verified or not allowed" {
    serve --upstream http://127.0.0.1:1/v1
    TOKEN=$(token)
    post /v1/chat/completions '{"model":"m","messages":[]}'
    refused 502 unavailable
    json_is .error.reason_code UPSTREAM_FAILED
    serve_end
    # Over TLS only whoever is the one that was named.
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=upstream -addext subjectAltName=IP:127.0.0.1 -keyout tls.key -out tls.pem 2>/dev/null
    upstream tls.pem tls.key
    port=$(cat upstream.port)
    for case in "tls.pem 127.0.0.1 200" "tls.pem localhost 502" "/dev/null 127.0.0.1 502"; do
        read -r trusted host status <<<"$case"
        SSL_CERT_FILE=$trusted SSL_CERT_DIR=/nowhere serve --upstream "https://$host:$port/v1"
        post /v1/chat/completions '{"model":"text","messages":[]}'
        [ "$http" = "$status" ] || { echo "$case: $output" >&2; return 1; }
        [ "$status" = 200 ] || [[ $output == *certificate* ]]
        serve_end
    done
    for url in http://example.org/v1 ftp://127.0.0.1/ https:// 'http://127.0.0.1:99999' 'https://a b/' 'http://127.0.0.1/?x'; do
        run -64 brig serve --listen 127.0.0.1:0 --upstream "$url"
        says "upstream"
    done
    echo key >key
    chmod 644 key
    run -64 brig serve --listen 127.0.0.1:0 --upstream http://127.0.0.1/ --upstream-key-file key
    says "chmod 600"
}

@test "a custodian's signed word lets exactly what was asked happen, once" {
    strict_policy
    openssl genpkey -algorithm ed25519 -out custodian.pem
    serve --policy policy.yaml
    TOKEN=$(token)
    client nobodyApproves
    serve_end
    brig approvals enroll carol --public-key "$(openssl pkey -in custodian.pem -pubout -outform DER | tail -c 32 | od -An -tx1 | tr -d ' \n')"
    serve --policy policy.yaml
    client approve custodian.pem
    run -0 brig receipts verify --json
    json_is .integrity intact
}

@test "what a custodian confirmed is bound by content; what changed since does not run" {
    strict_policy
    sed -i 's/  - ask: .*/  - ask: [sh, "**"]/' policy.yaml
    openssl genpkey -algorithm ed25519 -out custodian.pem
    brig approvals enroll carol --public-key "$(openssl pkey -in custodian.pem -pubout -outform DER | tail -c 32 | od -An -tx1 | tr -d ' \n')"
    serve --policy policy.yaml
    TOKEN=$(token)
    printf 'version: 1\ncommands: [{deny: [rm, "**"]}]\n' >ceiling.yaml
    client target custodian.pem
    run -0 brig receipts verify --json
    json_is .integrity intact
}
