#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Whose word counts: groups of the policy, several people, reasons, time, and many at once.

load common
load sandbox
load serve

setup() {
    common_setup
    cat >team.yaml <<'Y'
version: 1
approvals:
  default:
    by: ["custodian:*", person]
  release:
    by: ["custodian:anna", "custodian:ben", "lead-*"]
    quorum: 2
    timeout: 2h
    use_within: 1m
    reason_required: true
commands:
  - ask: [echo, release, "**"]
    approval: release
  - ask: [echo, "**"]
Y
    for name in anna ben carol; do
        echo "$name has a long passphrase" >$name
        chmod 600 $name
    done
}

teardown() {
    serve_end
}

enroll() {
    brig approvals enroll anna --passphrase-file anna
    brig approvals enroll ben --passphrase-file ben --by anna --by-passphrase-file anna
    brig approvals enroll carol --passphrase-file carol --by anna --by-passphrase-file anna
}

ask() {
    run brig sandbox exec --json --policy team.yaml -- "$@"
    approval=$(jq -r '.approval_id // empty' <<<"$output")
}

# word confirm|reject NAME [COMMENT]
word() {
    run brig approvals "$1" "$approval" --as "$2" --passphrase-file "$2" ${3:+--comment "$3"}
}

# clock SECONDS: as if the last look at the clock had been so much later than it was.
clock() {
    sqlite3 "$BRIG_HOME/approvals.db" "UPDATE clock SET seen = seen + $1"
}

@test "two different people of a group, each with a reason, each with a receipt" {
    enroll
    ask echo release 4
    says "waits for 2 people (0 of 2)"
    run -0 brig approvals show "$approval" --json
    json_is .group release
    json_is .quorum 2
    json_is .reason_required true
    json_is '(.expires_at | fromdate) - (.asked_at | fromdate)' 7200

    word confirm anna
    [ "$status" -eq 64 ]
    says "wants a reason"
    word confirm anna '   '
    [ "$status" -eq 64 ]
    word confirm carol "why not"
    [ "$status" -eq 77 ]
    says 'custodian:carol is not among those who may confirm this: the policy'\''s group "release"'
    word confirm anna "tested"
    [ "$status" -eq 0 ]
    says "1 of 2 have confirmed"
    receipt_is .outcome.approval.confirmations 1
    receipt_is .outcome.approval.quorum 2
    word confirm anna "and again"
    [ "$status" -eq 75 ]
    says "custodian:anna has confirmed $approval already; 1 of 2 have"
    first=$approval
    ask echo release 4
    [ "$status" -eq 77 ]
    [ "$approval" = "$first" ]
    says "waits for 2 people (1 of 2)"
    run -0 brig approvals list
    says "1 of 2"
    word confirm ben "looked at it"
    [ "$status" -eq 0 ]
    says "confirmed $approval, by custodian:anna, custodian:ben"
    receipt_is .outcome.approval.confirmations 2
    run -0 brig approvals show "$approval"
    says 'custodian:ben'
    says 'looked at it'
    run -0 brig approvals show "$approval" --json
    json_is '(.expires_at | fromdate) - (.decided_at | fromdate)' 60
    json_is '[.words[].by] | join(" ")' "custodian:anna custodian:ben"
    ask echo release 4
    [ "$status" -eq 0 ]
    receipt_is .approval.by "custodian:anna, custodian:ben"

    # One of them is enough to refuse.
    ask echo release 5
    word confirm anna yes
    word reject ben no
    [ "$status" -eq 0 ]
    ask echo release 5
    json_is .reason_code APPROVAL_REJECTED
    # What no group is named for has that of "default".
    ask echo hello
    word confirm carol
    [ "$status" -eq 0 ]
}

