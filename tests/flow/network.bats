#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A policy with network rules, from the file to the receipt: what is allowed passes, what is not is
# refused, both are counted, and nothing is left.

load common
load sandbox
load network

setup() {
    common_setup
    world_begin
}

teardown() {
    [ -z "${job-}" ] || kill -9 "$job" 2>/dev/null || true
    world_end
}

@test "what a rule names is reached, and counted in the receipt" {
    policy_of "$(allow web allowed.test)"
    world_json --network policy --policy policy.yaml -- curl -sS --max-time 20 http://allowed.test/x
    [ "$status" -eq 0 ]
    json_is .stdout $'hello from /x'
    served | grep -qx '80 GET allowed.test /x 0'
    json_is '.egress.requests >= 1' true
    json_is .egress.refused 0
    json_is '.egress.bytes_in > 10' true
    receipt_is '.outcome.egress.requests >= 1' true
    receipt_is .posture.evidence observed
    chain_holds 2
}

@test "the hash in both receipts is that of the rules" {
    policy_of "$(allow web allowed.test)"
    world_json --network policy --policy policy.yaml -- true
    [ "$status" -eq 0 ]
    planned=$(ledger "SELECT body FROM receipts WHERE seq = 1" | jq -r .posture.egress_policy_hash)
    receipt_is .posture.egress_policy_hash "$planned"
    closed=$(in_world "$BRIG" sandbox exec --json --network none --policy policy.yaml -- true | jq -r .egress_policy_hash)
    [ "$planned" != "$closed" ]
}

@test "what no rule names is refused, and that is counted, too" {
    policy_of "$(allow web allowed.test)"
    world_json --policy policy.yaml -- curl -sS --max-time 20 -o /dev/null -w '%{http_code}' http://other.test/
    [ "$(jq -r .stdout <<<"$output")" != 200 ]
    json_is '.egress.refused >= 1' true
    receipt_is '.outcome.egress.refused >= 1' true
    [ -z "$(served)" ]
}

@test "trust in an authority goes when nobody has used it for long" {
    policy_of "$(allow web 'allowed.test, protocol: rest, access: full')"
    world_json --policy policy.yaml -- test -s /etc/brig/trust/ca.pem
    [ "$status" -eq 0 ]
    mkdir -p "$BRIG_HOME"/egress/trust-{0long,1lately}/x
    touch -d '100 days ago' "$BRIG_HOME/egress/trust-0long"
    touch -d '80 days ago' "$BRIG_HOME/egress/trust-1lately"
    mine=$(cd "$BRIG_HOME/egress" && echo trust-????????????????????????)
    # The next run uses it, so it is not looked through; without it, another is made.
    world_json --policy policy.yaml -- true
    [ -d "$BRIG_HOME/egress/trust-0long" ]
    rm -r "$BRIG_HOME/egress/${mine:?}"
    world_json --policy policy.yaml -- test -s /etc/brig/trust/ca.pem
    [ "$status" -eq 0 ]
    [ "$(cd "$BRIG_HOME/egress" && echo trust-*)" = "$(printf '%s\n' trust-1lately "$mine" | sort | xargs)" ]
}

@test "only the program that is named gets through" {
    policy_of "$(allow web allowed.test)"
    world_json --policy policy.yaml -- perl -MIO::Socket::INET -e '
        my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => 3128, Timeout => 20) or die "closed";
        print $s "GET http://allowed.test/ HTTP/1.1\r\nHost: allowed.test\r\nConnection: close\r\n\r\n";
        print scalar <$s>;'
    [[ $(jq -r .stdout <<<"$output") != *" 200 "* ]]
    [ -z "$(served)" ]
}

@test "a program that knows no proxy is led the same way" {
    policy_of "$(allow web allowed.test)"
    world_json --policy policy.yaml -- curl --noproxy '*' -sS --max-time 20 http://allowed.test/direct
    [ "$status" -eq 0 ]
    json_is .stdout $'hello from /direct'
    served | grep -qx '80 GET allowed.test /direct 0'
}

@test "--network none stays closed, whatever the policy says" {
    policy_of "$(allow web allowed.test)"
    world_json --network none --policy policy.yaml -- curl -sS --max-time 20 http://allowed.test/
    [ "$(jq -r .exit_code <<<"$output")" -ne 0 ]
    json_is .egress.requests 0
    [ -z "$(served)" ]
    [ ! -e "$BRIG_HOME/egress" ]
}

