#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# What a person must confirm: bound to exactly that, once, and never by whoever asked.

load common
load sandbox
load kept
load serve

setup() {
    common_setup
    printf 'version: 1\ncommands:\n  - allow: [cat]\n  - ask: [echo, "**"]\n' >ask.yaml
    echo 'correct horse battery' >pass
    chmod 600 pass
}

teardown() {
    local status=0
    serve_end || status=$?
    destroy_all
    return $status
}

# ask WORDS…: brig sandbox exec under that policy; the approval is in $approval.
ask() {
    run brig sandbox exec --json --policy ask.yaml -- "$@"
    approval=$(jq -r '.approval_id // empty' <<<"$output")
}

@test "what asks waits; confirmed by a custodian exactly that runs, once" {
    ask echo one
    [ "$status" -eq 77 ]
    json_is .verdict ASK
    receipt_is .status PENDING
    receipt_is .approval.approval_id "$approval"
    first=$approval
    ask echo one
    [ "$approval" = "$first" ]
    run -0 brig approvals show "$first" --json
    json_is .state pending
    json_is '.subject.command | join(" ")' "echo one"
    run -0 brig approvals list
    says "echo one"

    # He who asked cannot confirm; nor can a stranger, nor a wrong passphrase.
    run -77 brig approvals confirm "$first"
    says "whoever asks cannot answer"
    receipt_is .reason_code APPROVAL_FAILED
    run -66 brig approvals confirm "$first" --as nobody --passphrase-file pass
    run -0 brig approvals enroll anna --passphrase-file pass
    echo 'wrong horse battery' >wrong
    run -77 brig approvals confirm "$first" --as anna --passphrase-file wrong
    says "that is not the passphrase"
    run -0 brig approvals confirm "${first:0:8}" --as anna --passphrase-file pass --comment fine
    says "confirmed $first, by custodian:anna"
    receipt_is .action approve
    receipt_is .principal custodian:anna
    receipt_is .outcome.approval.comment fine
    receipt_is '.outcome.approval.custodian_signature | length' 128
    run -75 brig approvals confirm "$first" --as anna --passphrase-file pass
    says "is confirmed already"

    # Anything else asks anew.
    ask echo two
    [ "$status" -eq 77 ]
    [ "$approval" != "$first" ]
    run brig sandbox exec --json --policy ask.yaml --env A=1 -- echo one
    [ "$(jq -r .approval_id <<<"$output")" != "$first" ]
    echo '  - allow: [date]' >>ask.yaml
    ask echo one
    [ "$approval" != "$first" ]
    sed -i '$d' ask.yaml

    ask echo one
    [ "$status" -eq 0 ]
    json_is .stdout one
    json_is .reason_code APPROVAL_CONFIRMED
    receipt_is .approval.by custodian:anna
    ask echo one
    [ "$status" -eq 77 ]
    [ "$approval" != "$first" ]
    run -0 brig approvals show "$first" --json
    json_is .state used
    run -0 brig receipts verify
}

@test "what cannot be read any more is not confirmed" {
    command -v sqlite3 >/dev/null || skip "no sqlite3"
    ask echo one
    run -0 brig approvals enroll anna --passphrase-file pass
    for subject in garbage '{}' '"echo"' '{"command":["echo","one"'; do
        sqlite3 "$BRIG_HOME/approvals.db" "UPDATE approvals SET subject = '$subject'"
        run -76 brig approvals confirm "$approval" --as anna --passphrase-file pass
        says "what $approval is about cannot be read any more: the list of approvals is damaged; reject it"
        run -0 brig approvals show "$approval"
        says "command       cannot be read any more: the list of approvals is damaged"
        run -0 brig approvals list
        says "(cannot be read any more: the list of approvals is damaged)"
    done
    run -77 brig sandbox exec --policy ask.yaml -- echo one
    run -0 brig approvals reject "$approval" --as anna --passphrase-file pass
}

