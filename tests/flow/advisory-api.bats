#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# /v1/advisory/sessions and /v1/gate: a harness that holds the model tells what was said; nothing it or its agent says is a
# person's word.

load common
load sandbox
load serve
load advise

setup() {
    common_setup
    need curl jq openssl xxd flock
    without_daemon "it starts its own"
}

teardown() {
    serve_end
}

S=/v1/advisory/sessions

# envelope TEXT: one in which nothing is to be found, if nothing is in the text.
envelope() {
    jq -cn --arg v "$1" '{epistemic: {facts: ["the test runs"], hypotheses: [], assumptions: []}, advisory: {},
        sandbox: {actions_permitted: false, reason: "Helix aligned sandbox mode"}, client_view: $v}'
}

begin() {
    post $S "$(jq -cn --arg v "${1:-model-7}" '{agent_id: "helper", agent_version: $v, constitution: "Advise; do nothing."}')"
    [ "$http" = 201 ] || return
    session=$(jq -r .run_id <<<"$output")
}

# said TEXT OUTPUT-JSON
said() {
    post "$S/$session/turns" "$(jq -cn --arg t "$1" --argjson o "$2" '{text: $t, output: $o}')"
}

asked() {
    post "$S/$session/actions" "{\"action_request\":${1:-$CREATE}}"
    action=$(jq -r .request_id <<<"$output")
    digest=$(jq -r .digest <<<"$output")
}
CREATE='{"type":"filesystem","operation":"create","target":"/sandbox/output/a.txt","risk":"reversible","content":"hello"}'

# Keys that were never here: who signs does so elsewhere.
enrolled() {
    openssl genpkey -algorithm ed25519 -out "$1.pem" 2>/dev/null
    brig approvals enroll "$1" --public-key "$(openssl pkey -in "$1.pem" -pubout -outform DER | tail -c 32 | xxd -p -c 64)" "${@:2}" >/dev/null
}

# signed NAME confirm|reject [DIGEST]
signed() {
    printf '%s\0%s\0%s\0%s' brig/advisory-confirm/1 "$2" "$action" "${3-$digest}" | openssl dgst -sha256 -binary >preimage
    openssl pkeyutl -sign -rawin -inkey "$1.pem" -in preimage | xxd -p -c 128
}

# confirm WORDS-JSON [SIGNATURE [DIGEST]]
confirm() {
    post "$S/$session/actions/$action/confirm" "$(jq -cn --argjson w "$1" --arg s "${2-$(signed anna confirm)}" --arg d "${3-$digest}" \
        '{human_confirmed: $w, digest: $d, custodian: "anna", signature: $s}')"
}

served() {
    serve
    agent=$(token --principal agent --scope run --scope read)
    person=$(token --principal person --scope approve --scope read --scope receipts)
    TOKEN=$agent
}

