#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Layers: a ceiling of the machine and overlays of a policy, which only take away.

load common
load sandbox

setup() {
    common_setup
    cat >open.yaml <<'Y'
version: 1
default: allow
Y
    cat >ceiling.yaml <<'Y'
version: 1
limits: {pids: 40}
commands:
  - {name: no-id, deny: [id, "**"], reason: nobody asks who they are}
Y
}

teardown() {
    [ -z "${id-}" ] || brig sandbox destroy "$id"
}

@test "a ceiling holds under every policy, also one that is brought along, until it is removed" {
    run -0 brig sandbox exec --policy open.yaml -- id
    plain=$(receipt .policy_hash)
    run -0 brig policy ceiling set ceiling.yaml
    says "this ceiling holds from now on: sha256:"
    receipt_is .action policy
    receipt_is .outcome.policy.layer ceiling
    receipt_is .outcome.policy.standing true
    run -77 brig sandbox exec -- id
    says "ceiling: nobody asks who they are"
    run -77 brig sandbox exec --policy open.yaml -- id
    receipt_is .policy_layer ceiling
    receipt_is .rule no-id
    receipt_is .rule_line 4
    # What it says nothing about is the policy's, and the hash is over both.
    run -0 brig sandbox exec --policy open.yaml -- true
    receipt_is .policy_layer policy
    [ "$(receipt .policy_hash)" != "$plain" ]
    preimage='brig/policy-layers/1\0{"ceiling":"%s","overlays":[],"policy":"%s"}'
    # shellcheck disable=SC2059
    hash=$(printf "$preimage" "$(brig policy ceiling show --json | jq -r .policy_hash)" \
        "$(brig policy check --json open.yaml | jq -r '.policies[0].policy_hash')" | sha256sum)
    receipt_is .policy_hash "sha256:${hash%% *}"

    run -0 brig policy ceiling show
    [ "$output" = "$(cat ceiling.yaml)" ]
    run -0 brig policy ceiling remove --json
    json_is .standing false
    run -0 brig sandbox exec --policy open.yaml -- id
    receipt_is .policy_hash "$plain"
}

@test "the ceiling of today counts for a sandbox that was made before" {
    run -0 brig sandbox create --policy open.yaml --json
    id=$(jq -r .sandbox_id <<<"$output")
    run -0 brig sandbox exec "$id" -- id
    printf 'version: 1\ncommands: [{name: no-id, deny: [id, "**"]}]\n' >c.yaml
    run -0 brig policy ceiling set c.yaml
    run -77 brig sandbox exec "$id" -- id
    says "ceiling: rule no-id"
    run -0 brig sandbox exec "$id" -- true
    # Walls do not move: one that is wider than the ceiling allows is used no more.
    run -0 brig policy ceiling set ceiling.yaml
    run -77 brig sandbox exec "$id" -- true
    receipt_is .reason_code SANDBOX_DRIFT
}

@test "the time of a command in a kept sandbox is bounded by policy and ceiling" {
    printf 'version: 1\ndefault: allow\nlimits: {timeout: 5s}\n' >five.yaml
    run -0 brig sandbox create --policy five.yaml --json
    id=$(jq -r .sandbox_id <<<"$output")
    run -0 brig sandbox exec --timeout 4s "$id" -- true
    run -77 brig sandbox exec --timeout 6s "$id" -- true
    receipt_is .reason_code LIMIT_ABOVE_POLICY
    says "wall_ms of 6000: the policy allows at most 5000"
    run -77 brig sandbox exec --detach --timeout 6s "$id" -- true
    brig sandbox destroy "$id"

    run -0 brig sandbox create --policy open.yaml --json
    id=$(jq -r .sandbox_id <<<"$output")
    printf 'version: 1\nlimits: {timeout: 40s}\n' >forty.yaml
    run -0 brig policy ceiling set forty.yaml
    run -0 brig sandbox exec --timeout 40s "$id" -- true
    run -77 brig sandbox exec --timeout 41s "$id" -- true
    says "wall_ms of 41000: a ceiling or overlay allows at most 40000"
    # One that goes on alone has no time limit unless somebody says one, as the ceiling does.
    brig budget set --per principal --within 1h --wall 10m >/dev/null
    run -0 brig sandbox exec --detach "$id" -- sleep 60
    run -0 brig budget show --json
    json_is '.budgets[0].amounts[] | select(.kind == "wall") | .reserved' 40000000
}

