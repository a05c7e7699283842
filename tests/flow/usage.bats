#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# brig usage: sums over the ledger, by day and principal.

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
    destroy_all
    return $status
}

@test "commands, sandboxes and refusals are counted once, however often one asks" {
    run -0 brig usage --json
    json_is '.usage | length' 0
    brig sandbox exec -- echo four 2>/dev/null
    run ! brig sandbox exec -- false
    printf 'version: 1\ncommands:\n  - allow: [cat]\n' >no.yaml
    run -77 brig sandbox exec --policy no.yaml -- echo
    make
    in_it -- true
    run -0 brig usage --json
    # By day: whoever is here at midnight has two.
    json_is '[.usage[].principal] | unique | join(" ")' "uid:$(id -u)"
    json_is '[.usage[].commands] | add' 3
    json_is '[.usage[].sandboxes] | add' 1
    json_is '[.usage[].denied] | add' 1
    json_is '[.usage[].output_bytes] | add' 5
    json_is '[.usage[].duration_us] | add > 0' true
    brig sandbox exec -- true 2>/dev/null
    run -0 brig usage --json
    json_is '[.usage[].commands] | add' 4
    run -0 brig usage --principal uid:4242 --json
    json_is '.usage | length' 0
    run -0 brig usage --since 2999-01-01 --json
    json_is '.usage | length' 0
    # Days are compared as texts: what is none would be before or behind all of them.
    for day in yesterday 2026-1-1 2026-02-31 2026-13-01 2026-01-01T00:00:00Z '2026- 1-01' 20260101; do
        run -64 brig usage --since "$day" --json
        json_is .error.code invalid
        says "write one like 2026-11-16"
    done
    run -0 brig usage
    says "principal"
}

@test "a ledger that was put back is counted anew" {
    brig sandbox exec -- true 2>/dev/null
    cp -r "$BRIG_HOME" copy
    brig sandbox exec -- true 2>/dev/null
    run -0 brig usage --json
    json_is '[.usage[].commands] | add' 2
    cp "$BRIG_HOME/usage.db" copy/
    rm -rf "$BRIG_HOME"
    mv copy "$BRIG_HOME"
    printf 'version: 1\ncommands:\n  - allow: [cat]\n' >no.yaml
    for _ in 1 2; do
        run -77 brig sandbox exec --policy no.yaml -- echo
    done
    run -0 brig usage --json
    json_is '[.usage[].commands] | add' 1
    json_is '[.usage[].denied] | add' 2
}

@test "over the API each tenant sees its own" {
    need curl
    serve
    TOKEN=$(token)
    post /v1/runs '{"command":["true"]}'
    api /v1/usage
    json_is '[.usage[].commands] | add' 1
    TOKEN=$(token --tenant acme)
    api /v1/usage
    json_is '.usage | length' 0
    api '/v1/usage?limit=0'
    refused 400 invalid
    serve_end
}
