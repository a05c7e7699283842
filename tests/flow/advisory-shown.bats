#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What people are shown of an advisory session: escaped, and complete or with how much is hidden.

load common
load sandbox
load advise

setup() {
    common_setup
    pid=
}

teardown() {
    [ -z "$pid" ] || kill "$pid" 2>/dev/null || true
}

# asks JSON: an agent asks for it, in the background.
asks() {
    printf 'ask %s\n' "$1" >in
    timeout -k 5 "$PATIENCE" "$BRIG" advisory run -- "$AGENT" <in >out 2>err 3>&- 4>&- &
    pid=$!
    eventually 10 pending_action
}

ended() {
    local status=0
    wait "$pid" || status=$?
    pid=
    [ "$status" -eq "${1:-0}" ]
}

confirm() {
    brig advisory confirm "$session" "$action" --as anna --passphrase-file anna.pass "$@"
}

# before A B: both are in $output, in this order.
before() {
    [[ "$output" == *"$1"*"$2"* ]]
}

@test "a request that is too long to be shown says how much of it is hidden" {
    custodians
    asks "{\"type\":\"filesystem\",\"operation\":\"create\",\"target\":\"output/zz\",\"risk\":\"reversible\",\"content\":\"$(head -c 100000 /dev/zero | tr '\0' a)\"}"
    run -0 confirm <<<'HUMAN_CONFIRMED: true'
    before "create /sandbox/output/zz (reversible)" '{"type":"filesystem"'
    before 'aaaaaaaa' ' more bytes)'
    # How many there are, of which 4096 are shown.
    local bytes
    bytes=$(jq -r .request "$(session_dir)/actions/$action.json" | tr -d '\n' | wc -c)
    says "($((bytes - 4096)) more bytes)"
    says "100000 bytes, sha256:$(head -c 100000 /dev/zero | tr '\0' a | sha256sum | cut -d' ' -f1)"
    ended
    output=$(cat err)
    before "create /sandbox/output/zz (reversible)" "agent's words {\"type\""
    says "($((bytes - 4096)) more bytes)"
}

@test "an answer of any length is shown whole; its lines and tabs stay, everything else is escaped" {
    local long
    long=$(printf 'word%.0s ' {1..4000})
    run -10 --separate-stderr advise --prompt "envelope ${long}the end"
    [ "$output" = "${long}the end" ]
    run --separate-stderr advise --prompt 'envelope [FACT] a\n[FACT] b\tc\r\u001b[31m\u009b\u202ex\u200b\u2028.'
    [ "$output" = $'[FACT] a\n[FACT] b\tc\\x0d\\x1b[31m\\xc2\\x9b\\xe2\\x80\\xaex\\xe2\\x80\\x8b\\xe2\\x80\\xa8.' ]
}

@test "whoever confirms reads what Brig makes of the request, before the agent's words" {
    custodians
    asks '{"type":"filesystem","operation":"create","target":"/sandbox/output/./a.txt","risk":"reversible","content":"hello"}'
    run -0 confirm <<<'HUMAN_CONFIRMED: true'
    before "create /sandbox/output/a.txt (reversible)" "agent's words"
    before "5 bytes, sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" "agent's words"
    before "target now   does not exist" "agent's words"
    before "digest       sha256:" "agent's words"
    before "expires at   20" "agent's words"
    ended

    # Deleting is irreversible, whatever the agent calls it; what it would delete is said.
    cat >agent.sh <<'SH'
#!/bin/sh
read -r line
read -r line
echo '{"action_request":{"type":"filesystem","operation":"create","target":"/sandbox/output/b","risk":"reversible","content":"hello"}}'
read -r line
echo '{"action_request":{"type":"filesystem","operation":"delete","target":"/sandbox/output/b","risk":"reversible"}}'
read -r line
SH
    chmod +x agent.sh
    "$BRIG" advisory run --prompt x -- ./agent.sh </dev/null >out 2>err 3>&- 4>&- &
    pid=$!
    eventually 10 pending_action
    run -0 confirm --words 'HUMAN_CONFIRMED: true'
    eventually 10 pending_action
    run -13 confirm --words 'no'
    before "delete /sandbox/output/b (irreversible)" '"risk":"reversible"'
    before "target now   5 bytes, sha256:2cf24dba" '"risk":"reversible"'
    wait "$pid" || true
    pid=
}