@test "a policy that nobody could satisfy, or that is unclear, does not load" {
    bad() {
        printf 'version: 1\napprovals:\n  %s\ncommands:\n  - ask: [echo]\n%s' "$1" "$3" >bad.yaml
        run -64 brig policy check bad.yaml
        says "$2"
    }
    bad 'default: {by: []}' "nobody could confirm"
    bad 'default: {}' "by"
    bad 'default: {by: [anna, anna], quorum: 2}' "could never be reached"
    bad 'default: {by: ["*"], quorum: 6}' "quorum"
    bad 'default: {by: ["*"], quorum: 0}' "quorum"
    bad 'default: {by: ["*"], timeout: 169h}' '"timeout" must be a duration from 1s to 168h'
    bad 'default: {by: ["*"], use_within: 0s}' "use_within"
    bad 'default: {by: ["*"], sometimes: true}' "sometimes"
    bad 'notify: {by: ["*"]}' "groups of people who confirm"
    bad '"a b": {by: ["*"]}' "a group is named with"
    bad 'default: {by: ["*"]}' 'approvals has no group "other"' $'    approval: other\n'
    printf 'version: 1\napprovals: {a: {by: ["*"]}}\ncommands:\n  - allow: [echo]\n    approval: a\n' >bad.yaml
    run -64 brig policy check bad.yaml
    says "belongs to a rule that asks"
    run -0 brig policy check team.yaml
}

@test "a command that another one carries has the group of its own rule" {
    echo 'default: allow' >>team.yaml
    ask env A=1 nice echo release 4
    run -0 brig approvals show "$approval" --json
    json_is .group release
}

@test "a custodian who was removed confirms nothing; the last one stays" {
    enroll
    run -77 brig approvals custodians --remove carol
    says "one of them has to remove carol"
    run -77 brig approvals custodians --remove carol --by anna --by-passphrase-file ben
    run -0 brig approvals custodians --remove carol --by anna --by-passphrase-file anna
    says "carol is no custodian any more"
    receipt_is .action dismiss
    ask echo hello
    word confirm carol
    [ "$status" -eq 77 ]
    says "carol is no custodian any more"
    run -77 brig approvals enroll dora --passphrase-file carol --by carol --by-passphrase-file carol
    run -75 brig approvals enroll carol --passphrase-file carol --by anna --by-passphrase-file anna
    run -0 brig approvals custodians --json
    json_is '[.custodians[] | select(.revoked_at) | .name] | join(" ")' carol
    json_is '.custodians[0].enrolled_at != null' true
    run -0 brig approvals custodians --remove ben --by ben --by-passphrase-file ben
    run -75 brig approvals custodians --remove anna --by anna --by-passphrase-file anna
    says "the last custodian"
}

@test "a key nobody can sign with, and the one receipts are signed with, are no custodian's" {
    need xxd
    enroll
    local key
    for key in "$(printf '%064d' 0)" "$(printf '%064d' 0 | tr 0 f)" "01$(printf '%062d' 0)" \
        26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05; do
        run -64 brig approvals enroll dora --public-key "$key" --by anna --by-passphrase-file anna
        says "nobody can have the other half of these 32 bytes"
    done
    key=$(sed "/^-/d" "$BRIG_HOME/receipts.pub" | base64 -d | tail -c 32 | xxd -p -c 64)
    run -64 brig approvals enroll dora --public-key "$key" --by anna --by-passphrase-file anna
    says "that key signs receipts here, and is nobody's"
    receipt_is .reason_code APPROVAL_FAILED
    run -0 brig approvals custodians --json
    json_is '[.custodians[].name] | join(" ")' "anna ben carol"
}

@test "two names that differ only by capitals are one custodian's" {
    enroll
    local name
    for name in Ben BEN; do
        run -75 brig approvals enroll $name --passphrase-file carol --by anna --by-passphrase-file anna
        says "a custodian of that name, in capitals or not"
    done
    brig approvals custodians --remove ben --by anna --by-passphrase-file anna
    run -75 brig approvals enroll Ben --passphrase-file carol --by anna --by-passphrase-file anna
}

