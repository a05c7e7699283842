#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Rules about what a run costs at most: by the operator's prices and its own limits, and never less
# than what a budget then reserves for it.

load common
load sandbox
load kept
load serve

setup() {
    common_setup
    # A second of one CPU with 1 GiB costs 23 millionths, a run 1000.
    brig budget price --run 0.001 --vcpu-second 0.00002 --gib-second 0.000003 >/dev/null
}

teardown() {
    local status=0
    serve_end || status=$?
    destroy_all
    return $status
}

# just MICROS [SECTION]: p.yaml allows what costs exactly that, and a budget counts it.
just() {
    printf 'version: 1\ndefault: deny\n%s\nbudget: [{per: principal, within: 1h, cost: 1000}]\n' "${2-}" >p.yaml
    printf 'commands: [{allow: [[sleep, "true"], "**"], when: cost_micros == %s}]\n' "$1" >>p.yaml
}

reserved() {
    brig budget show --policy p.yaml --json |
        jq -r '.budgets[0].amounts[] | select(.kind == "cost") | .reserved'
}

reserves() {
    [ "$(reserved)" = "$1" ]
}

# reserved_by MICROS COMMAND…: while it runs, which is until that is seen.
reserved_by() {
    local micros=$1 running
    shift
    "$@" -- sleep 300 3>&- &
    running=$!
    eventually 5 reserves "$micros"
    kill "$running"
    wait "$running" || true
}

# costs MICROS [OPTION…]: what is decided, and what is reserved while it runs.
costs() {
    local micros=$1
    shift
    reserves 0
    reserved_by "$micros" "$BRIG" sandbox exec --quiet --policy "$PWD/p.yaml" "$@"
}

@test "what a rule sees is what is reserved" {
    just 1645 # 30 s of one CPU and half a GiB
    costs 1645
    just 1430 'limits: {cpu: 2, memory: 1G, timeout: 10s}'
    costs 1430
    costs 1430 --memory 1024M
    just 1230 'limits: {cpu: 2, memory: 1G, timeout: 10s}'
    costs 1230 --cpu 1 # a flag asks for less
    printf 'version: 1\nlimits: {memory: 2G, timeout: 20s}\n' >profile.yaml
    just 1520
    costs 1520 --profile profile.yaml
    # The mock provider holds no processors and no memory: all of the machine's count.
    bytes=$(($(getconf _PHYS_PAGES) * $(getconf PAGESIZE)))
    just $((1000 + 30 * 20 * $(getconf _NPROCESSORS_ONLN) + (30 * 3 * bytes + (1 << 30) - 1) / (1 << 30)))
    run -0 brig sandbox exec --provider mock --policy p.yaml -- true
    just 1644
    run -77 brig sandbox exec --policy p.yaml -- true
}

@test "a limit of the ceiling makes it cheaper" {
    printf 'version: 1\nlimits: {timeout: 19s, memory: 256M}\n' >c.yaml
    brig policy ceiling set c.yaml >/dev/null
    just 1395 # a part of a millionth is one
    costs 1395
}

@test "commands in a kept sandbox: its limits, and a time of their own" {
    just 1645
    make --policy "$PWD/p.yaml"
    reserved_by 1645 "$BRIG" sandbox exec "$id" --quiet
    run -77 brig sandbox exec --timeout 24s "$id" -- true
    just 1516
    brig sandbox destroy "$id"
    make --policy "$PWD/p.yaml"
    reserved_by 1516 "$BRIG" sandbox exec "$id" --quiet --timeout 24s
    # without an end, and with what stays behind, nobody knows
    run -77 brig sandbox exec --detach "$id" -- true
    says "does not count: its condition could not be evaluated"
    run -77 brig sandbox exec --keep --timeout 24s "$id" -- true
    run -0 brig sandbox exec --detach --timeout 24s "$id" -- true
}

@test "unknown counts closed: no prices, no database, a tool" {
    printf 'version: 1\ndefault: ask\ncommands:\n' >p.yaml
    printf '  - {name: dear, deny: ["true"], cost: ">1000"}\n  - {name: cheap, allow: [id], cost: "<1000"}\n' >>p.yaml
    run -0 brig sandbox exec --policy p.yaml -- id
    receipt_is .rule cheap
    run -77 brig sandbox exec --policy p.yaml -- true
    receipt_is .verdict ASK
    rm -rf "$BRIG_HOME"/budget.db* "$BRIG_HOME"/made
    run -77 brig sandbox exec --policy p.yaml -- true
    receipt_is .rule dear
    says "what it costs is not known: nothing has a price"
    run -77 brig sandbox exec --policy p.yaml -- id
    receipt_is .verdict ASK
    printf 'no database, but long enough to be taken for one: %0200d' 0 >"$BRIG_HOME/budget.db"
    run -77 brig sandbox exec --policy p.yaml -- true
    receipt_is .rule dear
    # It may have held a limit: a run would be refused, so explain says so.
    run -77 brig policy explain --policy p.yaml --json --cost 0.5 -- id
    json_is .reason_code BUDGET_ERROR
    rm -f "$BRIG_HOME"/budget.db*
    run -0 brig policy explain --policy p.yaml --json --cost 0.5 -- id
    json_is .verdict ALLOW
    run -77 brig policy explain --policy p.yaml --json --cost 1000 -- id
    json_is '.rules[1].why' 'its "cost" does not hold'
    run -77 brig policy explain --policy p.yaml --json -- id
    json_is .verdict ASK
    run -64 brig policy explain --policy p.yaml --cost much -- id
    says "write it as 0.50"
}

@test "tables of cases say what it costs" {
    printf 'version: 1\ncommands: [{name: cheap, allow: [make], cost: "<=0.5"}]\n' >t.yaml
    printf -- '- {run: [make], cost: 0.5, expect: allow, rule: cheap}\n- {run: [make], cost: "0.51", expect: deny}\n- {run: [make], expect: deny}\n' >t.test.yaml
    run -0 brig policy test t.yaml
    printf -- '- {run: [make], cost: 0.51, expect: allow}\n' >t.test.yaml
    run -1 brig policy test t.yaml
    printf -- '- {run: [make], cost: cheap, expect: allow}\n' >t.test.yaml
    run brig policy test t.yaml
    [ "$status" -ne 0 ]
    says "this value is not of the kind its key takes"
}

@test "through the daemon the same, by the prices of the tenant" {
    need curl
    just 1645
    brig policy apply p.yaml >/dev/null
    serve
    TOKEN=$(token --scope run --scope read)
    post /v1/runs '{"command":["true"]}'
    [ "$http" = 200 ]
    json_is .verdict ALLOW
    brig budget price --run 0.002 >/dev/null
    post /v1/runs '{"command":["true"]}'
    json_is .error.reason_code POLICY_DEFAULT_DENY
    serve_end
}
