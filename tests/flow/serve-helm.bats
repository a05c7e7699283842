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
    serve_end || status=$?
    destroy_all
    return $status
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

@test "what is malformed is refused, with a receipt" {
    serve
    TOKEN=$(token)
    client malformed
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
