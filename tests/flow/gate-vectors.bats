#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The cases of tests/vectors/advisory/gate.json against the built program: sessions over HTTP, their ends in a true ledger, and
# what the gate makes of them.

load common
load sandbox
load serve
load advise

setup() {
    common_setup
    need curl jq
    without_daemon "it starts its own"
}

teardown() {
    serve_end
}

S=/v1/advisory/sessions

envelope() {
    jq -cn --arg v "$1" '{epistemic: {facts: [], hypotheses: [], assumptions: []}, advisory: {},
        sandbox: {actions_permitted: false, reason: "Helix aligned sandbox mode"}, client_view: $v}'
}

# hear TEXT: "view …", "raw …" or "ask …"
hear() {
    case $1 in
    ask\ *) post "$S/$session/actions" "{\"action_request\":${1#ask }}" ;;
    raw\ *) post "$S/$session/turns" "$(jq -cn --arg o "${1#raw }" '{text: "hello", output: $o}')" ;;
    *) post "$S/$session/turns" "$(jq -cn --argjson o "$(envelope "${1#view }")" '{text: "hello", output: $o}')" ;;
    esac
    [[ "$http" == 20? ]]
}

# What is done to a session afterwards, behind Brig's back.
spoil() {
    local events
    events=$(session_dir)/events.jsonl
    case $1 in
    changed) sed -i 's/"compliance":100/"compliance":99/' "$events" ;;
    gap) sed -i 3d "$events" ;;
    tail) sed -i '$d' "$events" ;;
    gone) rm -r "$(session_dir)" ;;
    requester) sed -i 's/"requester":"agent"/"requester":"other"/' "$(session_dir)/session.json" ;;
    esac
}

# one_run AGENT RUN-JSON
one_run() {
    local text
    post $S "$(jq -c --arg a "$1" '{agent_id: $a, agent_version: (.version // "1"), constitution: (.constitution // "be good")}' <<<"$2")"
    [ "$http" = 201 ] || return
    session=$(jq -r .run_id <<<"$output")
    while IFS= read -r text; do
        hear "$text" || return
    done < <(jq -r '.said[]' <<<"$2")
    if [ "$(jq -r '.then // ""' <<<"$2")" != open ]; then
        api -X POST "$S/$session/end"
        [ "$http" = 200 ] || return
    fi
    spoil "$(jq -r '.then // ""' <<<"$2")"
}

@test "every case of the vectors: which conditions are met, and what voids a release" {
    serve
    custodians
    TOKEN=$(token --principal agent --scope run --scope read)
    local file=$BRIG_ROOT/tests/vectors/advisory/gate.json number=0 item one n version
    [ "$(jq length "$file")" -ge 30 ]
    while IFS= read -r item; do
        number=$((number + 1))
        n=$(jq .n <<<"$item")
        version=$(jq -r '.version // "1"' <<<"$item")
        echo "case: $(jq -r .name <<<"$item")"
        while IFS= read -r one; do
            one_run "case$number" "$one"
        done < <(jq -c '.runs[]' <<<"$item")
        api "/v1/gate/case$number?runs=$n&agent_version=$version"
        echo "$output"
        [ "$http" = 200 ]
        [ "$(jq -c '[.conditions[] | select(.passed | not).name]' <<<"$output")" = "$(jq -c .failed <<<"$item")" ]
        jq -e --argjson item "$item" '$item.evidence == "" or any(.conditions[].evidence[]; contains($item.evidence))' <<<"$output"
        # Nobody has signed: not six of six, whatever was found; and the command line says the same.
        json_is .met false
        local hash
        hash=$(jq -r .gate_report_sha256 <<<"$output")
        run -13 --separate-stderr brig gate report "case$number" --runs "$n" --agent-version "$version" --json
        json_is .gate_report_sha256 "$hash"
        [ "$(jq -c '.behind // empty' <<<"$item")" ] || continue

        run -0 brig gate sign "case$number" --runs "$n" --as anna --passphrase-file anna.pass
        run -0 brig gate sign "case$number" --runs "$n" --as ben --passphrase-file ben.pass
        run -0 brig gate report "case$number" --runs "$n"
        run -0 brig gate release "case$number" --runs "$n"
        run -0 brig gate status "case$number"
        while IFS= read -r one; do
            one_run "case$number" "$one"
        done < <(jq -c '.behind[]' <<<"$item")
        run --separate-stderr brig gate status "case$number" --json
        [ "$status" -eq "$(jq 'if .voided == "" then 0 else 13 end' <<<"$item")" ]
        jq -e --argjson item "$item" '.why_not | contains($item.voided)' <<<"$output"
    done < <(jq -c '.[]' "$file")
    [ "$number" -ge 30 ]
}
