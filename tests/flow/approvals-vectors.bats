#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The cases of tests/vectors/approvals, which tests/unit/flow/approve runs against the code, against
# the built programs: what another digest is, and whose word counts.

load common
load sandbox
load serve

VECTORS=$BRIG_ROOT/tests/vectors/approvals

setup() {
    common_setup
}

teardown() {
    serve_end
}

# ---- digest.json ----

# lay_out CASE: its files and links in work/, and nothing else.
lay_out() {
    local path kind
    rm -rf work
    mkdir -p work/sub
    while IFS=$'\t' read -r kind path value; do
        case $kind in
            files) printf '%b' "$value" >"work/$path" ;;
            links) ln -s "$value" "work/$path" ;;
        esac
    done < <(jq -r '((.files | to_entries[] | ["files", .key, .value]), (.links | to_entries[] | ["links", .key, .value]))
                    | select(.[2] != null) | @tsv' <<<"$1")
}

# digest_of CASE: asks for it; the digest is in $digest.
digest_of() {
    local options=() words=() variable
    lay_out "$1"
    jq -r .policy <<<"$1" >policy.yaml
    mapfile -d '' -t words < <(jq -j '.argv[] | ., "\u0000"' <<<"$1")
    while IFS= read -r variable; do
        options+=(--env "$variable")
    done < <(jq -r '.env[]' <<<"$1")
    while IFS=$'\t' read -r key value; do
        case $key in
            workdir | user | provider | network | sockets | memory) options+=("--$key" "$value") ;;
            timeout_ms) options+=(--timeout "${value}ms") ;;
            mount) options+=(--mount "$PWD/work:/mnt/w:$value") ;;
            tty) options+=(--tty) ;;
        esac
    done < <(jq -r 'to_entries[] | select(.value | type != "object" and type != "array") | [.key, (.value | tostring)] | @tsv' <<<"$1")
    run brig sandbox exec --json --policy policy.yaml --workspace "$PWD/work" "${options[@]}" -- "${words[@]}"
    [ "$status" -eq 77 ] || return 1
    digest=$(sqlite3 "$BRIG_HOME/approvals.db" "SELECT digest FROM approvals WHERE id = '$(jq -r .approval_id <<<"$output")'")
    [ -n "$digest" ]
}

@test "every case has the digest of the base, or another one" {
    base=$(jq -c .base "$VECTORS/digest.json")
    digest_of "$base"
    first=$digest
    wrong=0
    while IFS= read -r one; do
        name=$(jq -r .name <<<"$one")
        digest_of "$(jq -c --argjson base "$base" '$base * .with' <<<"$one")" ||
            { echo "$name: nobody was asked: $output" >&2; wrong=1; continue; }
        same=false
        [ "$digest" != "$first" ] || same=true
        [ "$same" = "$(jq -r .same <<<"$one")" ] || { echo "$name: the same digest: $same" >&2; wrong=1; }
    done < <(jq -c '.cases[] | select(.with | has("tty") or has("stdin_stream") | not)' "$VECTORS/digest.json")
    [ "$wrong" -eq 0 ]
}

# ---- people.json ----

# A policy with a group and a rule for each case: its command is "echo NUMBER".
people_policy() {
    jq -r '"version: 1", "approvals:",
        (to_entries[] | "  g\(.key): {by: \(.value.terms.by // ["*"] | tojson), quorum: \(.value.terms.quorum // 1)"
            + (if .value.terms.timeout_s then ", timeout: \(.value.terms.timeout_s)s" else "" end)
            + (if .value.terms.use_within_s then ", use_within: \(.value.terms.use_within_s)s" else "" end)
            + ", reason_required: \(.value.terms.reason_required // false)}"),
        "commands:", (to_entries[] | "  - {ask: [echo, \"case-\(.key)\"], approval: g\(.key)}")' "$VECTORS/people.json"
}

declare -gA tokens

# token_of NAME MAKER…: a token of that principal, made with the token of the first maker, which was
# made with that of the second, and so on.
token_of() {
    local name=$1
    shift
    [ -z "${tokens[$name]:-}" ] || return 0
    if [ $# -eq 0 ]; then
        tokens[$name]=$(token --principal "$name" --scope run --scope read --scope approve --scope admin)
        return 0
    fi
    token_of "$@"
    TOKEN=${tokens[$1]} post /v1/tokens "{\"principal\":\"$name\",\"scopes\":[\"run\",\"read\",\"approve\",\"admin\"]}"
    [ "$http" = 201 ]
    tokens[$name]=$(jq -r .token <<<"$output")
}

# asked NUMBER: what comes of asking for its command, in $state; the approval is in $id.
asked() {
    TOKEN=${tokens[agent]} post /v1/runs "{\"command\":[\"echo\",\"case-$1\"]}"
    if [ "$http" = 200 ]; then
        state=used
        return
    fi
    state=$(jq -r '.error.reason_code | {POLICY_ASK: "pending", APPROVAL_REJECTED: "rejected"}[.] // .' <<<"$output")
    id=$(jq -r '.error.details.approval_id // empty' <<<"$output")
}

# said STEP: whose word, and what comes of it, in $state.
said() {
    local by verb=confirm makers
    by=$(jq -r .by <<<"$1")
    [ "$(jq -r 'if has("confirm") then .confirm else true end' <<<"$1")" = true ] || verb=reject
    if [ "$(jq -r .custodian <<<"$1")" = true ]; then
        brig approvals "$verb" "$id" --as "${by#custodian:}" --passphrase-file pass --json >answer
        state=$(jq -r .state answer)
        return
    fi
    mapfile -t makers < <(jq -r '.made_by[]?' <<<"$1")
    token_of "$by" "${makers[@]}"
    TOKEN=${tokens[$by]} post "/v1/approvals/$id/$verb" "$(jq -c 'if .comment then {comment} else {} end' <<<"$1")"
    state=$(jq -r 'if .error then .error.code else .state end' <<<"$output")
}

@test "every case of who may confirm goes as it says, over the API" {
    without_daemon "it starts its own"
    need curl
    echo 'a long passphrase' >pass
    chmod 600 pass
    brig approvals enroll anna --passphrase-file pass
    people_policy >people.yaml
    serve --policy people.yaml
    token_of agent
    wrong=0
    for number in $(jq -r 'to_entries[] | select(.value.unit_only | not) | .key' "$VECTORS/people.json"); do
        id=
        while IFS= read -r step; do
            before=$id
            wanted=$(jq -r '.ask // .expect // empty' <<<"$step")
            case $(jq -r 'if has("wait_s") then "wait" elif has("ask") then "ask" else "word" end' <<<"$step") in
                wait) sleep "$(jq -r .wait_s <<<"$step")" && continue ;;
                ask) asked "$number" ;;
                word) said "$step" ;;
            esac
            [ "$state" = "$wanted" ] ||
                { echo "case $number, $step: $state: $output" >&2; wrong=1; }
            case $(jq -r .anew <<<"$step") in
                true) [ "$id" != "$before" ] || { echo "case $number, $step: not anew" >&2; wrong=1; } ;;
                false) [ "$id" = "$before" ] || { echo "case $number, $step: anew" >&2; wrong=1; } ;;
            esac
        done < <(jq -c ".[$number].steps[]" "$VECTORS/people.json")
    done
    [ "$wrong" -eq 0 ]
    serve_end
    run -0 brig receipts verify
}