@test "--network policy without rules is refused, and says why" {
    printf 'version: 1\n' >policy.yaml
    world_json --network policy --policy policy.yaml -- true
    json_is .verdict DENY
    json_is .reason_code POLICY_NOT_ENFORCEABLE
    json_is .reason "--network policy: the policy has no network_policies; write some, or run without it for no network"
    receipt_is .kind denial
}

@test "a sandbox without sockets has no network, and both at once is refused" {
    policy_of "$(allow web allowed.test)"
    world_json --sockets none --policy policy.yaml -- true
    json_is .verdict ALLOW
    [ ! -e "$BRIG_HOME/egress" ]
    world_json --sockets none --network policy --policy policy.yaml -- true
    json_is .reason_code POLICY_NOT_ENFORCEABLE
}

@test "egress ends by itself after its last sandbox" {
    policy_of "$(allow web allowed.test)"
    world_json --policy policy.yaml -- true
    [ "$status" -eq 0 ]
    eventually 30 no_egress
    nothing_is_left
}

@test "a kept sandbox has its rules until egress ends; then it has no network, and says so" {
    policy_of "$(allow web allowed.test)"
    id=$(in_world "$BRIG" sandbox create --policy policy.yaml --json | jq -r .sandbox_id)
    run in_world "$BRIG" sandbox exec --quiet "$id" -- curl -sS --max-time 20 http://allowed.test/kept
    [ "$output" = "hello from /kept" ]
    receipt_is '.outcome.egress.requests >= 1' true
    [ "$(in_world "$BRIG" sandbox show --json "$id" | jq -r .network)" = policy ]
    kill -9 $(egress_pid)
    eventually 10 no_egress
    [ "$(in_world "$BRIG" sandbox show --json "$id" | jq -r .network)" = lost ]
    [[ $(in_world "$BRIG" sandbox list) == *"network lost: recreate it"* ]]
    [[ $(in_world "$BRIG" sandbox explain "$id") == *"egress     lost:"* ]]
    world_json "$id" -- true
    json_is .verdict DENY
    json_is .reason_code PREFLIGHT_EGRESS_POLICY
    receipt_is .reason_code PREFLIGHT_EGRESS_POLICY
    new=$(in_world "$BRIG" sandbox recreate --json "$id" | jq -r .sandbox_id)
    run in_world "$BRIG" sandbox exec --quiet "$new" -- curl -sS --max-time 20 http://allowed.test/again
    [ "$output" = "hello from /again" ]
    in_world "$BRIG" sandbox destroy "$new"
    receipt_is '.outcome.egress.requests >= 1' true
}

@test "rules of a sandbox that stands are exchanged, all or nothing" {
    policy_of "$(allow web allowed.test)"
    id=$(in_world "$BRIG" sandbox create --policy policy.yaml --json | jq -r .sandbox_id)
    printf 'version: 1\nnetwork_policies:\n  bad: {endpoints: [{host: "*", port: 80}]}\n' >bad.yaml
    run in_world "$BRIG" policy apply --sandbox "$id" bad.yaml
    [ "$status" -ne 0 ]
    [[ $output == *"line 3"* ]]
    in_world "$BRIG" sandbox exec --quiet "$id" -- curl -sS --max-time 20 http://allowed.test/one
    policy_of "$(allow web allowed.test)" "$(allow more other.test)"
    in_world "$BRIG" policy apply --sandbox "$id" --json policy.yaml >change.json
    jq -e '.entries_added == 1 and .entries_removed == 0 and .sandbox_id == "'"$id"'"' change.json
    receipt_is .action policy
    receipt_is .outcome.policy.network_hash "$(jq -r .network_hash change.json)"
    receipt_is .sandbox_id "$id"
    world_json "$id" -- curl -sS --max-time 20 http://other.test/two
    json_is .stdout $'hello from /two'
    json_is .egress_policy_hash "$(jq -r .network_hash change.json)"
    policy_of "$(allow more other.test)"
    in_world "$BRIG" policy apply --sandbox "$id" policy.yaml
    world_json "$id" -- curl -sS --max-time 20 -o /dev/null -w '%{http_code}' http://allowed.test/three
    [ "$(jq -r .stdout <<<"$output")" != 200 ]
    not grep -q three <(served)
    printf 'limits: {pids: 9}\n' >>policy.yaml
    run in_world "$BRIG" policy apply --sandbox "$id" policy.yaml
    [ "$status" -ne 0 ]
    [[ $output == *"also changes limits"* ]]
    in_world "$BRIG" sandbox destroy "$id"
}