@test "shown is what it would be held to, where it would run and what the policy takes it for" {
    mkdir p
    run -77 brig sandbox exec --json --policy ask.yaml --workspace "$PWD/p:rw" --memory 64M --timeout 5s -- echo one
    approval=$(jq -r .approval_id <<<"$output")
    run -0 brig approvals show "$approval" --json
    json_is .subject.limits.memory_bytes $((64 * 1024 * 1024))
    json_is .subject.limits.wall_ms 5000
    json_is .subject.workdir /workspace
    json_is '.subject.effect | length > 0' true
    json_is '.subject.risk | test("^E[0-4]$")' true
    json_is '.subject.image_digest | test("^sha256:[0-9a-f]{64}$")' true
    run -0 brig approvals show "$approval"
    says "memory_bytes 67108864"
    says "wall_ms 5000"
    says "workdir       /workspace"
    says "risk          E"
    says "$PWD/p at /workspace, writable"
    # Another limit is another request, as before.
    run -77 brig sandbox exec --json --policy ask.yaml --workspace "$PWD/p:rw" --memory 65M --timeout 5s -- echo one
    [ "$(jq -r .approval_id <<<"$output")" != "$approval" ]
}

@test "rejected stays rejected; whoever asked may take it back" {
    ask echo one
    run -0 brig approvals reject "$approval" --comment "not today"
    ask echo one
    [ "$status" -eq 77 ]
    json_is .reason_code APPROVAL_REJECTED
    json_is .reason "rejected by uid:$(id -u): not today"
    run -0 brig approvals list --state rejected --json
    json_is '.approvals | length' 1
}

@test "custodians choose custodians; their keys are of no use without the passphrase" {
    run -0 brig approvals enroll anna --passphrase-file pass --json
    json_is .signs_here true
    echo 'another passphrase' >second
    run -77 brig approvals enroll ben --passphrase-file second
    says "one of them has to enroll ben"
    run -77 brig approvals enroll ben --passphrase-file second --by anna --by-passphrase-file second
    run -0 brig approvals enroll ben --passphrase-file second --by anna --by-passphrase-file pass
    run -75 brig approvals enroll ben --passphrase-file second --by anna --by-passphrase-file pass
    run -64 brig approvals enroll x --passphrase-file <(echo short) --by anna --by-passphrase-file pass
    run -64 brig approvals enroll 'a b' --passphrase-file second --by anna --by-passphrase-file pass
    run -0 brig approvals custodians --json
    json_is '.custodians | map(.name) | join(",")' anna,ben
    run ! grep -rqF 'correct horse' "$BRIG_HOME"
}

# What nothing is recorded behind, and back.
break_ledger() {
    sqlite3 "$BRIG_HOME/receipts.db" "UPDATE receipts SET body = replace(body, '$1', '$2')
        WHERE seq = (SELECT max(seq) FROM receipts)"
}

# waiting: how many people see, and none of them is without its receipt.
waiting() {
    brig approvals list --json | jq -r '.approvals[].approval_id' >ids
    brig receipts export >ledger
    while read -r id; do
        grep -q "\"approval_id\":\"$id\".*\"status\":\"PENDING\"" ledger || echo "no receipt of $id:"
    done <ids
    wc -l <ids
}

@test "what cannot be recorded is not asked: without its receipt nobody sees it, or can confirm it" {
    need sqlite3
    without_daemon "the ledger is changed under it"
    brig approvals enroll anna --passphrase-file pass >/dev/null
    break_ledger '"tenant"' '"tenanx"'
    for wait in "" "--wait 300ms"; do
        # shellcheck disable=SC2086 # words
        run -76 brig sandbox exec --policy ask.yaml $wait -- echo unrecorded
        says "has been changed"
    done
    hidden=$(sqlite3 "$BRIG_HOME/approvals.db" 'SELECT id FROM approvals')
    break_ledger '"tenanx"' '"tenant"'
    [ "$(waiting)" -eq 0 ]
    run -66 brig approvals show "$hidden"
    run -66 brig approvals confirm "$hidden" --as anna --passphrase-file pass
    # Recorded, it is asked, and has all the time a request has.
    sqlite3 "$BRIG_HOME/approvals.db" 'UPDATE approvals SET asked_at = asked_at - 3000, expires_at = expires_at - 3000'
    ask echo unrecorded
    [ "$approval" = "$hidden" ]
    [ "$(waiting)" -eq 1 ]
    run -0 brig approvals show "$approval" --json
    [ "$(jq '(.expires_at | fromdate) - now | . > 3000' <<<"$output")" = true ]
    run -0 brig approvals confirm "$approval" --as anna --passphrase-file pass
    ask echo unrecorded
    status_is 0
}

