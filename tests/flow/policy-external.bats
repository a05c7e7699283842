#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# A decider outside of Brig: it can say less than the policy, never more, and whatever is not a clear
# yes is a no.

load common
load sandbox
load serve

setup() {
    common_setup
    need perl
    setsid perl "$BRIG_ROOT/tests/flow/pdp-server.pl" "$WORK/port" "$WORK/asked" </dev/null >/dev/null 2>&1 3>&- &
    server=$!
    eventually 10 test -s "$WORK/port"
    port=$(cat "$WORK/port")
}

teardown() {
    local status=0
    serve_end || status=$?
    [ -z "$server" ] || kill "$server" 2>/dev/null || true
    [ -z "${id-}" ] || brig sandbox destroy "$id"
    return $status
}

# policy FILE HOW [PROTOCOL [MORE]]: everything is allowed, but for what the decider says.
policy() {
    cat >"$1" <<Y
version: 1
default: allow
commands:
  - {name: no-id, deny: [id, "**"]}
  - {name: confirm, ask: [uname, "**"]}
external: {url: "http://127.0.0.1:$port/v1/data/brig/$2", protocol: ${3:-opa}, timeout: ${5:-4s}${4:+, $4}}
Y
}

asked() {
    [ ! -e asked ] && echo 0 || wc -l <asked
}

@test "a yes leaves the verdict as it is, and the decider sees what is asked" {
    policy p.yaml yes
    run -0 brig sandbox exec --policy p.yaml --env SECRET=hush -- echo hello
    [ "$output" != "${output/hello/}" ]
    receipt_is .reason_code POLICY_DEFAULT_ALLOW
    tail -1 asked >question
    not grep hush question
    output=$(cat question)
    json_is .input.principal "uid:$(id -u)"
    json_is .input.tenant default
    json_is .input.action run
    json_is '.input.command | join(" ")' "echo hello"
    json_is '.input.env_names[0]' SECRET
    json_is .input.verdict ALLOW
    json_is .input.policy_hash "$(receipt .policy_hash)"
    policy p.yaml object-yes
    run -0 brig sandbox exec --policy p.yaml -- true
    # A yes allows nothing by itself, and a denial is not put to it.
    n=$(asked)
    run -77 brig sandbox exec --policy p.yaml -- id
    receipt_is .rule no-id
    [ "$(asked)" -eq "$n" ]
    run -77 brig sandbox exec --policy p.yaml -- uname
    receipt_is .reason_code POLICY_ASK
    [ "$(asked)" -eq $((n + 1)) ]
    policy p.yaml yes opa 'on: [allow]'
    run -77 brig sandbox exec --policy p.yaml -- uname
    [ "$(asked)" -eq $((n + 1)) ]
}

@test "a no is a denial, with the decider's words; a person can be wanted" {
    policy p.yaml no
    run -77 brig sandbox exec --policy p.yaml -- true
    receipt_is .reason_code PDP_DENY
    receipt_is .rule external
    receipt_is .rule_line 6
    policy p.yaml object-no
    run -77 brig sandbox exec --policy p.yaml -- true
    says "not on a Monday"
    policy p.yaml ask
    exec_json --policy p.yaml -- true
    json_is .verdict ASK
    json_is .reason_code PDP_ASK
    run -0 brig approvals list --json
    json_is '.approvals | length' 1
    policy p.yaml no
    run -77 brig sandbox exec --policy p.yaml -- uname
    receipt_is .reason_code PDP_DENY
}

@test "a person whom the decider wants is one of the group default" {
    policy p.yaml ask
    echo 'approvals: {default: {by: ["custodian:anna", "custodian:ben"], quorum: 2}}' >>p.yaml
    run -77 brig sandbox exec --policy p.yaml -- true
    says PDP_ASK
    run -0 brig approvals list --json
    json_is '.approvals[0].group' default
    json_is '.approvals[0].quorum' 2
    json_is '.approvals[0].may_confirm | join(" ")' "custodian:anna custodian:ben"
}

