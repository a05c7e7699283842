#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# docs/formats/gate.md by hand: what is hashed, what is signed, and by whom, without Brig.

load common
load sandbox
load advise

setup() {
    common_setup
    [ -x "$AGENT" ]
    need openssl xxd
}

digest() {
    (
        printf 'brig/gate-signoff/1\0'
        cat said
    ) | openssl dgst -sha256 -binary >digest
}

# public_key NAME: into custodian.pem
public_key() {
    local hex
    hex=$(brig approvals custodians --json | jq -r ".custodians[] | select(.name == \"$1\").public_key")
    (printf '302a300506032b6570032100' && printf '%s' "$hex") | xxd -r -p |
        openssl pkey -pubin -inform DER -out custodian.pem
}

verifies() {
    openssl pkeyutl -verify -pubin -inkey custodian.pem -rawin -in digest -sigfile signature
}

@test "the report's hash is that of the members the page names" {
    clean_runs 2
    brig gate report agent --runs 2 --json >report.json || true
    command jq -cSj '{agent_id, agent_version, conditions, constitution_sha256, evidence, n, runs, v, window}' report.json >hashed
    [ "sha256:$(sha256sum <hashed | cut -d' ' -f1)" = "$(jq -r .gate_report_sha256 report.json)" ]
}

@test "a signature is checked from its receipt alone, and a changed receipt is none" {
    custodians
    clean_runs 1
    run -0 brig gate sign agent --runs 1 --as ben --passphrase-file ben.pass --json
    brig receipts show "$(jq -r .receipt_id <<<"$output")" --json >receipt.json
    [ "$(command jq -cS '.advisory | keys' receipt.json)" = '["agent_id","agent_version","constitution_sha256","custodian","decision","expires_at","gate_report_sha256","n","signature","stage","window"]' ]
    command jq -cSj '.advisory | del(.signature, .stage)' receipt.json >said
    jq -r .advisory.signature receipt.json | xxd -r -p >signature
    digest
    public_key ben
    verifies
    public_key anna
    not verifies
    public_key ben
    sed -i 's/"n":1/"n":2/' said
    digest
    not verifies
    # He was enrolled before the first of the runs began.
    [ "$(ledger "SELECT max(seq) FROM receipts WHERE instr(body, '\"action\":\"enroll\"')")" -lt \
        "$(ledger "SELECT min(seq) FROM receipts WHERE instr(body, '\"stage\":\"start\"')")" ]
}

@test "what is shown to one who signs elsewhere is what he signs" {
    custodians
    local key now=$EPOCHSECONDS
    openssl genpkey -algorithm ed25519 -out carl.pem 2>/dev/null
    key=$(openssl pkey -in carl.pem -pubout -outform DER | tail -c 32 | xxd -p -c 64)
    brig approvals enroll carl --public-key "$key" --by anna --by-passphrase-file anna.pass
    clean_runs 1
    run -13 --separate-stderr brig gate report agent --runs 1 --as carl --expires-at $((now + 1000)) --json
    command jq -cSj .signed <<<"$output" >said
    digest
    json_is .preimage "sha256:$(xxd -p -c 64 digest)"
    run -0 brig gate sign agent --runs 1 --as carl --expires-at $((now + 1000)) \
        --signature "$(openssl pkeyutl -sign -rawin -inkey carl.pem -in digest | xxd -p -c 128)"
}

@test "a signature that does not count has a receipt that says so" {
    custodians
    clean_runs 1
    run -77 brig gate sign agent --runs 1 --as ben --signature "$(printf '%0128d' 0)"
    [ "$(ledger 'SELECT body FROM receipts ORDER BY seq DESC LIMIT 1' | jq -r '"\(.action) \(.reason_code) \(.advisory.stage)"')" = "gate-sign ADVISORY_FAILED refused" ]
}
