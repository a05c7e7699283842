#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A budget of bytes: what is left of it is all that passes, to the byte, over whatever protocol, and
# what passed is what is charged.

load common
load sandbox
load kept
load network

setup() {
    common_setup
    world_begin
}

teardown() {
    [ -z "${id-}" ] || in_world "$BRIG" sandbox destroy "$id" >/dev/null 2>&1 || true
    world_end
}

# policy KEYS [ENDPOINT KEYS]: allowed.test for curl, within a budget.
policy() {
    policy_of "$(allow web "allowed.test${2:+, $2}")"
    printf 'budget: [{per: principal, within: 1h, %s}]\n' "$1" >>policy.yaml
}

# amount MEMBER: of the budget of bytes.
amount() {
    "$BRIG" budget show --policy policy.yaml --json |
        jq -r ".budgets[0].amounts[] | select(.kind == \"egress\") | .$1"
}

# get PATH [CURL ARGS…]: in a sandbox of its own.
get() {
    local path=$1
    shift
    world_json --policy policy.yaml -- curl -sS --max-time 20 -o /dev/null "$@" "http://allowed.test$path"
}

passed() {
    jq '.egress.bytes_in + .egress.bytes_out' <<<"$output"
}

spent_exactly() { # BYTES: the run was cut there
    echo "$output"
    [ "$(passed)" = "$1" ]
    json_is .outcome_reason_code BUDGET_EXCEEDED
    json_is .egress.spent true
    json_is '.exit_code != 0' true
}

@test "what is left passes to the byte, then the network ends; the next run is denied" {
    policy 'egress: 100000'
    get /bytes/20000
    [ "$status" -eq 0 ]
    json_is '.egress.spent' null
    first=$(passed)
    [ "$first" -gt 20000 ]
    [ "$(amount used)" = "$first" ]
    [ "$(amount reserved)" = 0 ]
    get /bytes/1000000
    spent_exactly $((100000 - first))
    [[ "$(jq -r .reason <<<"$output")" == "the egress budget of principal "*" leaves no more than "*" (set by line "* ]]
    receipt_is .reason_code BUDGET_EXCEEDED
    receipt_is .outcome.egress.spent true
    receipt_is .budget.egress_bytes $((100000 - first))
    [[ "$(receipt .budget.egress_by)" == "the egress budget of principal"* ]]
    grep -q EGRESS_BUDGET_RUN "$BRIG_HOME"/egress/journal.*
    [ "$(amount used)" = 100000 ]
    get /bytes/1
    json_is .verdict DENY
    json_is .reason_code BUDGET_EXCEEDED
    [[ "$(jq -r .reason <<<"$output")" == *"is used up"* ]]
    world_json --policy policy.yaml --network none -- true # what has no network needs none of it
    json_is .verdict ALLOW
    [ "$(served | wc -l)" = 2 ]
}

@test "tunnels, uploads and requests that are judged end alike, and new connections are refused" {
    policy 'egress: 100M, egress_run: 700000'
    put() { # CURL ARGS…
        world_json --policy policy.yaml -- sh -c 'head -c 3000000 /dev/zero | curl -sSf --max-time 20 -o /dev/null --data-binary @- "$@" http://allowed.test/up' sh "$@"
    }
    get /bytes/3000000 -p # by a pipe in the kernel
    spent_exactly 700000
    put -p
    spent_exactly 700000
    put
    spent_exactly 700000
    not grep -q ' /up ' <<<"$(served)"
    get /bytes/600000 -p
    [ "$status" -eq 0 ]
    policy 'egress: 100M, egress_run: 700000' 'protocol: rest, access: full'
    get /bytes/3000000
    spent_exactly 700000
    world_json --policy policy.yaml -- sh -c 'curl -s -o /dev/null http://allowed.test/bytes/3000000
        curl -s -w %{http_code} http://allowed.test/late; echo; echo goes on'
    [ "$(passed)" = 700000 ]
    json_is .exit_code 0
    json_is .outcome_reason_code BUDGET_EXCEEDED
    [[ "$(jq -r .stdout <<<"$output")" == *EGRESS_BUDGET_RUN*403*"goes on"* ]]
    not grep -q late <<<"$(served)"
}