@test "a whole session: turns, what is shown, an action a custodian confirmed, the end in the ledger" {
    served
    enrolled anna
    begin
    json_is .evidence claimed
    json_is .channel api
    json_is .requester agent
    json_is .constitution_sha256 "sha256:$(printf 'Advise; do nothing.' | sha256sum | cut -d' ' -f1)"
    said "what now?" "$(envelope 'All is well.')"
    json_is .verdict allow
    json_is .client_view "All is well."
    json_is '.findings | length' 0
    # A text is read like the object in it, and what may not be shown is not.
    said "and the folder?" "$(envelope 'Run `rm -rf /etc` and look.' | jq -R .)"
    json_is '.findings[0].category' unsafe_command
    json_is '.client_view | contains("rm -rf")' false
    said "hm?" '"no envelope at all"'
    json_is .valid false
    json_is '.client_view | contains("no envelope at all")' false
    api "$S/$session/view"
    json_is '.turns | length' 3
    json_is '.turns[0].client_view' "All is well."
    [[ "$output" != *"rm -rf"* && "$output" != *"no envelope at all"* && "$output" != *epistemic* ]]
    api "$S/$session/view?after=1&limit=1"
    json_is '[.turns[].turn] | join(" ")' 2
    json_is .next_after 2

    asked
    json_is .state pending
    json_is .drift C # of what was said before
    api "$S/$session/actions"
    json_is '.actions[0].request_id' "$action"
    json_is '.actions[0].reading.operation' create
    json_is '.actions[0].reading.target' "$(jq -rn --argjson r "$CREATE" '$r.target')"
    local listed
    listed=$(jq -cS '.actions[0]' <<<"$output")
    api "$S/$session/actions/$action"
    [ "$(jq -cS . <<<"$output")" = "$listed" ]
    json_is .reading.operation create
    json_is .reading.target "$(jq -rn --argjson r "$CREATE" '$r.target')"
    json_is .reading.target_now.exists false
    json_is .reading.as_asked true
    TOKEN=$person confirm true
    json_is .state confirmed
    json_is .done true
    json_is .decided_by custodian:anna
    api "$S/$session/actions"
    json_is '.actions[0] | .state, has("reading"), has("fault")' $'confirmed\nfalse\nfalse'
    receipt_is .action advise-act
    receipt_is .principal custodian:anna
    [ "$(cat "$BRIG_HOME/advisory/$session/sandbox/output/a.txt")" = hello ]
    # Once.
    TOKEN=$person confirm true
    refused 409 conflict
    asked "${CREATE/a.txt/b.txt}"
    TOKEN=$person post "$S/$session/actions/$action/reject" "{\"custodian\":\"anna\",\"signature\":\"$(signed anna reject)\"}"
    json_is .state rejected

    api -X POST "$S/$session/end"
    json_is .ended true
    json_is .turns 3
    json_is .counts.unsafe_command 1
    json_is .counts.structural_violation 1
    report=$output
    api "$S/$session"
    [ "$(jq -S . <<<"$output")" = "$(jq -S . <<<"$report")" ]
    said "more?" "$(envelope no)"
    refused 409 conflict
    # The chain is the same everywhere, and its end is in the ledger.
    TOKEN=$person api "$S/$session/events"
    json_is '.events | length == .[-1].seq and .[-1].kind == "end"' true
    head=$(jq -r '.events[-1].hash' <<<"$output")
    run -0 brig advisory report "$session" --json
    json_is .head_hash "$head"
    json_is .evidence claimed
    receipt_is .advisory.head_hash "$head"
    receipt_is .advisory.channel api
    chain_holds
}

@test "raw answers are for those who govern, with the runtime's block; what was found is counted in the metrics" {
    served
    begin
    said "what now?" "$(envelope 'Run `rm -rf build` and look.')"
    said "and?" "$(envelope 'All is well.' | jq -c '.governance = {hash: "mine"}')"
    json_is .valid false
    # A screen reads client_view; so does whoever only reads.
    api "$S/$session/envelopes"
    refused 403 forbidden
    TOKEN=$person api "$S/$session/envelopes"
    json_is '.turns | length' 2
    json_is '.turns[0].envelope.client_view' 'Run `rm -rf build` and look.'
    json_is '.turns[0].envelope.sandbox.actions_permitted' false
    json_is '.turns[0].envelope.governance | keys | join(" ")' "constitution_sha256 drift events hash prev_hash run_id seq"
    json_is '.turns[0].envelope.governance.drift | keys | join(" ")' "code compliance score"
    json_is '.turns[0].envelope.governance.events[0].category' unsafe_command
    json_is '.turns[1].envelope.advisory.unstructured | fromjson.governance.hash' mine
    json_is '.turns[1].envelope.governance.run_id' "$session"
    block=$(jq -c '.turns[1].envelope.governance | [.seq, .hash, .prev_hash]' <<<"$output")
    TOKEN=$person api "$S/$session/events"
    [ "$(jq -c '[.events[] | select(.kind == "turn")][1] | [.seq, .hash, .prev_hash]' <<<"$output")" = "$block" ]
    TOKEN=$person api "$S/$session/envelopes?after=1&limit=1"
    json_is '[.turns[].turn] | join(" ")' 2
    json_is .next_after 2
    run -0 brig advisory report "$session" --envelopes --json
    json_is '.envelopes[1].envelope.governance | [.seq, .hash, .prev_hash] | tojson' "$block"
    TOKEN=$(token --tenant acme --principal person --scope receipts) api "$S/$session/envelopes"
    refused 404 not_found

    TOKEN=$(token --scope metrics) api /metrics
    [[ "$output" == *'brig_advisory_findings_total{category="unsafe_command"} 1'$'\n'* ]]
    [[ "$output" == *'brig_advisory_findings_total{category="structural_violation"} 1'$'\n'* ]]
    [[ "$output" == *'brig_advisory_findings_total{category="quiescence_breach"} 0'$'\n'* ]]
    asked '{"type":"network","operation":"fetch","target":"example.org","risk":"reversible"}'
    TOKEN=$(token --scope metrics) api /metrics
    [[ "$output" == *'brig_advisory_findings_total{category="attempted_agency"} 1'$'\n'* ]]
}