@test "a run that waits is recorded as asked for before anybody can say yes" {
    without_daemon "its state directory is looked into"
    brig approvals enroll anna --passphrase-file pass >/dev/null
    brig sandbox exec --json --policy ask.yaml --wait 2m -- echo later >waited &
    running=$!
    seen() { [ "$(brig approvals list --json | jq '.approvals | length')" -eq 1 ]; }
    eventually 10 seen
    [ "$(waiting)" -eq 1 ]
    run -0 brig approvals confirm "$(cat ids)" --as anna --passphrase-file pass
    await "$running"
    [ "$status" -eq 0 ]
    [ "$(jq -r .stdout waited)" = later ]
    brig receipts verify
    # Of one decision: that it was asked, that it may, and how it ended.
    run jq -rs '[.[] | select(.approval.approval_id) | .kind] | join(" ")' <(brig receipts export)
    [ "$output" = "denial intent outcome" ]
    run jq -rs '[.[] | select(.approval.approval_id) | .decision_id] | unique | length' <(brig receipts export)
    [ "$output" = 1 ]
}

@test "a run that waits says so to who looks at a terminal" {
    brig approvals enroll anna --passphrase-file pass >/dev/null
    timeout -k 5 60 script -qefc "'$BRIG' sandbox exec --policy ask.yaml --wait 2m -- echo late" seen </dev/null >/dev/null 3>&- &
    running=$!
    told() { [ -e seen ] && grep -q "waits for a person: .brig approvals show" seen; }
    eventually 20 told
    approval=$(brig approvals list --json | jq -r '.approvals[0].approval_id')
    grep -q "approval $approval waits" seen
    brig approvals confirm "$approval" --as anna --passphrase-file pass
    await "$running"
    [ "$status" -eq 0 ]
    grep -q "^late" seen
    # Where nobody looks, nothing is said.
    run -77 brig sandbox exec --policy ask.yaml --wait 300ms -- echo never
    [ "${#lines[@]}" -eq 1 ]
}

# confirmed_meanwhile COMMAND…: done while a run waits; then somebody says yes. $status and the file waited are the run's.
confirmed_meanwhile() {
    brig sandbox exec --policy "$policy" --wait 2m -- echo late >waited 2>&1 &
    running=$!
    seen() { [ "$(brig approvals list --json | jq '.approvals | length')" -eq 1 ]; }
    eventually 10 seen
    "$@" >/dev/null
    brig approvals confirm "$(brig approvals list --json | jq -r '.approvals[0].approval_id')" --as anna --passphrase-file pass
    await "$running"
}