@test "a limit of the ceiling is the most anybody gets" {
    run -0 brig policy ceiling set ceiling.yaml
    exec_json --policy open.yaml -- true
    json_is '.limits.pids.value' 40
    run -77 brig sandbox exec --pids 50 -- true
    says "a ceiling or overlay allows at most 40"
    exec_json --pids 30 -- true
    json_is '.limits.pids.value' 30
}

@test "a ceiling that cannot be read refuses everything but its repair" {
    run -0 brig policy ceiling set ceiling.yaml
    echo 'version: 7' >"$BRIG_HOME/ceiling.yaml"
    run -77 brig sandbox exec -- true
    says "POLICY_INVALID"
    says "the ceiling"
    run -77 brig sandbox create
    run -77 brig sandbox exec --policy open.yaml -- true
    receipt_is .policy_layer ceiling
    # What is none is not set either.
    echo 'process: {}' >bad.yaml
    run -64 brig policy ceiling set bad.yaml
    printf 'version: 1\nprocess: {run_as_user: sandbox}\n' >bad.yaml
    run -64 brig policy ceiling set bad.yaml
    says "process cannot stand in the ceiling"
    run -0 brig policy ceiling set ceiling.yaml
    run -0 brig sandbox exec -- true
}

@test "overlays only take away, and each is named" {
    printf 'version: 1\ncommands: [{name: no-id, deny: [id, "**"]}]\n' >one.yaml
    printf 'version: 1\ndefault: allow\ncommands: [{name: two, deny: [uname, "**"]}]\n' >two.yaml
    printf 'version: 1\ncommands: [{allow: [uname]}, {allow: [id]}, {allow: ["true"]}]\n' >few.yaml
    run -77 brig sandbox exec --policy few.yaml --overlay one.yaml --overlay two.yaml -- uname
    says "overlay 2: rule two"
    receipt_is .policy_layer "overlay 2"
    run -77 brig sandbox exec --policy few.yaml --overlay one.yaml --overlay two.yaml -- id
    receipt_is .policy_layer "overlay 1"
    run -77 brig sandbox exec --policy few.yaml --overlay two.yaml -- ls
    receipt_is .policy_layer policy
    run -0 brig sandbox exec --policy few.yaml --overlay one.yaml -- uname
    run -77 brig sandbox exec --overlay one.yaml -- id
    # Not with entries of a network of its own, and not for one that stands.
    printf 'version: 1\nnetwork_policies:\n  a: {endpoints: [{host: a.example.org, port: 443}], binaries: [{path: /usr/bin/curl}]}\n' >net.yaml
    run -64 brig sandbox exec --overlay net.yaml -- true
    says "network_policies with entries cannot stand in the overlay"
    run -0 brig sandbox create --policy few.yaml --overlay one.yaml --json
    id=$(jq -r .sandbox_id <<<"$output")
    run -77 brig sandbox exec "$id" -- id
    receipt_is .policy_layer "overlay 1"
    run -0 brig sandbox exec "$id" -- uname
    run -64 brig sandbox exec --overlay one.yaml "$id" -- uname
}

@test "a daemon's tenants are below its ceiling, and bring overlays" {
    without_daemon "it has one of its own"
    daemon_beside
    run -0 brig policy ceiling set ceiling.yaml
    run -77 brig sandbox exec --policy open.yaml -- id
    says "nobody asks who they are"
    run -0 brig sandbox exec --policy open.yaml -- true
    printf 'version: 1\ncommands: [{name: no-uname, deny: [uname, "**"]}]\n' >one.yaml
    run -77 brig sandbox exec --overlay one.yaml -- uname
    says "overlay 1: rule no-uname"
    run -0 brig policy ceiling remove
    run -0 brig sandbox exec --policy open.yaml -- id
}