@test "a sandbox out of the pool is not one with a network" {
    policy_of "$(allow web allowed.test)"
    run in_world "$BRIG" pool fill --size 1 --policy policy.yaml
    [ "$status" -ne 0 ]
    [[ $output == *"has network rules"* ]]
    in_world "$BRIG" pool fill --size 1
    world_json --policy policy.yaml -- curl -sS --max-time 20 http://allowed.test/pool
    json_is .stdout $'hello from /pool'
    in_world "$BRIG" pool drain
}

@test "an answer with another hash is a denial with a receipt" {
    policy_of "$(allow web allowed.test)"
    mkdir -p "$BRIG_HOME/egress"
    chmod 700 "$BRIG_HOME" "$BRIG_HOME/egress"
    world_begin_as liar.pid perl "$BRIG_ROOT/tests/flow/network-liar.pl" "$BRIG_HOME/egress/control.sock"
    eventually 10 test -S "$BRIG_HOME/egress/control.sock"
    touch "$BRIG_HOME/egress/ca.pem"
    world_json --policy policy.yaml -- curl -sS http://allowed.test/
    json_is .verdict DENY
    json_is .reason_code PREFLIGHT_EGRESS_POLICY
    receipt_is .kind denial
    receipt_is .reason_code PREFLIGHT_EGRESS_POLICY
    [ -z "$(served)" ]
}

@test "a sandbox put back and a fork have rules of their own" {
    policy_of "$(allow web allowed.test)"
    id=$(in_world "$BRIG" sandbox create --policy policy.yaml --json | jq -r .sandbox_id)
    in_world "$BRIG" sandbox snapshot "$id" --name s
    run in_world "$BRIG" sandbox exec --quiet "$id" -- curl -sS --max-time 20 http://allowed.test/after
    [ "$output" = "hello from /after" ]
    in_world "$BRIG" sandbox restore "$id" s
    run in_world "$BRIG" sandbox exec --quiet "$id" -- curl -sS --max-time 20 http://allowed.test/back
    [ "$output" = "hello from /back" ]
    fork=$(in_world "$BRIG" sandbox fork "$id" --json | jq -r '.sandboxes[0].sandbox_id')
    in_world "$BRIG" sandbox destroy "$id"
    run in_world "$BRIG" sandbox exec --quiet "$fork" -- curl -sS --max-time 20 http://allowed.test/fork
    [ "$output" = "hello from /fork" ]
    in_world "$BRIG" sandbox destroy "$fork"
}

@test "nothing is left when brig is killed while its sandbox is on the network" {
    policy_of "$(allow web allowed.test)"
    world_begin_as run.pid "$BRIG" sandbox exec --timeout 10m --policy policy.yaml -- \
        sh -c 'curl -sS http://allowed.test/begun; sleep 600'
    for _ in $(seq 300); do
        ! served | grep -q begun || break
        sleep 0.1
    done
    served | grep -q begun
    kill -9 "$job"
    eventually 30 no_egress
    eventually 10 no_run_is_held
    in_world "$BRIG" sandbox exec --quiet -- true # whoever comes next tidies up
    nothing_is_left
}