@test "what is above the policy counts as it is when the word comes" {
    without_daemon "its policy is brought along"
    brig approvals enroll anna --passphrase-file pass >/dev/null
    printf 'version: 1\ncommands: [{deny: [echo, "**"]}]\n' >no-echo.yaml
    printf 'version: 1\ncommands: [{deny: [rm, "**"]}]\n' >ceiling.yaml
    policy=ask.yaml
    brig policy ceiling set ceiling.yaml >/dev/null
    confirmed_meanwhile brig policy ceiling set ceiling.yaml # the same
    status_is 0
    for change in "set no-echo.yaml" remove; do
        # shellcheck disable=SC2086 # words
        confirmed_meanwhile brig policy ceiling $change
        [ "$status" -eq 77 ]
        grep -q "the ceiling changed after it was asked for" waited
        receipt_is .reason_code APPROVAL_TARGET_CHANGED
        brig policy ceiling set ceiling.yaml >/dev/null
    done
    brig policy ceiling remove >/dev/null
    confirmed_meanwhile brig policy ceiling set no-echo.yaml
    [ "$status" -eq 77 ]
    brig policy ceiling remove >/dev/null
    # Whose bundle it is.
    brig policy bundle make --out b.json --key k --name n --version 1 ask.yaml >/dev/null
    brig policy trust add "$(jq -r .public_key b.json)" >/dev/null
    policy=b.json
    confirmed_meanwhile true
    status_is 0
    confirmed_meanwhile brig policy trust remove "$(jq -r .key_id b.json)"
    [ "$status" -eq 77 ]
    receipt_is .reason_code BUNDLE_UNTRUSTED
    brig receipts verify >/dev/null
}

@test "a list of approvals from before its use does not give the word back" {
    need sqlite3
    without_daemon "its store is exchanged"
    brig approvals enroll anna --passphrase-file pass >/dev/null
    ask echo once
    brig approvals confirm "$approval" --as anna --passphrase-file pass
    sqlite3 "$BRIG_HOME/approvals.db" "VACUUM INTO 'older.db'"
    ask echo once
    [ "$status" -eq 0 ]
    for _ in 1 2; do
        rm "$BRIG_HOME"/approvals.db*
        cp older.db "$BRIG_HOME/approvals.db"
        chmod 600 "$BRIG_HOME/approvals.db"
        run -77 brig sandbox exec --policy ask.yaml -- echo once
        says "was used before, says the ledger"
        receipt_is .reason_code APPROVAL_FAILED
    done
    # Somebody can be asked again.
    first=$approval
    ask echo once
    [ "$status" -eq 77 ]
    json_is .verdict ASK
    [ "$approval" != "$first" ]
}

@test "what is shown cannot steer a terminal, and nothing waits for ever" {
    ask echo $'a\e[2Jb'
    run -0 brig approvals list
    [[ $output != *$'\e'* ]]
    # Nor can two words look like three, or none.
    ask echo rm "a b" '' "it's" -rf
    run -0 brig approvals list
    says "echo rm 'a b' '' 'it'\''s' -rf"
    ask echo $'a\e[2Jb'
    run -77 brig sandbox exec --policy ask.yaml --wait 300ms -- echo three
    # Time passes by moving what is stored, not the clock.
    sqlite3 "$BRIG_HOME/approvals.db" 'UPDATE approvals SET expires_at = 1'
    run -0 brig approvals show "$approval" --json
    json_is .state expired
    run -0 brig approvals enroll anna --passphrase-file pass
    run -75 brig approvals confirm "$approval" --as anna --passphrase-file pass
    says "has expired"
    old=$approval
    ask echo $'a\e[2Jb'
    [ "$approval" != "$old" ]
}