@test "whoever watches the run reads what Brig makes of a request, too, before the agent's words" {
    custodians
    asks '{"type":"filesystem","operation":"create","target":"output/./a.txt","risk":"unknown","content":"hello"}'
    eventually 10 grep -q "advisory confirm" err
    output=$(cat err)
    before "action $action is pending" "would        create /sandbox/output/a.txt (irreversible)"
    before "create /sandbox/output/a.txt (irreversible)" "agent's words"
    before "5 bytes, sha256:2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824" "agent's words"
    before "target now   does not exist" "agent's words"
    before "digest       $(jq -r .digest "$(session_dir)/actions/$action.json")" "agent's words"
    before "drift        0 in the session until then" "agent's words"
    before "agent's words {" "brig advisory confirm $session $action --as NAME"
    run -0 brig advisory reject "$session" "$action" --as anna --passphrase-file anna.pass
    ended 13
    grep -q "action $action is rejected" err
}

@test "no word at all aborts, also as an option" {
    custodians
    asks '{"type":"filesystem","operation":"create","target":"/sandbox/output/a.txt","risk":"reversible","content":"hello"}'
    run -13 confirm --words ''
    action_is aborted
    ended 13
}

@test "what waits for a custodian is listed, with Brig's reading, and the report names it" {
    custodians
    run -0 brig advisory actions
    says "no action waits"
    asks '{"type":"filesystem","operation":"create","target":"output/a.txt","risk":"unknown","content":"hello"}'
    run -0 brig advisory actions
    before "action       $action of session $session" "create /sandbox/output/a.txt (irreversible)"
    before "agent's words" "brig advisory confirm $session $action --as NAME"
    run -0 brig advisory actions "$session" --json
    json_is '.actions | length' 1
    json_is .complete true
    json_is '.actions[0].run_id' "$session"
    json_is '.actions[0].request_id' "$action"
    json_is '.actions[0].reading.operation' create
    json_is '.actions[0].reading.target' /sandbox/output/a.txt
    json_is '.actions[0].reading.risk' irreversible
    json_is '.actions[0].reading.content_bytes' 5
    json_is '.actions[0].reading.target_now.exists' false
    json_is '.actions[0].reading.as_asked' true
    json_is '.actions[0].request | fromjson | .risk' unknown
    run -0 brig advisory report "$session"
    says "pending: $action create /sandbox/output/a.txt (irreversible)"
    # What it would change was changed by somebody else.
    echo other >"$(session_dir)/sandbox/output/a.txt"
    run -0 brig advisory actions
    says "CHANGED"
    run -66 brig advisory actions aaaaaaaaaaaaaaaaaaaa
    run -0 brig advisory reject "$session" "$action" --as anna --passphrase-file anna.pass
    ended 13
    run -0 brig advisory actions --json
    json_is '.actions | length' 0
    run -0 brig advisory report "$session"
    not grep -q pending <<<"$output"
}

@test "a session that does not end where the ledger says is not reported as one in which nothing was found" {
    advised --prompt hello
    local events
    events=$(session_dir)/events.jsonl
    cp "$events" keep
    sed -i '$d' "$events"
    run -76 brig advisory report "$session"
    says "the ledger counted"
    run -0 brig advisory report --json
    json_is '.sessions[0].chain | contains("the ledger counted")' true
    : >"$events"
    run -76 brig advisory report "$session"
    cp keep "$events"
    run -0 brig advisory report "$session"
    says "nothing found"
}

@test "whoever is told of approvals is told of an action that waits, in Brig's words" {
    custodians
    cat >tell <<X
#!/bin/sh
cat >$WORK/heard.new
mv $WORK/heard.new $WORK/heard
X
    chmod 755 tell
    run -0 brig approvals notify set --command "$WORK/tell"
    asks '{"type":"filesystem","operation":"create","target":"output/a.txt","risk":"unknown","content":"hello"}'
    eventually 20 test -e heard
    output=$(cat heard)
    json_is .type advisory.action_pending
    json_is .data.id "$action"
    json_is .data.run_id "$session"
    json_is .data.agent_id agent
    json_is .data.state pending
    json_is .data.summary "create /sandbox/output/a.txt irreversible"
    json_is .data.digest "$(jq -r .digest "$(session_dir)/actions/$action.json")"
    run -0 brig advisory reject "$session" "$action" --as anna --passphrase-file anna.pass
    ended 13
}