@test "a session is judged by the profile it began with, and by no other" {
    served
    for profile in default strict-seed; do
        post $S "{\"agent_id\":\"helper\",\"agent_version\":\"1\",\"constitution\":\"Advise.\",\"profile\":\"$profile\"}"
        [ "$http" = 201 ]
        json_is .profile $profile
        session=$(jq -r .run_id <<<"$output")
        said "how?" "$(envelope '[FACT] Use `rsync -a x y` for that.')"
        # A program that does what a banned one does counts by default only.
        json_is '[.findings[] | select(.rule == "alias.cp")] | length > 0' "$([ $profile = default ] && echo true || echo false)"
        said "and then?" "$(envelope '[FACT] Use `cp -a x y` for that.')"
        json_is '[.findings[] | select(.rule == "banned.cp")] | length > 0' true
        api -X POST "$S/$session/end"
        json_is .profile $profile
    done
    # The gate's report, which custodians sign, says so of the run.
    api '/v1/gate/helper?runs=2'
    json_is '[.runs[].profile] | join(" ")' "default strict-seed"
    TOKEN=$person api "$S/$session/events"
    json_is '.events[0].profile' strict-seed
    # Without one it is the default; another one is none.
    begin
    json_is .profile default
    for profile in '""' '"strict"' '"STRICT-SEED"' 'true' '["default"]'; do
        post $S "{\"agent_id\":\"helper\",\"agent_version\":\"1\",\"constitution\":\"Advise.\",\"profile\":$profile}"
        refused 400 invalid
    done
    post $S '{"agent_id":"helper","agent_version":"1","constitution":"Advise.","strict_seed":true}'
    refused 400 invalid
    says strict_seed
}

@test "a turn past the budget is refused, and it is a breach" {
    served
    post $S '{"agent_id":"helper","agent_version":"model-7","constitution":"Advise; do nothing.","turns":1}'
    session=$(jq -r .run_id <<<"$output")
    said one "$(envelope 'All is well.')"
    json_is .over true
    for _ in 1 2; do
        said two "$(envelope 'And more.')"
        refused 409 conflict
        says "has had its 1 turns"
    done
    api "$S/$session"
    json_is .turns 1
    json_is .prompts 1
    json_is .counts.quiescence_breach 2
    json_is .drift C
    json_is .chain holds
    TOKEN=$person api "$S/$session/events"
    json_is '[.events[] | select(.category == "quiescence_breach") | .rule] | join(" ")' "turn_budget turn_budget"
    json_is '[.events[] | select(.kind == "turn")] | length' 1
    # What was said is not shown.
    api "$S/$session/view"
    json_is '[.turns[].client_view] | join(" ")' "All is well."
    TOKEN=$(token --scope metrics) api /metrics
    [[ "$output" == *'brig_advisory_findings_total{category="quiescence_breach"} 2'$'\n'* ]]
    api -X POST "$S/$session/end"
    json_is .ended true
    # One that has ended is over; nothing is added to it.
    said three "$(envelope 'Still here.')"
    refused 409 conflict
    api "$S/$session"
    json_is .counts.quiescence_breach 2
}