@test "over the API: the requester sees its own, another one confirms, the waiting run goes on" {
    without_daemon "it starts its own"
    need curl
    serve --policy ask.yaml
    agent=$(token --principal agent --scope run --scope read)
    both=$(token --principal agent --scope run --scope approve --scope read)
    person=$(token --principal person --scope approve --scope read)
    stranger=$(token --principal stranger --scope read --scope run)
    TOKEN=$agent
    post /v1/runs '{"command":["echo","hi"]}'
    refused 403 forbidden
    json_is .error.reason_code POLICY_ASK
    id=$(jq -r .error.details.approval_id <<<"$output")
    api "/v1/approvals/$id"
    json_is .state pending
    post "/v1/approvals/$id/confirm" '{}'
    refused 403 forbidden
    TOKEN=$both post "/v1/approvals/$id/confirm" '{}'
    refused 403 forbidden
    TOKEN=$stranger api "/v1/approvals/$id"
    refused 404 not_found
    TOKEN=$stranger api /v1/approvals
    json_is '.approvals | length' 0
    TOKEN=$person api '/v1/approvals?limit=1'
    json_is '.approvals[0].approval_id' "$id"
    json_is '.next_after' 1
    TOKEN=$person post "/v1/approvals/$id/confirm" '{"custodian":"anna"}'
    refused 400 invalid
    TOKEN=$person post "/v1/approvals/$id/confirm" '{"comment":"go"}'
    json_is .state confirmed
    json_is .decided_by person
    TOKEN=$stranger post /v1/runs '{"command":["echo","hi"]}'
    refused 403 forbidden
    post /v1/runs '{"command":["echo","hi"]}'
    [ "$http" = 200 ]
    json_is .stdout hi

    # A run that waits goes on when the word comes.
    (post /v1/runs '{"command":["echo","later"],"approval_wait_ms":30000}'; printf '%s' "$output" >waited) &
    waiting=$!
    for _ in $(seq 100); do
        TOKEN=$person api /v1/approvals
        next=$(jq -r '.approvals[] | select(.subject.command[1] == "later") | .approval_id' <<<"$output")
        [ -z "$next" ] || break
        sleep 0.1
    done
    TOKEN=$person post "/v1/approvals/$next/confirm" '{}'
    [ "$http" = 200 ]
    wait "$waiting"
    [ "$(jq -r .stdout waited)" = later ]
    TOKEN=$(token --tenant acme --principal person --scope approve --scope read)
    api "/v1/approvals/$id"
    refused 404 not_found
    serve_end
}

# waiting_for WORD: the id of what waits with it is in $id.
waiting_for() {
    id=$(brig approvals list --json | jq -r --arg word "$1" '.approvals[] | select(.subject.command[1] == $word) | .approval_id')
    [ -n "$id" ]
}

# refused_for REASON: the newest receipt is a denial because of that.
refused_for() {
    [ "$(brig receipts list --json --limit 1 | jq -r '.receipts[0] | "\(.kind) \(.reason_code)"')" = "denial $1" ]
}

# run_later WORD: a run over the API that waits for a person; its process is in $client.
run_later() {
    curl -sS -H "Authorization: Bearer $agent" -d "{\"command\":[\"echo\",\"$1\"],\"approval_wait_ms\":600000}" \
        "http://127.0.0.1:$PORT/v1/runs" >"$1.json" 2>/dev/null 3>&- &
    client=$!
    eventually 10 waiting_for "$1"
}

@test "whoever stops waiting is let go, and no word is used up for him" {
    without_daemon "it starts its own"
    need curl
    brig approvals enroll anna --passphrase-file pass
    serve --policy ask.yaml --grace 300ms
    agent=$(token --principal agent --scope run --scope read)
    # A client that is gone.
    run_later left
    kill "$client"
    eventually 10 refused_for RUN_ABANDONED
    brig approvals confirm "$id" --as anna --passphrase-file pass
    TOKEN=$agent post /v1/runs '{"command":["echo","left"]}'
    [ "$http" = 200 ]
    json_is .stdout left
    # A command line that is told to end.
    "$BRIG" sandbox exec --wait 10m -- echo line >waited 2>&1 3>&- &
    running=$!
    eventually 10 waiting_for line
    kill "$running"
    await "$running"
    [ "$status" -eq 77 ]
    grep -q "DENY CANCELLED: nobody waits here any more for approval $id" waited
    # A daemon that is told to end.
    run_later daemon
    serve_end
    await "$client"
    refused_for CANCELLED
    run -0 brig approvals show "$id" --json
    json_is .state pending
}

@test "nobody waits for what was to happen in a sandbox that is gone" {
    printf 'version: 1\ndefault: ask\n' >kept.yaml
    make --policy kept.yaml
    box=$id
    brig sandbox exec "$box" --wait 10m -- echo gone >waited 2>&1 &
    running=$!
    eventually 10 waiting_for gone
    brig sandbox destroy "$box"
    await "$running"
    [ "$status" -eq 77 ]
    grep -q "DENY SANDBOX_UNKNOWN: sandbox $box ended while a person was waited for" waited
}

