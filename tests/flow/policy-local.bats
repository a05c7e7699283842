#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# http://policy.local: a program inside is refused, asks for what it needs, a person says yes or no
# outside, and the program hears it. Nothing is allowed by asking.

load common
load sandbox
load kept
load network

setup() {
    common_setup
    world_begin
}

teardown() {
    [ -z "${job-}" ] || kill -9 "$job" 2>/dev/null || true
    destroy_all
    world_end
}

# policy_with on|off: curl may GET /a of public.test
policy_with() {
    policy_of "  own:
    binaries: [{path: /usr/bin/curl}]
    endpoints: [{host: public.test, port: 80, protocol: rest, rules: [{allow: {method: GET, path: /a}}]}]"
    [ "$1" = off ] || printf 'agent_proposals: true\n' >>policy.yaml
}

# kept on|off: a sandbox s under it
kept() {
    policy_with "$1"
    in_world "$BRIG" sandbox create --name s --policy policy.yaml >/dev/null
    id=$("$BRIG" sandbox show s --json | jq -r .sandbox_id)
}

inside() {
    in_world "$BRIG" sandbox exec s -- "$@"
}

# ask CURL-ARGS… PATH: body into $output
ask() {
    run --separate-stderr inside curl -sS --max-time 60 "${@:1:$#-1}" "http://policy.local${*: -1}"
}

code() { # METHOD PATH
    inside curl -sS --max-time 20 -o /dev/null -w '%{http_code}' -X "$1" "http://public.test$2"
}

# operation NAME RULES…: one addRule for curl at public.test:80
operation() {
    jq -cn --arg name "$1" --argjson rules "$2" '{intent_summary: "to publish what was built", operations: [{addRule: {ruleName: $name, rule: {
        binaries: [{path: "/usr/bin/curl"}],
        endpoints: [{host: "public.test", port: 80, protocol: "rest", enforcement: "enforce", rules: $rules}]}}}]}'
}

PUT_B='[{"allow": {"method": "PUT", "path": "/b"}}]'

# no_proposal_waits [list]: and the list says so.
no_proposal_waits() {
    run -0 --separate-stderr brig policy proposals "$@"
    [ -z "$output" ]
    [[ $stderr == *"no proposals wait"* ]]
}

# propose BODY: its first id into $proposal
propose() {
    ask -d "$1" /v1/proposals
    proposal=$(jq -r '.accepted_chunk_ids[0]' <<<"$output")
    [[ $proposal == prop-* ]]
}