@test "AuthZEN" {
    policy p.yaml az-yes authzen
    run -0 brig sandbox exec --policy p.yaml -- echo x
    output=$(tail -1 asked)
    json_is .subject.type principal
    json_is .subject.id "uid:$(id -u)"
    json_is .action.name run
    json_is .resource.type command
    json_is .resource.id echo
    json_is '.resource.properties.command | length' 2
    json_is .context.verdict ALLOW
    policy p.yaml az-no authzen
    run -77 brig sandbox exec --policy p.yaml -- true
    says "not yours"
    receipt_is .reason_code PDP_DENY
    policy p.yaml az-ask authzen
    run -77 brig sandbox exec --policy p.yaml -- true
    says PDP_ASK
    for how in az-word yes html packed; do
        policy p.yaml "$how" authzen
        run -77 brig sandbox exec --policy p.yaml -- true
        receipt_is .reason_code PDP_ERROR
    done
}

@test "whatever is not a clear answer is a denial" {
    for how in garbage twice undefined word list empty huge redirect broken none half obliged bad-ask az-yes; do
        policy p.yaml "$how"
        n=$(asked)
        run -77 brig sandbox exec --policy p.yaml -- true
        receipt_is .reason_code PDP_ERROR || { echo "$how" >&2; return 1; }
        [ "$(asked)" -eq $((n + 1)) ] # no second try, and nobody else is asked
    done
}

@test "one that does not answer, or is not there, is a denial in the time the policy gives" {
    policy p.yaml slow opa '' 300ms
    run -77 timeout 30 "$BRIG" sandbox exec --policy p.yaml -- true
    says "did not answer within 300 ms"
    receipt_is .reason_code PDP_ERROR
    kill "$server"
    server= # its number is somebody else's soon
    refused() { not perl -MIO::Socket::INET -e 'exit !IO::Socket::INET->new("127.0.0.1:$ARGV[0]")' "$port"; }
    eventually 10 refused
    policy p.yaml yes
    run -77 brig sandbox exec --policy p.yaml -- true
    receipt_is .reason_code PDP_ERROR
}

@test "whoever gives up and ends does not fall over what still goes on" {
    printf 'version: 1\ndefault: allow\nexternal: {url: "https://127.0.0.1:9/x", protocol: opa, timeout: 1ms}\n' >p.yaml
    for _ in $(seq 40); do
        run -77 brig sandbox exec --quiet --provider mock --policy p.yaml -- true
    done
}

@test "each command of a kept sandbox is asked about; making one is not" {
    policy p.yaml no
    run -0 brig sandbox create --policy p.yaml --json
    id=$(jq -r .sandbox_id <<<"$output")
    [ "$(asked)" -eq 0 ]
    run -77 brig sandbox exec "$id" -- true
    receipt_is .reason_code PDP_DENY
}

# question WORDS…: as HELM's adapters ask before they run something in $id.
question() {
    local content
    content=$(jq -nc --arg id "$id" '{type: "sandbox_exec_intent", sandbox_id: $id, command: $ARGS.positional} | tojson' --args -- "$@")
    post /v1/chat/completions "{\"model\":\"helm-governance\",\"messages\":[{\"role\":\"user\",\"content\":$content}]}"
}

@test "a question that ends with a person is put to it once" {
    need curl
    without_daemon "it starts one of its own"
    policy p.yaml yes
    serve --policy p.yaml
    TOKEN=$(token)
    post /v1/sandboxes '{}'
    id=$(jq -r .sandbox_id <<<"$output")
    question uname -a
    json_is '.helm.approval_id | length > 0' true
    [ "$(asked)" -eq 1 ]
    json_is .input.verdict ASK "$(tail -1 asked)"
    question uname -a # the same question again is a question again
    [ "$(asked)" -eq 2 ]
    api -X DELETE "/v1/sandboxes/$id"
    serve_end
    # Where only the decider wants a person, that is what he is asked about.
    policy p.yaml ask
    serve --policy p.yaml
    post /v1/sandboxes '{}'
    id=$(jq -r .sandbox_id <<<"$output")
    question true
    json_is '.helm.approval_id | length > 0' true
    [ "$(asked)" -eq 3 ]
    api -X DELETE "/v1/sandboxes/$id"
    id=
}

@test "it is asked about an elevated run, whatever verdicts are put to it" {
    user=""
    [ "$(id -u)" -ne 0 ] || user=", user: nobody"
    for on in allow ask; do
        policy p.yaml no opa "on: [$on]"
        echo "elevated: [{name: who, allow: [/usr/bin/id, -u]$user}]" >>p.yaml
        sed -i '/no-id/d' p.yaml
        run -0 brig policy apply p.yaml
        n=$(asked)
        run -77 brig sandbox exec --elevated -- /usr/bin/id -u
        receipt_is .reason_code PDP_DENY
        [ "$(asked)" -eq $((n + 1)) ]
        json_is .input.action elevate "$(tail -1 asked)"
        json_is .input.verdict ASK "$(tail -1 asked)"
    done
    run -0 brig approvals list --json
    json_is '.approvals | length' 0
}

