#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# brig freeze: one command stops all new effects; ending things stays possible.

load common
load sandbox
load kept
load serve

setup() {
    common_setup
}

teardown() {
    local status=0
    serve_end || status=$?
    brig unfreeze >/dev/null 2>&1 || true
    destroy_all
    return $status
}

@test "frozen, nothing new happens and each refusal has its receipt; thawed, everything does" {
    make --name one
    run -0 brig freeze --reason "looking into it"
    says "frozen: everything"
    receipt_is .action freeze
    receipt_is .outcome.freeze.why "looking into it"

    run -77 brig sandbox exec -- touch /tmp/x
    says "everything is frozen, looking into it"
    receipt_is .reason_code SYSTEM_FROZEN
    receipt_is .kind denial
    run -77 brig sandbox exec --json "$id" -- true
    json_is .reason_code SYSTEM_FROZEN
    run -77 brig sandbox create --json
    json_is .error.reason_code SYSTEM_FROZEN
    run -77 brig sandbox extend --json "$id" --ttl 2h
    json_is .error.reason_code SYSTEM_FROZEN
    receipt_is .reason_code SYSTEM_FROZEN
    echo hi >file
    run ! brig sandbox cp file "$id:/tmp/file"
    receipt_is .reason_code SYSTEM_FROZEN
    run -77 brig sandbox snapshot "$id"
    run -77 brig token create

    run -0 brig sandbox pause "$id"
    run -0 brig sandbox list
    run -0 brig unfreeze
    run -0 brig sandbox resume "$id"
    run -0 brig sandbox exec "$id" -- true
    run -0 brig freeze
    run -0 brig sandbox destroy "$id"
    run -0 brig unfreeze
    run -0 brig receipts verify
}

@test "one principal is frozen, others are not; the status names each" {
    run -0 brig freeze --principal uid:4242 --reason "not this one"
    run -0 brig sandbox exec -- true
    run -0 brig freeze --principal "uid:$(id -u)"
    run -77 brig sandbox exec -- true
    run -0 brig freeze --status --json
    json_is '.frozen | length' 2
    json_is '.frozen[0].principal' uid:4242
    json_is '.frozen[0].reason' "not this one"
    json_is '.frozen[1].by' "uid:$(id -u)"
    run -66 brig unfreeze
    says "that is not frozen"
    run -0 brig unfreeze --principal "uid:$(id -u)"
    run -0 brig sandbox exec -- true
    run -64 brig freeze --tenant ../x
}

@test "a list that cannot be read freezes everybody" {
    run -0 brig sandbox exec -- true
    echo '{"frozen":[{"tenant":"","principal":""' >"$BRIG_HOME/frozen.json"
    run -77 brig sandbox exec -- true
    says "cannot be read"
    rm "$BRIG_HOME/frozen.json"
    run -0 brig sandbox exec -- true
}

@test "the daemon obeys at once; a tenant freezes itself and nobody else" {
    need curl
    serve
    TOKEN=$(token --scope run --scope admin --scope read)
    post /v1/runs '{"command":["true"]}'
    [ "$http" = 200 ]
    brig freeze --principal somebody >/dev/null
    post /v1/runs '{"command":["true"]}'
    [ "$http" = 200 ]
    post /v1/freeze '{"reason":"all of it"}'
    [ "$http" = 200 ]
    json_is .everything true
    run -77 brig sandbox exec -- true
    other=$(brig unfreeze >/dev/null && token --tenant acme --scope run --scope admin)
    post /v1/freeze '{}'
    TOKEN=$other
    post /v1/runs '{"command":["true"]}'
    refused 403 forbidden
    json_is .error.reason_code SYSTEM_FROZEN
    api /v1/freeze
    json_is '.frozen | length' 0
    brig unfreeze >/dev/null
    post /v1/freeze '{"tenant":"default"}'
    refused 403 forbidden
    post /v1/freeze '{"reason":"ours"}'
    json_is .tenant acme
    post /v1/runs '{"command":["true"]}'
    json_is .error.reason_code SYSTEM_FROZEN
    run -0 brig sandbox exec -- true
    api -X DELETE /v1/freeze
    [ "$http" = 200 ]
    post /v1/runs '{"command":["true"]}'
    [ "$http" = 200 ]
    serve_end
}
