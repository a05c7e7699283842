#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What a person must confirm: bound to exactly that, once, and never by whoever asked.

load common
load sandbox
load kept
load serve

setup() {
    common_setup
    printf 'version: 1\ncommands:\n  - allow: [cat]\n  - ask: [echo, "**"]\n' >ask.yaml
    echo 'correct horse battery' >pass
    chmod 600 pass
}

teardown() {
    local status=0
    serve_end || status=$?
    destroy_all
    return $status
}

# ask WORDS…: brig sandbox exec under that policy; the approval is in $approval.
ask() {
    run brig sandbox exec --json --policy ask.yaml -- "$@"
    approval=$(jq -r '.approval_id // empty' <<<"$output")
}

@test "what asks waits; confirmed by a custodian exactly that runs, once" {
    ask echo one
    [ "$status" -eq 77 ]
    json_is .verdict ASK
    receipt_is .status PENDING
    receipt_is .approval.approval_id "$approval"
    first=$approval
    ask echo one
    [ "$approval" = "$first" ]
    run -0 brig approvals show "$first"
    json_is .state pending
    json_is '.subject.command | join(" ")' "echo one"
    run -0 brig approvals list
    says "echo one"

    # He who asked cannot confirm; nor can a stranger, nor a wrong passphrase.
    run -77 brig approvals confirm "$first"
    says "whoever asks cannot answer"
    receipt_is .reason_code APPROVAL_FAILED
    run -66 brig approvals confirm "$first" --as nobody --passphrase-file pass
    run -0 brig approvals enroll anna --passphrase-file pass
    echo 'wrong horse battery' >wrong
    run -77 brig approvals confirm "$first" --as anna --passphrase-file wrong
    says "that is not the passphrase"
    run -0 brig approvals confirm "${first:0:8}" --as anna --passphrase-file pass --comment fine
    says "confirmed $first, by custodian:anna"
    receipt_is .action approve
    receipt_is .principal custodian:anna
    receipt_is .outcome.approval.comment fine
    receipt_is '.outcome.approval.custodian_signature | length' 128
    run -75 brig approvals confirm "$first" --as anna --passphrase-file pass
    says "is confirmed already"

    # Anything else asks anew.
    ask echo two
    [ "$status" -eq 77 ]
    [ "$approval" != "$first" ]
    run brig sandbox exec --json --policy ask.yaml --env A=1 -- echo one
    [ "$(jq -r .approval_id <<<"$output")" != "$first" ]
    echo '  - allow: [date]' >>ask.yaml
    ask echo one
    [ "$approval" != "$first" ]
    sed -i '$d' ask.yaml

    ask echo one
    [ "$status" -eq 0 ]
    json_is .stdout one
    json_is .reason_code APPROVAL_CONFIRMED
    receipt_is .approval.by custodian:anna
    ask echo one
    [ "$status" -eq 77 ]
    [ "$approval" != "$first" ]
    run -0 brig approvals show "$first"
    json_is .state used
    run -0 brig receipts verify
}

@test "rejected stays rejected; whoever asked may take it back" {
    ask echo one
    run -0 brig approvals reject "$approval" --comment "not today"
    ask echo one
    [ "$status" -eq 77 ]
    json_is .reason_code APPROVAL_REJECTED
    json_is .reason "rejected by uid:$(id -u): not today"
    run -0 brig approvals list --state rejected --json
    json_is '.approvals | length' 1
}

@test "custodians choose custodians; their keys are of no use without the passphrase" {
    run -0 brig approvals enroll anna --passphrase-file pass --json
    json_is .signs_here true
    echo 'another passphrase' >second
    run -77 brig approvals enroll ben --passphrase-file second
    says "one of them has to enroll ben"
    run -77 brig approvals enroll ben --passphrase-file second --by anna --by-passphrase-file second
    run -0 brig approvals enroll ben --passphrase-file second --by anna --by-passphrase-file pass
    run -75 brig approvals enroll ben --passphrase-file second --by anna --by-passphrase-file pass
    run -64 brig approvals enroll x --passphrase-file <(echo short) --by anna --by-passphrase-file pass
    run -64 brig approvals enroll 'a b' --passphrase-file second --by anna --by-passphrase-file pass
    run -0 brig approvals custodians --json
    json_is '.custodians | map(.name) | join(",")' anna,ben
    run ! grep -rqF 'correct horse' "$BRIG_HOME"
}

@test "what is shown cannot steer a terminal, and nothing waits for ever" {
    ask echo $'a\e[2Jb'
    run -0 brig approvals list
    [[ $output != *$'\e'* ]]
    run -77 brig sandbox exec --policy ask.yaml --wait 300ms -- echo three
    # Time passes by moving what is stored, not the clock.
    sqlite3 "$BRIG_HOME/approvals.db" 'UPDATE approvals SET expires_at = 1'
    run -0 brig approvals show "$approval"
    json_is .state expired
    run -0 brig approvals enroll anna --passphrase-file pass
    run -75 brig approvals confirm "$approval" --as anna --passphrase-file pass
    says "has expired"
    old=$approval
    ask echo $'a\e[2Jb'
    [ "$approval" != "$old" ]
}

@test "over the API: the requester sees its own, another one confirms, the waiting run goes on" {
    without_daemon "it starts its own"
    need curl
    serve --policy ask.yaml
    agent=$(token --principal agent --scope run --scope read)
    both=$(token --principal agent --scope run --scope approve --scope read)
    person=$(token --principal person --scope approve --scope read)
    stranger=$(token --principal stranger --scope read --scope run)
    TOKEN=$agent
    post /v1/runs '{"command":["echo","hi"]}'
    refused 403 forbidden
    json_is .error.reason_code POLICY_ASK
    id=$(jq -r .error.details.approval_id <<<"$output")
    api "/v1/approvals/$id"
    json_is .state pending
    post "/v1/approvals/$id/confirm" '{}'
    refused 403 forbidden
    TOKEN=$both post "/v1/approvals/$id/confirm" '{}'
    refused 403 forbidden
    TOKEN=$stranger api "/v1/approvals/$id"
    refused 404 not_found
    TOKEN=$stranger api /v1/approvals
    json_is '.approvals | length' 0
    TOKEN=$person api '/v1/approvals?limit=1'
    json_is '.approvals[0].approval_id' "$id"
    json_is '.next_after' 1
    TOKEN=$person post "/v1/approvals/$id/confirm" '{"custodian":"anna"}'
    refused 400 invalid
    TOKEN=$person post "/v1/approvals/$id/confirm" '{"comment":"go"}'
    json_is .state confirmed
    json_is .decided_by person
    TOKEN=$stranger post /v1/runs '{"command":["echo","hi"]}'
    refused 403 forbidden
    post /v1/runs '{"command":["echo","hi"]}'
    [ "$http" = 200 ]
    json_is .stdout hi

    # A run that waits goes on when the word comes.
    (post /v1/runs '{"command":["echo","later"],"approval_wait_ms":30000}'; printf '%s' "$output" >waited) &
    waiting=$!
    for _ in $(seq 100); do
        TOKEN=$person api /v1/approvals
        next=$(jq -r '.approvals[] | select(.subject.command[1] == "later") | .approval_id' <<<"$output")
        [ -z "$next" ] || break
        sleep 0.1
    done
    TOKEN=$person post "/v1/approvals/$next/confirm" '{}'
    [ "$http" = 200 ]
    wait "$waiting"
    [ "$(jq -r .stdout waited)" = later ]
    TOKEN=$(token --tenant acme --principal person --scope approve --scope read)
    api "/v1/approvals/$id"
    refused 404 not_found
    serve_end
}