@test "what a custodian said before he was removed counts no longer, but for what has happened" {
    sed -i 's/"custodian:ben", "lead/"custodian:ben", "custodian:carol", "lead/' team.yaml
    enroll
    local ran pending confirmed
    ask echo release ran
    ran=$approval
    word confirm anna yes
    word confirm ben yes
    ask echo release ran
    [ "$status" -eq 0 ]
    ask echo release pending
    pending=$approval
    word confirm ben "I have looked"
    ask echo release confirmed
    confirmed=$approval
    word confirm ben yes
    word confirm anna yes
    says "confirmed $confirmed"
    ask echo release refused
    word reject ben no
    run -0 brig approvals custodians --remove ben --by anna --by-passphrase-file anna

    # What waits, waits for two others.
    run -0 brig approvals show "$pending" --json
    json_is .confirmations 0
    json_is '.words | length' 0
    json_is '.comment // ""' ""
    approval=$pending
    word confirm anna yes
    [ "$status" -eq 0 ]
    says "1 of 2 have confirmed"
    ask echo release pending
    [ "$status" -eq 77 ]
    word confirm carol yes
    [ "$status" -eq 0 ]
    says "confirmed $pending, by custodian:anna, custodian:carol"
    ask echo release pending
    [ "$status" -eq 0 ]
    # What was confirmed with his word is asked for anew.
    run -0 brig approvals show "$confirmed" --json
    json_is .state expired
    ask echo release confirmed
    [ "$status" -eq 77 ]
    [ "$approval" != "$confirmed" ]
    says "waits for 2 people (0 of 2)"
    # What ran stays what it was, and a refusal one.
    run -0 brig approvals show "$ran" --json
    json_is .state used
    json_is .confirmations 2
    json_is '[.words[].by] | join(" ")' "custodian:anna custodian:ben"
    ask echo release refused
    json_is .reason_code APPROVAL_REJECTED
    run -0 brig receipts verify
}

@test "words of those who were removed before that took them along end with the upgrade" {
    need sqlite3
    without_daemon "its store is changed"
    enroll
    brig approvals custodians --remove carol --by anna --by-passphrase-file anna
    local id ids=()
    for word in one two three; do
        ask echo release $word
        ids+=("$approval")
        word confirm ben yes
    done
    approval=${ids[1]}
    word confirm anna yes
    # As an earlier version has left it: the words of one and two are of somebody who is no custodian.
    sqlite3 "$BRIG_HOME/approvals.db" "UPDATE words SET by = 'custodian:carol' WHERE by = 'custodian:ben'
        AND approval IN (SELECT seq FROM approvals WHERE id IN ('${ids[0]}', '${ids[1]}'));
        DROP INDEX approvals_untold; ALTER TABLE approvals DROP COLUMN end_run; ALTER TABLE approvals DROP COLUMN end_told;
        ALTER TABLE words DROP COLUMN run_id;
        ALTER TABLE approvals DROP COLUMN receipt_seq; PRAGMA user_version = 2"
    for id in "${ids[0]}" "${ids[1]}"; do
        run -0 brig approvals show "$id" --json
        json_is .state expired
    done
    ask echo release two
    [ "$status" -eq 77 ]
    [ "$approval" != "${ids[1]}" ]
    # What has nobody's but those of custodians stays, and can be confirmed.
    approval=${ids[2]}
    run -0 brig approvals show "$approval" --json
    json_is .state pending
    json_is .confirmations 1
    word confirm anna yes
    [ "$status" -eq 0 ]
    # Where the ledger has that of ben, an earlier version did not say: it does not count, and it is asked for again.
    ask echo release three
    status_is 77
    says "the word of custodian:ben on approval ${ids[2]} does not count: an older Brig took it"
    says "ask again, and let it be confirmed again"
    ask echo release three
    word confirm ben yes
    word confirm anna yes
    ask echo release three
    status_is 0
}

# The id of the one request that waits for a person.
pending() {
    local found
    found=$(brig approvals list --json | jq -r '.approvals[].approval_id')
    [ "$(wc -w <<<"$found")" -eq 1 ] && id=$found
}

# Whatever is still asked for is rejected, until nobody waits any more.
nobody_waits() {
    ! pending || brig approvals reject "$id" --as anna --passphrase-file anna || true
    [ -z "$(jobs -pr)" ]
}

@test "of many who wait for one word one runs, and the others ask for the next" {
    enroll
    local i first
    for i in 1 2 3 4 5; do
        "$BRIG" sandbox exec --json --policy team.yaml --wait 5m -- echo once >"waited.$i" 2>&1 3>&- &
    done
    eventually 20 pending
    first=$id
    brig approvals confirm "$first" --as anna --passphrase-file anna
    another() { pending && [ "$id" != "$first" ]; }
    eventually 20 another
    eventually 60 nobody_waits
    [ "$(jq -r 'select(.verdict == "ALLOW") | .stdout' waited.? | grep -c once)" -eq 1 ]
}