@test "each command of a kept sandbox has what is left for it, and what is left behind has nothing" {
    policy 'egress: 1M, egress_run: 300000'
    id=$(in_world "$BRIG" sandbox create --policy policy.yaml --json | jq -r .sandbox_id)
    world_json "$id" -- curl -sS --max-time 20 -o /dev/null http://allowed.test/bytes/3000000
    spent_exactly 300000
    [ "$(amount used)" = 300000 ]
    world_json "$id" -- curl -sS --max-time 20 http://allowed.test/again
    [ "$status" -eq 0 ]
    [ "$(amount used)" = "$((300000 + $(passed)))" ]
    world_json --detach "$id" -- curl -s http://allowed.test/detached
    json_is .reason_code POLICY_NOT_ENFORCEABLE
    not grep -q detached <<<"$(served)"
}

@test "what was left running before there was a limit has no network between commands" {
    policy_of "$(allow web allowed.test)"
    id=$(in_world "$BRIG" sandbox create --policy policy.yaml --json | jq -r .sandbox_id)
    in_world "$BRIG" sandbox exec --quiet --detach "$id" -- \
        sh -c 'while curl -s -o /dev/null --max-time 5 http://allowed.test/tick || :; do sleep 0.05; done'
    refused() {
        cat "$BRIG_HOME"/egress/journal.* | grep -c EGRESS_BUDGET_RUN
    }
    ticked() {
        served | grep -q /tick
    }
    refused_more_than() {
        [ "$(refused)" -gt "$1" ]
    }
    eventually 10 ticked
    "$BRIG" budget set --per principal --within 1h --egress 1M >/dev/null
    world_json "$id" -- true
    [ "$status" -eq 0 ]
    eventually 10 refused_more_than 0
    n=$(served | wc -l)
    eventually 10 refused_more_than "$(($(refused) + 2))"
    [ "$(served | wc -l)" = "$n" ]
    world_json "$id" -- curl -sS --max-time 20 http://allowed.test/mine # and it has, with one
    [ "$(jq -r .stdout <<<"$output")" = "hello from /mine" ]
}

@test "commands that run at once each pay for all that passes" {
    policy 'egress: 1M, egress_run: 300000'
    id=$(in_world "$BRIG" sandbox create --policy policy.yaml --json | jq -r .sandbox_id)
    in_world "$BRIG" sandbox exec --quiet --timeout 5m "$id" -- sh -c 'echo >/tmp/begun; until [ -e /tmp/over ]; do sleep 0.05; done' 3>&- &
    waiting=$!
    begun() {
        [ "$(amount reserved)" = 300000 ]
    }
    eventually 10 begun
    world_json "$id" -- sh -c 'until [ -e /tmp/begun ]; do sleep 0.05; done; curl -sS --max-time 20 -o /dev/null http://allowed.test/bytes/20000'
    [ "$status" -eq 0 ]
    both=$((2 * $(passed)))
    world_json "$id" -- touch /tmp/over
    wait "$waiting"
    [ "$(amount used)" = "$both" ]
    [ "$(amount reserved)" = 0 ]
}

@test "where egress dies nothing passes any more, and all that was allowed is charged" {
    policy 'egress: 1M, egress_run: 300000'
    in_world "$BRIG" sandbox exec --json --timeout 5m --policy policy.yaml -- sh -c 'curl -s -o /dev/null http://allowed.test/first
        until ! curl -s -o /dev/null --max-time 5 http://allowed.test/more; do sleep 0.05; done
        curl -s --max-time 5 http://allowed.test/last; echo goes on' >out.json 3>&- &
    running=$!
    fetched() {
        served | grep -q /more
    }
    eventually 10 fetched
    # shellcheck disable=SC2046
    kill -9 $(egress_pid)
    wait "$running" || true
    output=$(cat out.json)
    json_is .egress.lost true
    json_is '.stdout | rtrimstr("\n")' "goes on"
    not grep -q /last <<<"$(served)"
    [ "$(amount used)" = 300000 ]
    [ "$(amount reserved)" = 0 ]
}