@test "many words in what waits hide nothing of it" {
    without_daemon "it starts its own"
    local i n=0 after=
    mapfile -t words < <(yes '' | head -n 60000)
    serve --policy ask.yaml
    for i in 1 2 3 4 5 6; do
        run -77 brig sandbox exec -- echo "$i" "${words[@]}"
    done
    # A page is as large as whoever asks for it can read.
    while [ "${after:-0}" -lt 6 ]; do
        run -0 --separate-stderr brig approvals list --json --limit 1000 ${after:+--after "$after"}
        [ "$(jq '.approvals | length' <<<"$output")" -gt 0 ]
        n=$((n + $(jq '.approvals | length' <<<"$output")))
        after=$(jq .next_after <<<"$output")
    done
    [ "$n" -eq 6 ]
}

@test "a limit of any size hides nothing that waits" {
    run brig sandbox exec --policy ask.yaml -- echo hello
    for limit in 1 100 4294967296 18446744073709551615; do
        run -0 --separate-stderr brig approvals list --limit $limit --json
        json_is '.approvals | length' 1
    done
}

@test "an approvals.db that was there and is gone is no new one, until somebody says so" {
    echo 'correct horse battery' >pass
    chmod 600 pass
    run -0 brig approvals list
    rm -rf "$BRIG_HOME"/approvals.db* "$BRIG_HOME"/made
    run -0 brig approvals enroll anna --passphrase-file pass # a fresh one needs nobody's word
    run -77 brig sandbox exec --policy ask.yaml -- echo hello
    rm "$BRIG_HOME"/approvals.db*
    run -77 brig sandbox exec --policy ask.yaml -- echo hello
    says "approvals.db was there and is gone or empty"
    says '"brig approvals renew"'
    receipt_is .reason_code APPROVAL_FAILED
    run -76 brig approvals list
    # Nobody becomes the first custodian once more.
    run -76 brig approvals enroll mallory --passphrase-file pass
    [ ! -e "$BRIG_HOME/approvals.db" ]
    run -0 brig sandbox exec -- true # what nobody has to be asked about goes on
    run -0 brig approvals renew
    says "nobody is a custodian"
    receipt_is .action approvals-renew
    receipt_is .kind outcome
    run -0 brig approvals custodians --json
    json_is '.custodians | length' 0
    run -75 brig approvals renew
    says "nothing is lost"
    run -0 brig approvals enroll anna --passphrase-file pass
    run -77 brig sandbox exec --policy ask.yaml -- echo hello
    receipt_is .verdict ASK
    run -0 brig receipts verify
}

# A program that ends while it waits for a passphrase leaves the terminal as it was.
@test "a terminal shows what is typed again, however the question for a passphrase ends" {
    need python3
    run -0 python3 - "$BRIG" <<'END'
import os, pty, signal, sys, termios

# At once: whether or not it waits already.
for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) * 10:
    pid, fd = pty.fork()
    if pid == 0:
        signal.signal(number, signal.SIG_DFL) # nohup, for one, has its programs ignore it
        os.execv(sys.argv[1], ["brig", "approvals", "enroll", "anna"])
    seen = b""
    while b"passphrase: " not in seen:
        seen += os.read(fd, 4096)
    assert not termios.tcgetattr(fd)[3] & termios.ECHO
    os.kill(pid, number)
    status = os.waitpid(pid, 0)[1]
    assert os.WIFSIGNALED(status) and os.WTERMSIG(status) == number, status
    assert termios.tcgetattr(fd)[3] & termios.ECHO, number
END
}