@test "nobody who waits runs by a word that another one has used" {
    enroll
    "$BRIG" sandbox exec --json --policy team.yaml --wait 5m -- echo once >waited.1 2>&1 3>&- &
    running=$!
    eventually 20 pending
    kill -STOP "$running"
    brig approvals confirm "$id" --as anna --passphrase-file anna
    run -0 brig sandbox exec --policy team.yaml -- echo once
    kill -CONT "$running"
    eventually 20 pending
    brig approvals reject "$id" --as anna --passphrase-file anna
    await "$running"
    [ "$status" -eq 77 ]
    not grep -q '"once' waited.1
}

@test "whoever waits for a word that is taken back is told so" {
    need sqlite3
    without_daemon "its store is changed"
    brig sandbox exec --policy team.yaml --wait 2m -- echo release later >waited 2>&1 &
    running=$!
    seen() { [ "$(brig approvals list --json | jq '.approvals | length')" -eq 1 ]; }
    eventually 10 seen
    # Confirmed, and over, between two looks.
    sqlite3 "$BRIG_HOME/approvals.db" "PRAGMA busy_timeout = 5000; UPDATE approvals SET state = 4,
        decided_at = asked_at, decided_by = 'custodian:anna, custodian:ben'" >/dev/null
    await "$running"
    [ "$status" -eq 77 ]
    grep -q "what custodian:anna, custodian:ben confirmed is over" waited
}

@test "a clock that goes forward only ends things, one that goes back ends all that is open" {
    enroll
    ask echo hello
    old=$approval
    # Forward: it has waited too long, and what was called expired is so for good.
    sqlite3 "$BRIG_HOME/approvals.db" "UPDATE approvals SET expires_at = 1 WHERE id = '$old'"
    word confirm anna
    [ "$status" -eq 75 ]
    sqlite3 "$BRIG_HOME/approvals.db" "UPDATE approvals SET expires_at = 9000000000 WHERE id = '$old'"
    word confirm anna
    [ "$status" -eq 75 ]
    says "has expired"

    # Back by an hour: pending and confirmed end; a refusal stays one.
    ask echo pending
    waiting=$approval
    ask echo confirmed
    confirmed=$approval
    word confirm anna
    [ "$status" -eq 0 ]
    ask echo rejected
    word reject anna
    clock 3600
    run -0 brig approvals show "$waiting" --json
    json_is .state expired
    ask echo confirmed
    [ "$status" -eq 77 ]
    [ "$approval" != "$confirmed" ]
    for id in "$waiting" "$confirmed"; do
        run -0 brig approvals show "$id" --json
        json_is .state expired
    done
    ask echo rejected
    json_is .reason_code APPROVAL_REJECTED
    # And then time goes on as it should.
    ask echo fresh
    word confirm anna
    [ "$status" -eq 0 ]
    ask echo fresh
    [ "$status" -eq 0 ]
    # A step of some seconds, as clocks are set right, ends nothing.
    ask echo step
    clock 5
    word confirm anna
    [ "$status" -eq 0 ]
}

@test "eight who confirm at once: one counts; two runs at once: one runs" {
    enroll
    ask echo hello
    # Over and over the passphrase is derived: signed before, they meet at the store.
    for i in 1 2 3 4 5 6 7 8; do
        brig approvals confirm "$approval" --as anna --passphrase-file anna >"c$i" 2>&1 3>&- &
    done
    wait
    [ "$(grep -l "^confirmed $approval" c? | wc -l)" -eq 1 ]
    [ "$(grep -l "is confirmed already" c? | wc -l)" -eq 7 ]
    for i in 1 2 3 4; do
        brig sandbox exec --json --policy team.yaml -- echo hello >"r$i" 2>/dev/null 3>&- &
    done
    wait
    [ "$(jq -s '[.[] | select(.stdout == "hello\n")] | length' r?)" -eq 1 ]
    [ "$(jq -s '[.[] | select(.verdict == "ASK")] | length' r?)" -eq 3 ]
    run -0 brig receipts verify
}