@test "over the API: the same network, the same exchange of rules" {
    need jq
    policy_of "$(allow web allowed.test)"
    world_begin_as serve.pid "$BRIG" serve --socket "$BATS_TEST_TMPDIR/s"
    eventually 10 grep -q "listening on unix" serve.pid.out
    TOKEN=$("$BRIG" token create --scope read --scope run --scope policy --json | jq -r .token)
    call() {
        in_world curl -sS --max-time 30 --unix-socket "$BATS_TEST_TMPDIR/s" -H "Authorization: Bearer $TOKEN" \
            -H 'Content-Type: application/json' -X "$1" "http://localhost$2" ${3:+--data-binary "$3"}
    }
    text=$(jq -Rs . <policy.yaml)
    id=$(call POST /v1/sandboxes "{\"policy\":$text}" | jq -r .sandbox_id)
    call POST "/v1/sandboxes/$id/exec" '{"command":["curl","-sS","http://allowed.test/api"]}' >run.json
    jq -e '.stdout == "hello from /api\n" and .egress.requests >= 1' run.json
    policy_of "$(allow more other.test)"
    call PUT "/v1/sandboxes/$id/policy" "{\"text\":$(jq -Rs . <policy.yaml)}" >change.json
    jq -e '.entries_added == 1 and .entries_removed == 1' change.json
    call POST "/v1/sandboxes/$id/exec" '{"command":["curl","-sS","http://other.test/api2"]}' >run.json
    jq -e '.stdout == "hello from /api2\n"' run.json
    call PUT "/v1/sandboxes/$id/policy" '{"text":"version: 1\nnetwork_policies: {x: {endpoints: [{host: \"*\", port: 1}]}}\n"}' >bad.json
    jq -e '.error.message | test("line 2")' bad.json
    call POST /v1/runs "{\"command\":[\"curl\",\"-sS\",\"http://allowed.test/run\"],\"sandbox\":{\"policy\":$text}}" >run.json
    jq -e '.stdout == "hello from /run\n"' run.json
    [ "$(call DELETE "/v1/sandboxes/$id" | jq -r .done)" = true ]
    kill "$job"
    for _ in $(seq 300); do
        kill -0 "$job" 2>/dev/null || break
        sleep 0.1
    done
    not kill -0 "$job" 2>/dev/null
}

@test "a secret goes out with a request, and a receipt of its use is there when the run ends" {
    policy_of "$(allow web allowed.test)"
    printf 'a-secret-for-the-network' | "$BRIG" vault set KEY >/dev/null
    "$BRIG" vault bind KEY --scheme http --port 80 --host allowed.test --slot query:key --path /x >/dev/null
    world_json --network policy --policy policy.yaml -- curl -sS --max-time 20 'http://allowed.test/x?key=%24%7Bvault:KEY%7D'
    [ "$status" -eq 0 ]
    [[ "$output" != *a-secret-for-the-network* ]]
    served | grep -q '/x?key=a-secret-for-the-network'
    [ "$("$BRIG" receipts list --json | jq -c '[.. | objects | select(.kind? == "secret_use")] | length')" -eq 1 ]
    world_json --network policy --policy policy.yaml -- curl -sS --max-time 20 'http://allowed.test/y?key=%24%7Bvault:KEY%7D'
    [[ "$output" == *VAULT_NOT_BOUND* ]]
    not grep -q /y <(served)
}

@test "a policy that lists secrets lets no other go, whatever the vault has bound" {
    printf 'a-secret-for-the-network' | "$BRIG" vault set KEY >/dev/null
    "$BRIG" vault bind KEY --scheme http --port 80 --host allowed.test --slot query:key >/dev/null
    policy_of "$(allow web allowed.test)"
    printf 'secrets:\n  - {name: KEY, host: allowed.test, scheme: http, method: GET, path: "/x/**", slot: "query:key"}\n' >>policy.yaml
    world_json --network policy --policy policy.yaml -- curl -sS --max-time 20 'http://allowed.test/x/1?key=%24%7Bvault:KEY%7D'
    [ "$status" -eq 0 ]
    served | grep -q '/x/1?key=a-secret-for-the-network'
    world_json --network policy --policy policy.yaml -- curl -sS --max-time 20 'http://allowed.test/y?key=%24%7Bvault:KEY%7D'
    [[ "$output" == *VAULT_NOT_LISTED* ]]
    sed -i '/^secrets:/,$d' policy.yaml
    echo 'secrets: []' >>policy.yaml
    world_json --network policy --policy policy.yaml -- curl -sS --max-time 20 'http://allowed.test/x/2?key=%24%7Bvault:KEY%7D'
    [[ "$output" == *VAULT_NOT_LISTED* ]]
    not grep -q -e /y -e /x/2 <(served)
    [ "$("$BRIG" receipts list --json | jq -c '[.. | objects | select(.kind? == "secret_use")] | length')" -eq 1 ]
}
