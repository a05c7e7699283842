#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# brig token: made once, told once, ended for good; every step has its receipt.

load common
load sandbox

setup() {
    common_setup
}

@test "a token is told once, and kept as a hash only" {
    run -0 brig token create --json --tenant acme --principal ci --scope run --scope read --expires 1h
    json_is .tenant acme
    json_is .principal ci
    json_is '.scopes | join(",")' read,run
    token=$(jq -r .token <<<"$output")
    [[ $token =~ ^brig_[a-z0-9]{12}_[0-9a-f]{64}$ ]]
    run -0 brig token list --json
    json_is '.tokens | length' 1
    json_is '.tokens[0] | has("token")' false
    run ! grep -rqF "${token##*_}" "$BRIG_HOME"
}

@test "without --json the words alone are on standard output" {
    brig token create >words 2>said
    [ "$(wc -l <words)" -eq 1 ]
    grep -q "shown this once" said
    run ! grep -qF "$(cat words)" said
}

@test "making and revoking are in the ledger, without the words" {
    brig token create --json --tenant acme >made
    id=$(jq -r .token_id made)
    receipt_is .action token-create
    receipt_is .outcome.token.id "$id"
    receipt_is .outcome.token.tenant acme
    receipt_is .outcome.token.scopes read,run,receipts
    run -0 brig token revoke "$id"
    receipt_is .action token-revoke
    receipt_is .outcome.token.id "$id"
    run -0 brig token list
    [[ $output == *"$id"*revoked* ]]
    brig receipts export >all
    run ! grep -qF "$(jq -r .token made | cut -d_ -f3)" all
    run -0 brig receipts verify
}

@test "what does not exist cannot be revoked, and that is recorded" {
    run brig token revoke aaaaaaaaaaaa
    [ "$status" -eq 66 ]
    says "aaaaaaaaaaaa: there is no token of that id"
    receipt_is .reason_code TOKEN_FAILED
}

@test "bad names are refused, and nothing is made" {
    run brig token create --scope root
    [ "$status" -eq 64 ]
    run brig token create --tenant ../other
    [ "$status" -eq 64 ]
    says "a tenant is at most 32"
    run -0 brig token list --json
    json_is '.tokens | length' 0
}