@test "a tool that runs a command needs the words that both need" {
    without_daemon "it starts its own"
    need curl
    cat >tool.yaml <<'Y'
version: 1
approvals:
  one: {by: ["*"]}
  two: {by: ["custodian:*"], quorum: 2, reason_required: true}
commands:
  - {name: push, ask: [git, push, "**"], approval: two}
  - {name: tool, ask: [], tool: runner, approval: one}
Y
    serve --policy tool.yaml
    TOKEN=$(token --principal agent --scope run --scope read --scope approve)
    hash=sha256:$(printf '{"command":["git","push"]}' | sha256sum | cut -d' ' -f1)
    post /v1/tools/evaluate '{"tool_name":"runner","arguments":{"command":["git","push"]},"principal":"agent","args_hash":"'"$hash"'"}'
    json_is .verdict DENY
    api "/v1/approvals"
    json_is '.approvals | length' 1
    json_is '.approvals[0].quorum' 2
    json_is '.approvals[0].reason_required' true
}

@test "over the API: whoever made a token acts through it, and nobody is called a custodian" {
    without_daemon "it starts its own"
    need curl
    cat >api.yaml <<'Y'
version: 1
approvals:
  default: {by: ["*"]}
  two: {by: ["*"], quorum: 2}
commands:
  - ask: [echo, two, "**"]
    approval: two
  - ask: [echo, "**"]
Y
    serve --policy api.yaml
    run -64 brig token create --principal custodian:anna --scope approve
    run -64 brig token create --principal uid:1000 --scope approve
    says "prove who they are by its socket"
    agent=$(token --principal agent --scope run --scope read --scope admin --scope approve)
    person=$(token --principal person --scope approve --scope read)
    other=$(token --principal other --scope approve --scope read)
    TOKEN=$agent
    post /v1/tokens '{"principal":"friend","scopes":["approve","read"]}'
    friend=$(jq -r .token <<<"$output")
    post /v1/runs '{"command":["echo","hi"]}'
    id=$(jq -r .error.details.approval_id <<<"$output")
    TOKEN=$friend post "/v1/approvals/$id/confirm" '{}'
    refused 403 forbidden
    says "made this token"
    TOKEN=$person post "/v1/approvals/$id/confirm" '{"comment":"go"}'
    json_is .state confirmed
    json_is .words[0].by person

    # Among those who confirm, too.
    worker=$(token --principal worker --scope run --scope read)
    TOKEN=$worker post /v1/runs '{"command":["echo","two"]}'
    id=$(jq -r .error.details.approval_id <<<"$output")
    TOKEN=$agent post "/v1/approvals/$id/confirm" '{}'
    json_is .state pending
    json_is .confirmations 1
    TOKEN=$friend post "/v1/approvals/$id/confirm" '{}'
    refused 409 conflict
    TOKEN=$agent post "/v1/approvals/$id/confirm" '{}'
    refused 409 conflict
    TOKEN=$other post "/v1/approvals/$id/confirm" '{}'
    json_is .state confirmed
    # Two whose tokens one principal made are that one; what the machine's owner made are two people.
    TOKEN=$agent post /v1/tokens '{"principal":"second","scopes":["approve","read","admin"]}'
    second=$(jq -r .token <<<"$output")
    TOKEN=$second post /v1/tokens '{"principal":"third","scopes":["approve","read"]}'
    third=$(jq -r .token <<<"$output")
    TOKEN=$worker post /v1/runs '{"command":["echo","two","again"]}'
    id=$(jq -r .error.details.approval_id <<<"$output")
    TOKEN=$friend post "/v1/approvals/$id/confirm" '{}'
    json_is .confirmations 1
    for sibling in "$second" "$third" "$agent"; do
        TOKEN=$sibling post "/v1/approvals/$id/confirm" '{}'
        refused 409 conflict
        says "not one behind two tokens"
    done
    TOKEN=$worker post /v1/runs '{"command":["echo","two","again"]}'
    refused 403 forbidden
    TOKEN=$person post "/v1/approvals/$id/confirm" '{}'
    json_is .state confirmed
    # Whoever made all these tokens cannot have his own requests confirmed with them.
    run -77 brig sandbox exec --json --policy api.yaml -- echo own
    id=$(jq -r .approval_id <<<"$output")
    TOKEN=$other post "/v1/approvals/$id/confirm" '{}'
    refused 403 forbidden
    serve_end
}