@test "what it says cannot speak to a terminal" {
    policy p.yaml escape
    run -77 brig sandbox exec --policy p.yaml -- true
    receipt_is .reason_code PDP_DENY
    says "red"
    [[ "$output" != *$'\e'* ]]
}

@test "the ceiling's decider is asked under every policy; an overlay cannot name one" {
    policy c.yaml no
    printf 'version: 1\ndefault: allow\n' >open.yaml
    run -0 brig policy ceiling set c.yaml
    run -77 brig sandbox exec --policy open.yaml -- true
    receipt_is .reason_code PDP_DENY
    receipt_is .policy_layer ceiling
    run -64 brig sandbox exec --overlay c.yaml -- true
    says "external cannot stand in the overlay"
}

@test "what cannot be a decider is refused when the policy is read" {
    for url in ftp://x/y http://example.org/x "https://a@b/x" "https://example.org/x?y"; do
        printf 'version: 1\nexternal: {url: "%s", protocol: opa}\n' "$url" >bad.yaml
        run -64 brig policy check bad.yaml
        says '"url" must be https://'
    done
    printf 'version: 1\nexternal: {url: "https://example.org/x", protocol: opa, timeout: 6s}\n' >bad.yaml
    run -64 brig policy check bad.yaml
    says '"timeout" is from 1ms to 5s'
    printf 'version: 1\nexternal: {url: "https://example.org/x", protocol: opa, on: [deny]}\n' >bad.yaml
    run -64 brig policy check bad.yaml
}

@test "a client of a daemon cannot make it call somebody" {
    without_daemon "it has one of its own"
    policy p.yaml yes
    daemon_beside
    run -77 brig sandbox exec --policy p.yaml -- true
    says "cannot name whom this machine calls"
    [ "$(asked)" -eq 0 ]
    # The operator can.
    run -0 brig policy apply p.yaml
    run -0 brig sandbox exec -- true
    [ "$(asked)" -eq 1 ]
    run -0 brig policy reset
    brig policy bundle make --out b.json --key k --name n --version 1 p.yaml
    run -77 brig sandbox exec --policy b.json -- true
    [ "$(asked)" -eq 1 ]
    brig policy trust add "$(jq -r .public_key b.json)"
    run -0 brig sandbox exec --policy b.json -- true
    [ "$(asked)" -eq 2 ]
}

# evaluate FILE: one question about a tool; how long it took is in FILE.
evaluate() {
    local hash
    hash=sha256:$(printf '{"at":"it"}' | sha256sum | cut -d' ' -f1)
    curl -sS --max-time 60 -o "$1.answer" -w '%{time_total}' -H "Authorization: Bearer $TOKEN" \
        -d '{"tool_name":"look","arguments":{"at":"it"},"args_hash":"'"$hash"'"}' "http://127.0.0.1:$PORT/v1/tools/evaluate" >"$1"
}

@test "questions to a daemon wait for a decider beside each other, and nobody else waits" {
    need curl
    without_daemon "it has one of its own"
    policy p.yaml slow opa '' 5s
    run -0 brig policy apply p.yaml
    serve
    stranger=$(token --tenant acme --scope run) # before there is something to wait for
    TOKEN=$(token --scope run)
    for i in $(seq 12); do
        evaluate "took$i" &
        pids[i]=$!
    done
    eventually 10 test -s asked
    TOKEN=$stranger evaluate other
    # Answered, while none of those is.
    [ -s other ]
    for i in $(seq 12); do
        [ ! -s "took$i" ]
    done
    wait "${pids[@]}"
    json_is .verdict DENY "$(cat took12.answer)"
    [ "$(ledger "SELECT count(*) FROM receipts WHERE body LIKE '%\"PDP_ERROR\"%'")" -eq 12 ]
    # One after the other they would take a minute.
    for i in $(seq 12); do
        awk -v took="$(cat "took$i")" 'BEGIN { exit !(took < 30) }'
    done
    [ "$(asked)" -eq 12 ] # each once
    serve_end
}