# ends ID…: how many receipts say that nobody answered these in time.
ends() {
    local id n=0
    brig receipts export >ledger
    for id in "$@"; do
        n=$((n + $(jq -r --arg id "$id" 'select(.action == "approval-expire" and .approval.approval_id == $id and
            .kind == "denial" and .reason_code == "APPROVAL_FAILED") | .principal' ledger | grep -c "^uid:$(id -u)\$")))
    done
    echo "$n"
}

# over: everything that waits has waited for too long.
over() {
    sqlite3 "$BRIG_HOME/approvals.db" 'PRAGMA busy_timeout = 5000; UPDATE approvals SET expires_at = 1 WHERE state < 2' >/dev/null
}

@test "what nobody answers in time has a receipt that says so, once, whoever comes across it" {
    need sqlite3
    without_daemon "its store is changed"
    brig approvals enroll anna --passphrase-file pass >/dev/null
    for look in "approvals list" "approvals show ID" "approvals confirm ID --as anna --passphrase-file pass" \
        "approvals reject ID" "sandbox exec --policy ask.yaml -- echo other"; do
        ask echo "$look"
        first=$approval
        over
        for _ in 1 2; do
            # shellcheck disable=SC2086 # words
            brig ${look/ID/$first} || true
            [ "$(ends "$first")" -eq 1 ] || { echo "$look" >&2; return 1; }
        done
        run -0 brig approvals show "$first" --json
        json_is .state expired
    done
    # One that was confirmed and not used is over as well; what was used, or refused, was answered.
    ask echo confirmed
    confirmed=$approval
    brig approvals confirm "$approval" --as anna --passphrase-file pass
    ask echo used
    used=$approval
    brig approvals confirm "$approval" --as anna --passphrase-file pass
    ask echo used
    status_is 0
    ask echo refused
    refused=$approval
    brig approvals reject "$approval"
    over
    brig approvals list
    [ "$(ends "$confirmed")" -eq 1 ]
    [ "$(ends "$used" "$refused")" -eq 0 ]
    # Many at once, and whoever is killed on the way leaves it to the next.
    ids=()
    for i in 1 2 3 4 5; do
        ask echo "many $i"
        ids+=("$approval")
    done
    over
    sqlite3 "$BRIG_HOME/approvals.db" "PRAGMA busy_timeout = 5000; UPDATE approvals SET state = 4,
        end_run = '0123456789abcdefghij' WHERE id = '${ids[0]}'" >/dev/null
    local running=()
    for _ in 1 2 3 4 5 6; do
        brig approvals list >/dev/null 3>&- &
        running+=("$!")
    done
    for one in "${running[@]}"; do
        await "$one"
        status_is 0
    done
    brig approvals list
    [ "$(ends "${ids[@]}")" -eq 5 ]
    [ "$(jq -r --arg id "${ids[0]}" 'select(.action == "approval-expire" and .approval.approval_id == $id) | .run_id' ledger)" = 0123456789abcdefghij ]
    brig receipts verify
}

@test "beside a daemon what nobody answers in time gets its receipt by itself" {
    without_daemon "it starts its own"
    need curl
    printf 'version: 1\napprovals: {default: {by: ["person"], timeout: 1s}}\ncommands: [{ask: [echo, "**"]}]\n' >soon.yaml
    serve --policy soon.yaml
    TOKEN=$(token --principal agent --scope run --scope read)
    post /v1/runs '{"command":["echo","hi"]}'
    refused 403 forbidden
    id=$(jq -r .error.details.approval_id <<<"$output")
    gone() { brig receipts export | jq -r 'select(.action == "approval-expire") | .approval.approval_id + " " + .principal' >gone && [ -s gone ]; }
    eventually 20 gone
    [ "$(cat gone)" = "$id agent" ]
    serve_end
}

@test "a snapshot of a sandbox in which a command waits for a person says which approval that is" {
    printf 'version: 1\ncommands: [{ask: [echo, "**"]}]\n' >kept.yaml
    make --policy kept.yaml
    box=$id
    brig sandbox exec "$box" --wait 10m -- echo waits >waited 2>&1 3>&- &
    running=$!
    eventually 10 waiting_for waits
    approval=$id
    run -75 brig sandbox snapshot "$box"
    says "a command waits in sandbox $box for a person, about approval $approval: let it be answered"
    brig approvals reject "$approval"
    await "$running"
    run -0 brig sandbox snapshot "$box"
}