@test "a daemon that is killed keeps what waits and confirms nothing" {
    without_daemon "it starts its own"
    need curl
    serve --policy team.yaml
    agent=$(token --principal agent --scope run --scope read)
    person=$(token --principal person --scope approve --scope read)
    TOKEN=$agent post /v1/runs '{"command":["echo","hi"]}'
    id=$(jq -r .error.details.approval_id <<<"$output")
    kill -9 "$DAEMON"
    wait "$DAEMON" || true
    serve --policy team.yaml
    TOKEN=$person api "/v1/approvals/$id"
    json_is .state pending
    json_is .confirmations 0
    TOKEN=$agent post /v1/runs '{"command":["echo","hi"]}'
    refused 403 forbidden
    TOKEN=$person post "/v1/approvals/$id/confirm" '{}'
    json_is .state confirmed
    TOKEN=$agent post /v1/runs '{"command":["echo","hi"]}'
    json_is .stdout hi
    serve_end
}

@test "pages, filters, and no secret, no control and no hidden length for whoever looks" {
    run -77 brig sandbox exec --policy team.yaml --env API_TOKEN=hunter2hunter2 --env A=visible -- \
        echo $'a\u202eb\u200bc\e[2J' ghp_0123456789abcdefghijklmnopqrstuvwxyz "$(head -c 5000 /dev/zero | tr '\0' x)"
    id=$(brig approvals list --json | jq -r '.approvals[0].approval_id')
    run -0 brig approvals show "$id"
    not grep -qP '\x{202e}|\x{200b}|\x1b' <<<"$output"
    says "A=visible"
    says "API_TOKEN=(hidden: 14 bytes that look like a secret)"
    says "(904 more bytes)"
    not grep -q 'hunter2\|ghp_0123' <<<"$output"
    not grep -q 'hunter2\|ghp_0123' "$BRIG_HOME/approvals.db" "$BRIG_HOME/approvals.db-wal"
    run -0 brig approvals list
    not grep -qP '\x{202e}|\x{200b}|\x1b' <<<"$output"
    says "(4859 more bytes)"
    for i in 1 2 3; do ask echo "$i"; done
    run -0 brig approvals list --limit 2 --json
    json_is '.approvals | length' 2
    run -0 brig approvals list --limit 2 --json --after "$(jq .next_after <<<"$output")"
    json_is '[.approvals[].subject.command[1]] | join(" ")' "2 3"
    run -0 brig approvals list --limit 2
    says "there may be more: --after 2"
    run -0 brig approvals list --requester nobody --json
    json_is '.approvals | length' 0
    run -0 brig approvals list --requester "uid:$(id -u)" --json
    json_is '.approvals | length' 4
}

@test "no secret beside bytes that are no text, and nothing that is drawn as nothing" {
    run -77 brig sandbox exec --policy team.yaml -- \
        echo $'\xff ghp_0123456789abcdefghijklmnopqrstuvwxyz' $'rm\U000e0041\u00ad\u3164'
    id=$(brig approvals list --json | jq -r '.approvals[0].approval_id')
    run -0 brig approvals show "$id"
    says '[1] \xff (hidden: 40 bytes that look like a secret)'
    says '[2] rm\xf3\xa0\x81\x81\xc2\xad\xe3\x85\xa4'
    run -0 brig approvals show "$id" --json
    run -0 base64 -d <<<"$(jq -r '.subject.command[1].bytes_b64' <<<"$output")"
    not grep -q 'ghp_0123' <<<"$output"
}

@test "a word full of secrets is shown without them, or not at all, and costs nobody else anything" {
    need curl
    one=$(printf 'ghp_0123456789 %.0s' $(seq 8000)) # as long as Linux lets one word be
    run -77 brig sandbox exec --policy team.yaml -- echo "$one"
    receipt_is .status PENDING
    run -0 brig approvals list --json
    json_is '.approvals[0].subject.command[1] | split("(hidden: 14 bytes that look like a secret)") | length' 8001
    # More than a request has room for is not asked about.
    run -77 brig sandbox exec --policy team.yaml -- echo "$one" "$one" "$one" "$one" "$one" "$one" "$one" "$one" \
        "$one" "$one" "$one" "$one" "$one" "$one"
    receipt_is .reason_code APPROVAL_FAILED
    brig policy apply team.yaml >/dev/null
    serve
    TOKEN=$(token --principal agent)
    post /v1/runs "$(jq -cn --arg w "$(printf 'AKIAABCDEFGHIJKLMNOP %.0s' $(seq 5900))" '{command: ["echo", $w]}')"
    refused 403 forbidden
    api /v1/sandboxes
    [ "$http" = 200 ]
    serve_end
}