@test "refused, asked for, approved by a person, heard inside, and allowed" {
    kept on
    [ "$(code GET /a)" = 200 ]
    # What refuses says where to ask.
    run --separate-stderr inside curl -sS --max-time 20 -X PUT http://public.test/b
    [ "$(jq -r .error <<<"$output")" = policy_denied ]
    [ "$(jq -r .reason_code <<<"$output")" = EGRESS_REQUEST ]
    [ "$(jq -r '[.layer, .host, .port, .method, .path, .binary] | join(" ")' <<<"$output")" = "l7 public.test 80 PUT /b /usr/bin/curl" ]
    [[ $(jq -r '.next_steps[] | select(.action == "submit_proposal") | .url' <<<"$output") == http://policy.local/v1/proposals ]]
    [[ $(jq -r .agent_guidance <<<"$output") == *policy_reloaded* ]]
    ask '/v1/denials?last=1'
    [ "$(jq -r '.denials | length' <<<"$output")" -eq 1 ]
    [ "$(jq -r '.denials[0] | [.host, .method, .path, .sandbox] | join(" ")' <<<"$output")" = "public.test PUT /b $id" ]
    ask /v1/policy/current
    [ "$(jq -r '.network_policies.own.endpoints[0].host' <<<"$output")" = public.test ]
    before=$(jq -r .policy_hash <<<"$output")

    propose "$(operation publish "$PUT_B")"
    [ "$(jq '.rejection_reasons | length' <<<"$output")" -eq 0 ]
    # Asking changes nothing, and asking again is the same question.
    [ "$(code PUT /b)" = 403 ]
    first=$proposal
    propose "$(operation publish "$PUT_B")"
    [ "$proposal" = "$first" ]
    ask "/v1/proposals/$proposal"
    [ "$(jq -r '[.status, .timed_out, .policy_reloaded] | map(tostring) | join(" ")' <<<"$output")" = "pending false false" ]
    ask "/v1/proposals/$proposal/wait?timeout=1"
    [ "$(jq -r '[.status, .timed_out, .policy_reloaded] | map(tostring) | join(" ")' <<<"$output")" = "pending true false" ]

    # The person sees what it comes to; whoever waits inside hears of it.
    world_begin_as waiter "$BRIG" sandbox exec s -- curl -sS --max-time 280 "http://policy.local/v1/proposals/$proposal/wait?timeout=270"
    run brig policy proposals
    [[ $output == "$proposal  pending "*"  $id  publish  to publish what was built" ]]
    run brig policy proposals show "$proposal"
    [[ $output == *$'It would newly allow exactly:\n  /usr/bin/curl: PUT public.test:80/b, any query, any body\n'* ]]
    digest=$(sed -n 's/^digest: //p' <<<"$output")
    run in_world "$BRIG" policy proposals approve "${proposal:0:12}" --digest "$digest" --reason "go on" --json
    [ "$status" -eq 0 ]
    after=$(jq -r .network_hash <<<"$output")
    eventually 60 grep -q policy_reloaded waiter.out
    [ "$(jq -r '[.status, .timed_out, .policy_reloaded, .policy_hash] | map(tostring) | join(" ")' waiter.out)" = "approved false true $after" ]
    job=

    [ "$(code PUT /b)" = 200 ]
    [ "$(code PUT /c)" = 403 ]
    [ "$(code GET /a)" = 200 ]
    ask /v1/policy/current
    [ "$(jq -r .policy_hash <<<"$output")" = "$after" ]
    [ "$after" != "$before" ]

    # What was done is in the ledger, bound to what was seen.
    body=$(ledger "SELECT body FROM receipts WHERE body LIKE '%\"approval_id\":\"$proposal\"%'")
    [ "$(jq -r .outcome.approval.digest <<<"$body")" = "$digest" ]
    [ "$(jq -r .outcome.approval.comment <<<"$body")" = "go on" ]
    [ "$(jq -r .outcome.approval.requester <<<"$body")" = "sandbox:$id" ]
    [ "$(jq -r .outcome.policy.network_hash <<<"$body")" = "$after" ]
    # A word is given once.
    run in_world "$BRIG" policy proposals reject "$proposal"
    [ "$status" -ne 0 ]
    [[ $output == *"approved already"* ]]
    run brig receipts verify
    [ "$status" -eq 0 ]
}

@test "a no reaches who asked, with its reason, and changes nothing" {
    kept on
    propose "$(operation publish "$PUT_B")"
    run in_world "$BRIG" policy proposals reject "$proposal" --reason "use the mirror"
    [ "$status" -eq 0 ]
    ask "/v1/proposals/$proposal/wait?timeout=60"
    [ "$(jq -r '[.status, .policy_reloaded, .rejection_reason] | map(tostring) | join(" ")' <<<"$output")" = "rejected false use the mirror" ]
    [ "$(code PUT /b)" = 403 ]
    body=$(ledger "SELECT body FROM receipts WHERE body LIKE '%\"approval_id\":\"$proposal\"%'")
    [ "$(jq -r .outcome.approval.comment <<<"$body")" = "use the mirror" ]
    no_proposal_waits list
    run brig policy proposals list --all --json
    [ "$(jq -r '.proposals[0].status' <<<"$output")" = rejected ]
}

@test "without agent_proposals it says that it is off, and no name leads there" {
    kept off
    ask -w '\n%{http_code}' /v1/policy/current
    [ "$(tail -n 1 <<<"$output")" = 404 ]
    [ "$(head -n 1 <<<"$output" | jq -r .error)" = feature_disabled ]
    ask -o /dev/null -w '%{http_code}' -d "$(operation publish "$PUT_B")" /v1/proposals
    [ "$output" = 404 ]
    run --separate-stderr inside curl -sS --noproxy '*' --max-time 20 http://policy.local/v1/policy/current
    [ "$status" -ne 0 ]
    run --separate-stderr inside curl -sS --max-time 20 -X PUT http://public.test/b
    [ "$(jq -r '.next_steps // "none"' <<<"$output")" = none ]
    no_proposal_waits
}

@test "a program that knows no proxy gets there by its name" {
    kept on
    ask --noproxy '*' /v1/policy/current
    [ "$(jq -r .version <<<"$output")" = 1 ]
    ask --noproxy '*' -d "$(operation publish "$PUT_B")" /v1/proposals
    [ "$(jq '.accepted_chunk_ids | length' <<<"$output")" -eq 1 ]
}

@test "a sandbox that begins with no rule at all can ask for its first, inside TLS too" {
    printf 'version: 1\nagent_proposals: true\n' >policy.yaml
    in_world "$BRIG" sandbox create --name s --policy policy.yaml >/dev/null
    id=$("$BRIG" sandbox show s --json | jq -r .sandbox_id)
    [ "$(code GET /a)" = 403 ]
    propose "$(operation first '[{"allow": {"method": "GET", "path": "/a"}}]' | jq -c '.operations[0].addRule.rule.endpoints[0] |= (del(.port) | .ports = [80, 443])')"
    run in_world "$BRIG" policy proposals approve "$proposal"
    [ "$status" -eq 0 ]
    [ "$(code GET /a)" = 200 ]
    [ "$(code GET /b)" = 403 ]
}

@test "when the policy has changed meanwhile a yes needs another look" {
    kept on
    propose "$(operation publish "$PUT_B")"
    old=$(brig policy proposals show "$proposal" --json | jq -r .approval_digest)
    sed -i 's,path: /a,path: /z,' policy.yaml
    in_world "$BRIG" policy apply --sandbox s policy.yaml
    run in_world "$BRIG" policy proposals approve "$proposal"
    [ "$status" -ne 0 ]
    [[ $output == *"has changed since this was asked for"*"brig policy proposals show $proposal"* ]]
    run in_world "$BRIG" policy proposals approve "$proposal" --digest "$old"
    [ "$status" -ne 0 ]
    [[ $output == *"look at it again"* ]]
    [ "$(code PUT /b)" = 403 ]
    run brig policy proposals show "$proposal" --json
    [ "$(jq -r .policy_changed <<<"$output")" = true ]
    run in_world "$BRIG" policy proposals approve "$proposal" --digest "$(jq -r .approval_digest <<<"$output")"
    [ "$status" -eq 0 ]
    [ "$(code PUT /b)" = 200 ]
    [ "$(code GET /z)" = 200 ]
    [ "$(code GET /a)" = 403 ]
}

@test "what waits outlives egress" {
    kept on
    propose "$(operation publish "$PUT_B")"
    for pid in $(egress_pid); do kill -9 "$pid" || true; done
    run brig policy proposals
    [[ $output == "$proposal  pending "* ]]
    run in_world "$BRIG" policy proposals reject "$proposal"
    [ "$status" -eq 0 ]
    no_proposal_waits
}

@test "a proposal of a sandbox that does not stay is shown, and says why it cannot be had" {
    policy_with on
    world_json --policy policy.yaml -- curl -sS --max-time 20 -d "$(operation publish "$PUT_B")" http://policy.local/v1/proposals
    proposal=$(jq -r '.stdout | fromjson | .accepted_chunk_ids[0]' <<<"$output")
    run brig policy proposals show "$proposal"
    [[ $output == *"cannot be approved: only sandboxes that stay can get another policy"* ]]
    run in_world "$BRIG" policy proposals approve "$proposal"
    [ "$status" -ne 0 ]
    run in_world "$BRIG" policy proposals reject "$proposal"
    [ "$status" -eq 0 ]
}

@test "what one sandbox asked is nothing another one can see" {
    kept on
    propose "$(operation publish "$PUT_B")"
    in_world "$BRIG" sandbox create --name other --policy policy.yaml >/dev/null
    other() {
        run --separate-stderr in_world "$BRIG" sandbox exec other -- curl -sS --max-time 60 -o /dev/null -w '%{http_code}' "http://policy.local/v1/$1"
    }
    ask -o /dev/null -w '%{http_code}' "/v1/proposals/$proposal"
    [ "$output" = 200 ]
    other "proposals/$proposal"
    [ "$output" = 404 ]
    other "proposals/$proposal/wait?timeout=60"
    [ "$output" = 404 ]
    other "proposals/${proposal:0:8}"
    [ "$output" = 404 ]
    # Nor has anybody inside a way to the one who decides.
    run inside ls "$BRIG_HOME/egress/control.sock"
    [ "$status" -ne 0 ]
}

@test "words of a sandbox do not drive the terminal of who reads them" {
    kept on
    body=$(operation publish "$PUT_B" | jq -c '.intent_summary = "\u001b[2Jfine\u001b]0;x\u0007\r\n\u202eallowed already"')
    propose "$body"
    run brig policy proposals
    [[ $output == *fine* ]]
    [[ $output != *[$'\e\a\r']* && $output != *$'\xe2\x80\xae'* ]]
    [ "${#lines[@]}" -eq 1 ]
    run brig policy proposals show "$proposal"
    [[ $output == *fine* ]]
    [[ $output != *[$'\e\a\r']* && $output != *$'\xe2\x80\xae'* ]]
    # A control: they are there.
    run brig policy proposals show "$proposal" --json
    [[ $(jq -r .intent_summary <<<"$output") == *$'\e'* ]]
}