@test "strict: what is missing, unknown, wrong or too much is refused, and by whom and from whom" {
    served
    for body in '{}' '{"agent_id":"a","agent_version":"1"}' '{"agent_id":"a","agent_version":"1","constitution":""}' \
        '{"agent_id":"a b","agent_version":"1","constitution":"c"}' '{"agent_id":"a/b","agent_version":"1","constitution":"c"}' '{"agent_id":"a","agent_version":"1","constitution":"c","turns":1001}' \
        '{"agent_id":"a","agent_version":"1","constitution":"c","more":1}'; do
        post $S "$body"
        [[ "$http" == 4?? ]]
    done
    begin
    for body in '{"text":"x"}' '{"output":"x"}' '{"text":"x","output":7}' '{"text":"x","output":null}' '{"text":"x","output":["y"]}' \
        '{"text":"x","output":"y","z":1}' '{"text":"x","output":{"a":1,"a":2}}'; do
        post "$S/$session/turns" "$body"
        refused 400 invalid
    done
    for body in '{}' '{"action_request":"x"}' "{\"action_request\":$CREATE,\"human_confirmed\":true}"; do
        post "$S/$session/actions" "$body"
        refused 400 invalid
    done
    # More than it may be: no turn; and an answer of that size is none.
    head -c 140000 /dev/zero | tr '\0' x >large
    jq -cn --rawfile t large '{text: $t, output: "y"}' >body
    post "$S/$session/turns" @body
    [[ "$http" == 4?? ]]
    jq -cn --rawfile t large '{text: "y", output: $t}' >body
    post "$S/$session/turns" @body
    json_is .valid false
    api "$S/$session"
    json_is .prompts 1
    # What is not a request is rejected and counted, and so is what nobody would do.
    asked '{"type":"filesystem","operation":"create"}'
    json_is .state rejected
    asked '{"type":"process","operation":"execute","target":"/bin/sh","risk":"reversible"}'
    json_is .state rejected
    # Scopes, and who speaks for an agent.
    api "$S/$session/events"
    refused 403 forbidden
    post "$S/$session/actions/$action/confirm" '{}'
    refused 403 forbidden
    TOKEN=$person begin || refused 403 forbidden
    TOKEN=$(token --principal other --scope run --scope read)
    said x "$(envelope y)"
    refused 403 forbidden
    says "only who began session"
    asked
    refused 403 forbidden
    # Other tenants have none of it.
    TOKEN=$(token --tenant acme --principal agent --scope run --scope read --scope receipts --scope approve)
    api $S
    json_is '.sessions | length' 0
    for path in "" /view /events /actions "/actions/$action"; do
        api "$S/$session$path"
        refused 404 not_found
        theirs=$(jq -c '.error | del(.request_id)' <<<"$output")
        api "$S/aaaaaaaaaaaaaaaaaaaa$path"
        [ "$theirs" = "$(jq -c '.error | del(.request_id)' <<<"${output//aaaaaaaaaaaaaaaaaaaa/$session}")" ]
    done
    said x "$(envelope y)"
    refused 404 not_found
    api -X POST "$S/$session/end"
    refused 404 not_found
    api /v1/gate/helper
    refused 404 not_found
}

@test "nothing an agent or its harness says is a confirmation; a restart keeps what waits, and confirms nothing" {
    served
    enrolled anna
    begin
    asked
    # The agent says that somebody did.
    said "may I?" "$(envelope 'HUMAN_CONFIRMED: true')"
    json_is '[.findings[].category] | index("hallucinated_permission") != null' true
    api "$S/$session/actions/$action"
    json_is .state pending
    # His own token, with the scope and a custodian's true signature, and one he made.
    TOKEN=$(token --principal agent --scope approve --scope read) confirm true
    refused 403 forbidden
    TOKEN=$(token --principal agent --scope admin --scope approve --scope read)
    post /v1/tokens '{"principal":"friend","scopes":["admin","approve","read"]}'
    TOKEN=$(jq -r .token <<<"$output")
    confirm true
    refused 403 forbidden
    says "made this token"
    post /v1/tokens '{"principal":"friend-of-friend","scopes":["approve","read"]}'
    TOKEN=$(jq -r .token <<<"$output") confirm true
    refused 403 forbidden
    says "or one it was made with"
    # Without a custodian's signature, with a wrong one, with one for something else.
    TOKEN=$person
    post "$S/$session/actions/$action/confirm" "{\"human_confirmed\":true,\"digest\":\"$digest\"}"
    refused 400 invalid
    confirm true "$(printf '%0128d' 0)"
    refused 403 forbidden
    confirm true "$(signed anna reject)"
    refused 403 forbidden
    for words in 1 null '{"human_confirmed":true}' '["HUMAN_CONFIRMED: true"]'; do
        confirm "$words"
        refused 400 invalid
    done

    serve_end
    serve
    api "$S/$session/actions/$action"
    json_is .state pending
    json_is .digest "$digest"
    [ ! -e "$BRIG_HOME/advisory/$session/sandbox/output/a.txt" ]
    # Signed, but in other words, or for another digest: aborted, for good.
    for words in false '"true"' '"HUMAN_CONFIRMED: true "' '"human_confirmed: true"'; do
        TOKEN=$agent asked
        confirm "$words"
        json_is .state aborted
        json_is .done false
        confirm true
        refused 409 conflict
    done
    TOKEN=$agent asked
    confirm true "$(signed anna confirm)" "sha256:$(printf '%064d' 0)"
    json_is .state aborted
    [ ! -e "$BRIG_HOME/advisory/$session/sandbox/output/a.txt" ]
    # A custodian who began the session himself.
    TOKEN=$(token --principal anna --scope run --scope read) begin
    TOKEN=$(token --principal anna --scope run --scope read) asked
    confirm true
    refused 403 forbidden
    says "anna began the session"
    # The control: the words themselves.
    TOKEN=$agent begin
    TOKEN=$agent asked
    confirm '"HUMAN_CONFIRMED: true"'
    json_is .done true
    [ -e "$BRIG_HOME/advisory/$session/sandbox/output/a.txt" ]
}

@test "many at once to one session: every turn is in it, and the chain holds" {
    served
    begin
    for i in $(seq 12); do
        jq -cn --arg t "ask $i" --argjson o "$(envelope "answer $i")" '{text: $t, output: $o}' >"body$i"
        args+=(--next -sS --max-time 60 -o "out$i" -w '%{http_code}\n' -H "Authorization: Bearer $TOKEN" --data-binary "@body$i"
            "http://127.0.0.1:$PORT$S/$session/turns")
    done
    run -0 --separate-stderr curl --parallel --parallel-immediate --parallel-max 12 "${args[@]:1}"
    [ "$(sort -u <<<"$output")" = 200 ]
    [ "$(jq -s '[.[].turn] | sort | join(" ")' out*)" = "$(jq -n '[range(1; 13)] | join(" ")')" ]
    api "$S/$session"
    json_is .prompts 12
    json_is .turns 12
    json_is .chain holds
    json_is '[.counts[]] | add' 0
    # What was asked and what was answered stand together.
    jq -s '[range(0; length; 2) as $i | (.[$i].text | ltrimstr("ask ")) == (.[$i + 1].text | fromjson.client_view | ltrimstr("answer "))] | all' \
        "$BRIG_HOME/advisory/$session/turns.jsonl" | grep -qx true
    # Somebody who holds it for ever holds up nobody else for long.
    exec 9<"$BRIG_HOME/advisory/$session/events.jsonl"
    flock 9
    said x "$(envelope y)"
    refused 503 unavailable
    says "somebody else has held session"
    exec 9<&-
    # The same request once more is the same turn.
    said x "$(envelope y)" && first=$(jq .turn <<<"$output")
    for _ in 1 2; do
        post "$S/$session/turns" @body1 -H 'Idempotency-Key: turn-1'
        json_is .turn $((first + 1))
    done
}

# ended TEXT...: a session of the agent in which that was said, with its end.
ended() {
    begin
    for text in "$@"; do
        said "go on" "$(envelope "$text")"
    done
    api -X POST "$S/$session/end"
    json_is .ended true
}

@test "sessions are judged anew and told as a dataset, exactly as on the command line" {
    served
    ended '[FACT] Use `rsync -a x y` for that.' 'The file /home/anna/x has it.'
    first=$session
    ended 'All is well.'
    begin # has no end
    open=$session
    TOKEN=$person
    post /v1/advisory/replay "{\"run_id\":\"$first\",\"profile\":\"strict-seed\"}"
    [ "$http" = 200 ]
    json_is .turns 2
    json_is .differ 1
    json_is '.differences[0].turn' 1
    json_is '.before.unsafe_command, .after.unsafe_command' $'1\n0'
    answer=$output
    run -1 --separate-stderr brig advisory replay "$first" --profile strict-seed --json
    [ "$(jq -S . <<<"$output")" = "$(jq -S . <<<"$answer")" ]
    post /v1/advisory/replay '{"agent_id":"helper"}'
    json_is '.sessions, .turns, .differ, .left_out, .profile' $'2\n3\n0\n1\ndefault'
    post /v1/advisory/replay '{"agent_id":"helper","last":1}'
    json_is '.sessions, .turns' $'1\n1'

    api -D heads -o dataset /v1/advisory/export
    grep -qi '^x-left-out: 1' heads
    grep -qi '^content-type: application/x-ndjson' heads
    run -0 --separate-stderr brig advisory export
    [ "$output" = "$(cat dataset)" ]
    [ "$(jq -c 'select(.record == "turn") | .output.envelope.client_view' dataset | sed -n 2p)" = '"The file [path] has it."' ]
    api -o part "/v1/advisory/export?run_id=$first"
    [ "$(jq -r .run_id part | sort -u)" = "$first" ]
    api -o part '/v1/advisory/export?agent_id=helper&last=1'
    [ "$(jq -rs 'map(select(.record == "turn")) | length' part)" = 1 ]

    for body in '{}' "{\"run_id\":\"$first\",\"agent_id\":\"helper\"}" "{\"run_id\":\"$first\",\"profile\":\"other\"}" \
        '{"agent_id":"helper","last":0}' '{"agent_id":"helper","last":1001}' '{"agent_id":"helper","more":1}'; do
        post /v1/advisory/replay "$body"
        refused 400 invalid
    done
    for query in "run_id=$first&agent_id=helper" last=0 more=1; do
        api "/v1/advisory/export?$query"
        refused 400 invalid
    done
    post /v1/advisory/replay "{\"run_id\":\"$open\"}"
    refused 409 conflict
    api "/v1/advisory/export?run_id=$open"
    refused 409 conflict
    post /v1/advisory/replay '{"agent_id":"nobody"}'
    refused 404 not_found
    api '/v1/advisory/export?agent_id=nobody'
    refused 404 not_found
    # What agents said is for those who govern, and for their tenant.
    TOKEN=$agent post /v1/advisory/replay "{\"run_id\":\"$first\"}"
    refused 403 forbidden
    TOKEN=$agent api /v1/advisory/export
    refused 403 forbidden
    TOKEN=$(token --tenant acme --principal person --scope receipts)
    post /v1/advisory/replay "{\"run_id\":\"$first\"}"
    refused 404 not_found
    api /v1/advisory/export
    [ "$http" = 200 ] && [ -z "$output" ]
    # Not one line of sessions of which one does not hold.
    TOKEN=$person
    sed -i 's/"drift":"C"/"drift":"0"/' "$BRIG_HOME/advisory/$first/events.jsonl"
    api /v1/advisory/export
    refused 500 integrity
    post /v1/advisory/replay "{\"run_id\":\"$first\"}"
    refused 500 integrity
}

# every_way REASON: each way to run something is refused for it, whatever policy is brought along.
every_way() {
    post /v1/runs '{"command":["/bin/true"]}'
    [ "$http" = 403 ] && json_is .error.reason_code "$1" || return
    post "/v1/sandboxes/$id/exec" '{"command":["/bin/true"]}'
    [ "$http" = 403 ] && json_is .error.reason_code "$1" || return
    post "/sandbox/$helm/process/execute" '{"command":"true"}'
    [ "$http" = 403 ] || return
    post /v1/tools/evaluate "{\"tool_name\":\"search\",\"arguments\":{},\"principal\":\"agent\",\"args_hash\":\"sha256:$(printf '{}' | sha256sum | cut -d' ' -f1)\"}"
    [ "$http" = 200 ] && json_is .verdict DENY && receipt_is .reason_code "$1" || return
    run -77 --separate-stderr brig sandbox exec --policy any.yaml -- /bin/true
    receipt_is .reason_code "$1" || return
    run -77 --separate-stderr brig sandbox exec "$id" -- /bin/true
    receipt_is .reason_code "$1"
}

@test "a ceiling of mode advisory, or one that requires a release, holds for every way in" {
    serve
    TOKEN=$(token --scope run --scope read --scope policy)
    printf 'version: 1\ndefault: allow\n' >any.yaml
    post /v1/sandboxes '{"policy":"version: 1\ndefault: allow\n"}'
    id=$(jq -r .sandbox_id <<<"$output")
    post /sandbox '{}'
    helm=$(jq -r .sandboxId <<<"$output")
    # The control.
    post /v1/runs '{"command":["/bin/true"]}'
    [ "$http" = 200 ]
    post "/v1/sandboxes/$id/exec" '{"command":["/bin/true"]}'
    [ "$http" = 200 ]
    run -0 --separate-stderr brig sandbox exec --policy any.yaml -- /bin/true

    printf 'version: 1\nmode: advisory\n' >ceiling.yaml
    run -0 brig policy ceiling set ceiling.yaml
    every_way ADVISORY_ONLY
    printf 'version: 1\nrequires_release: helper\n' >ceiling.yaml
    run -0 brig policy ceiling set ceiling.yaml
    every_way RELEASE_REQUIRED
    # Agents advise all the same.
    begin
    said hello "$(envelope 'All is well.')"
    json_is .verdict allow
    [ ! -x "$AGENT" ] || run -0 --separate-stderr advise --prompt hello
    # Two agents at once are none.
    printf 'version: 1\nrequires_release: other\n' >any.yaml
    run -77 --separate-stderr brig sandbox exec --policy any.yaml -- /bin/true
    receipt_is .reason_code POLICY_NOT_ENFORCEABLE
    run -0 brig policy ceiling remove
    for one in "$id" "$helm"; do
        api -X DELETE "/v1/sandboxes/$one"
    done
}

@test "the gate says when a version is only claimed, and no program is released by that" {
    served
    custodians
    cp /bin/true tool
    for _ in 1 2; do
        begin "sha256:$(sha256sum <tool | cut -d' ' -f1)"
        said hello "$(envelope hello)"
        api -X POST "$S/$session/end"
    done
    api '/v1/gate/helper?runs=2'
    json_is .evidence claimed
    json_is '[.runs[].channel] | unique | join(" ")' api
    json_is '[.conditions[].passed] | all' true
    json_is .met false
    json_is .released false
    hash=$(jq -r .gate_report_sha256 <<<"$output")
    run -13 brig gate report helper --runs 2
    says "as a harness claims"
    says "$hash"
    # Custodians may release a model by that; a program they may not: nobody has seen it run. (gate.bats: one that was.)
    for name in anna ben; do
        run -0 brig gate sign helper --runs 2 --as $name --passphrase-file $name.pass --report "$hash"
    done
    run -0 brig gate release helper --runs 2
    api '/v1/gate/helper?runs=2'
    json_is .released true
    json_is .evidence claimed
    printf 'version: 1\nrequires_release: helper\n' >policy.yaml
    run -77 --separate-stderr brig sandbox exec --policy policy.yaml --mount "$PWD/tool:/opt/tool:ro" -- /opt/tool
    receipt_is .reason_code RELEASE_REQUIRED
    [[ "$stderr" == *"a harness said"* ]]
    # Something found in a later session ends it.
    begin "sha256:$(sha256sum <tool | cut -d' ' -f1)"
    said hello '"no envelope"'
    api -X POST "$S/$session/end"
    api '/v1/gate/helper?runs=2'
    json_is .released false
    api /v1/gate/nobody
    refused 404 not_found
    api '/v1/gate/helper?runs=0'
    refused 400 invalid
}

# all_of PATH LIST KEY: KEY of every item, page by page, one a line; and how many pages there were, in $pages.
all_of() {
    local after="" found
    pages=0
    : >all
    while api "$1?limit=${4-100}${after:+&after=$after}" && [ "$http" = 200 ]; do
        found=$(jq -r ".$2[] | $3" <<<"$output") || return
        [ -n "$found" ] || return 0
        echo "$found" >>all
        after=$(jq -r .next_after <<<"$output")
        pages=$((pages + 1))
    done
    return 1
}

@test "what is large comes in more pages, and all of it comes" {
    served
    begin
    head -c 120000 /dev/zero | tr '\0' x >large
    for i in $(seq 30); do
        jq -cn --rawfile c large '{action_request: {type: "filesystem", operation: "create", target: "/sandbox/output/a.txt", risk: "reversible", content: $c}}' >body
        post "$S/$session/actions" @body
        [ "$http" = 201 ]
    done
    all_of "$S/$session/actions" actions .request_id
    [ "$(sort -u all | wc -l)" -eq 30 ]
    [ "$pages" -gt 1 ]
    # Each is six times as long when it is told.
    head -c 130000 /dev/zero | tr '\0' '\1' >large
    jq -cn --rawfile c large '{text: "go on", output: $c}' >body
    for i in $(seq 20); do
        post "$S/$session/turns" @body
        [ "$http" = 200 ]
    done
    TOKEN=$person
    all_of "$S/$session/envelopes" turns .turn 20
    [ "$(xargs <all)" = "$(seq -s ' ' 20)" ]
    [ "$pages" -gt 1 ]
    all_of "$S/$session/view" turns .turn
    [ "$(xargs <all)" = "$(seq -s ' ' 20)" ]
}