@test "of several who would be the first custodian one is, and chooses the others" {
    for name in a b c d e f; do
        "$BRIG" approvals enroll "first-$name" --passphrase-file anna >/dev/null 2>&1 3>&- &
    done
    wait
    run -0 brig approvals custodians --json
    json_is '.custodians | length' 1
}

# As one leaves it who is killed before his receipt: in the list, and not in the ledger.
half_made() {
    BRIG_HOME=$WORK/other "$BRIG" approvals enroll "$1" --passphrase-file "$1" "${@:2}" >/dev/null
    mkdir -p "$BRIG_HOME"
    rm -f "$BRIG_HOME"/approvals.db*
    cp "$WORK"/other/approvals.db{,-wal} "$BRIG_HOME/"
}

@test "an enrolment without a receipt is completed by the same person, and a whole one by nobody" {
    half_made anna
    run -77 brig approvals enroll anna --passphrase-file ben
    says "there are custodians already"
    run -77 brig approvals enroll anna --public-key 3b6a27bcceb6a42d62a3a8d02a6f0d73653215771de243a63ac048a18b59da29
    run -0 brig approvals enroll anna --passphrase-file anna
    receipt_is .action enroll
    receipt_is .outcome.approval.custodian anna
    [[ "$output" == *"key $(receipt .outcome.approval.custodian_key_id)"* ]]
    run -77 brig approvals enroll anna --passphrase-file anna
    run -75 brig approvals enroll anna --passphrase-file anna --by anna --by-passphrase-file anna

    half_made ben --by anna --by-passphrase-file anna
    run -77 brig approvals enroll ben --passphrase-file ben
    run -75 brig approvals enroll ben --passphrase-file ben --by ben --by-passphrase-file ben
    run -75 brig approvals enroll ben --passphrase-file carol --by anna --by-passphrase-file anna
    run -0 brig approvals enroll ben --passphrase-file ben --by anna --by-passphrase-file anna
    receipt_is .outcome.approval.custodian ben
    run -75 brig approvals enroll ben --passphrase-file ben --by anna --by-passphrase-file anna
    run -0 brig approvals custodians --json
    json_is '[.custodians[].name] | join(" ")' "anna ben"
    # Who was removed is not half made.
    brig approvals custodians --remove ben --by anna --by-passphrase-file anna
    run -75 brig approvals enroll ben --passphrase-file ben --by anna --by-passphrase-file anna
    chain_holds
}

@test "an enrolment that was killed before its receipt can be said again" {
    [ "$(brig version --json | jq -r .crash_points)" = true ] || skip "built without crash points"
    run -137 env BRIG_CRASH_AT=closing-before "$BRIG" approvals enroll anna --passphrase-file anna
    run -0 brig approvals enroll anna --passphrase-file anna
    receipt_is .outcome.approval.custodian anna
    run -77 brig approvals enroll anna --passphrase-file anna
}

@test "passwords of addresses and options are not shown" {
    run -77 brig sandbox exec --policy team.yaml --env DB_PASS=hunter2a --env MYSQL_PWD=hunter2b --env PWD=/visible -- \
        echo https://me:hunter2c@example.com/x --password=hunter2d PGPASSWORD=hunter2e --token-file=visible \
        'curl http://a:hunter2f@b http://c@d http://e:f' ghp_0123456789:x://y:hunter2g@z
    id=$(brig approvals list --json | jq -r '.approvals[0].approval_id')
    run -0 brig approvals show "$id"
    says "https://me:(hidden: 8 bytes that look like a secret)@example.com/x"
    says "--password=(hidden: 8 bytes that look like a secret)"
    says "--token-file=visible"
    says "curl http://a:(hidden: 8 bytes that look like a secret)@b http://c@d http://e:f"
    says "(hidden: 14 bytes that look like a secret):x://y:(hidden: 8 bytes that look like a secret)@z"
    says "PWD=/visible"
    not grep -q hunter2 <<<"$output"
    not grep -q hunter2 "$BRIG_HOME/approvals.db" "$BRIG_HOME/approvals.db-wal"
}
