#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Who can write the list of approvals, and cannot sign, confirms nothing.

load common
load sandbox

setup() {
    common_setup
    need sqlite3
    without_daemon "its store is changed"
    cat >ask.yaml <<'Y'
version: 1
approvals:
  two: {by: ["custodian:*"], quorum: 2}
  anna: {by: ["custodian:anna"]}
  soon: {by: ["custodian:*"], use_within: 1s}
commands:
  - {ask: [echo, two, "**"], approval: two}
  - {ask: [echo, anna, "**"], approval: anna}
  - {ask: [echo, soon, "**"], approval: soon}
  - ask: [echo, "**"]
Y
    echo 'correct horse battery' >pass
    chmod 600 pass
    brig approvals enroll anna --passphrase-file pass >/dev/null
    brig approvals enroll ben --passphrase-file pass --by anna --by-passphrase-file pass >/dev/null
}

sql() {
    sqlite3 "$BRIG_HOME/approvals.db" "PRAGMA busy_timeout = 5000; $1" >/dev/null
}

# ask WORDS…: brig sandbox exec under that policy; the approval is in $approval.
ask() {
    run brig sandbox exec --json --policy ask.yaml -- echo "$@"
    approval=$(jq -r '.approval_id // empty' <<<"$output")
}

# word confirm|reject NAME; the run it was is in $word.
word() {
    run -0 brig approvals "$1" "$approval" --as "$2" --passphrase-file pass --json
    word=$(brig receipts show "$(jq -r .receipt_id <<<"$output")" | jq -r .run_id)
}

# forge [BY RUN]: the list says that it is confirmed, by whom and where the ledger would have that.
forge() {
    sql "UPDATE approvals SET state = 1, confirmations = 1, decided_by = 'custodian:${1:-anna}',
            decided_at = unixepoch(), expires_at = unixepoch() + 600 WHERE id = '$approval';
        DELETE FROM words WHERE approval = (SELECT seq FROM approvals WHERE id = '$approval')"
    [ $# -eq 0 ] || add "$@"
}

# add BY RUN
add() {
    sql "INSERT OR REPLACE INTO words (approval, by, made_by, confirms, at, comment, run_id)
        SELECT seq, 'custodian:$1', '', 1, unixepoch(), '', '$2' FROM approvals WHERE id = '$approval'"
}

# not_believed WHY WORDS…: it does not run, and can be asked for again.
not_believed() {
    local why=$1 first=$approval
    shift
    run -77 brig sandbox exec --policy ask.yaml -- echo "$@"
    says "$why"
    receipt_is .kind denial
    receipt_is .reason_code APPROVAL_FAILED
    ask "$@"
    status_is 77
    json_is .verdict ASK
    [ "$approval" != "$first" ]
}

@test "a word that the ledger does not have is none" {
    ask one
    forge
    not_believed "0 of 1 people have confirmed it" one
    forge anna ""
    not_believed "an older Brig took it, which did not say where the ledger has it; ask again, and let it be confirmed again" one
    forge anna 0123456789abcdefghij
    not_believed "the word of custodian:anna on approval $approval does not count: the ledger does not know it" one
    # The run of some command, which waits for nobody.
    brig sandbox exec -- true
    forge anna "$(brig receipts list --json --limit 1 | jq -r '.receipts[0].run_id')"
    not_believed "its receipt in the ledger says something else" one
    word confirm anna
    ask one
    status_is 0
    receipt_is .approval.by custodian:anna
    brig receipts verify
}

@test "a word counts for what it was said of, in the name of who said it, and as what it was" {
    ask one
    word confirm anna
    of_one=$word
    ask two-of-them
    forge anna "$of_one"
    not_believed "its receipt in the ledger says something else" two-of-them
    # The same approval, with something else in it.
    sql "UPDATE approvals SET id = 'x' || substr(id, 2) WHERE id = '$approval'"
    approval=$(sqlite3 "$BRIG_HOME/approvals.db" "SELECT id FROM approvals WHERE subject LIKE '%\"one\"%'")
    forge ben "$of_one"
    not_believed "the word of custodian:ben on approval $approval does not count: its receipt in the ledger says something else" one
    word reject ben
    forge ben "$word"
    not_believed "its receipt in the ledger says something else" one
    # Confirmed by one, and refused by the other after that.
    ask two one
    word confirm anna
    of_one=$word
    word reject anna
    forge anna "$of_one"
    add ben "$of_one"
    not_believed "does not count" two one
}

@test "who is asked, and how many, is the policy's to say and not the list's" {
    ask two people
    word confirm anna
    sql "UPDATE approvals SET state = 1, expires_at = unixepoch() + 600, terms = json_set(terms, '\$.quorum', 1)
        WHERE id = '$approval'"
    not_believed "1 of 2 people have confirmed it" two people
    ask anna alone
    sql "UPDATE approvals SET terms = json_set(terms, '\$.by', json('[]')) WHERE id = '$approval'"
    word confirm ben
    not_believed "custodian:ben is not among those who may confirm this" anna alone
    # Who asked is who runs it.
    ask mine
    sql "UPDATE approvals SET requester = 'another' WHERE id = '$approval'"
    run -0 brig approvals confirm "$approval"
    not_believed "whoever asks cannot answer" mine
    # Who confirmed is who said so.
    ask anna alone
    word confirm anna
    sql "UPDATE approvals SET decided_by = 'custodian:ben' WHERE id = '$approval'"
    ask anna alone
    status_is 0
    receipt_is .approval.by custodian:anna
}

@test "what is over stays over, whatever the list says" {
    # Used.
    ask one
    word confirm anna
    ask one
    status_is 0
    sql "UPDATE approvals SET state = 1, receipt_seq = 1000000, expires_at = unixepoch() + 600"
    not_believed "was used before, says the ledger" one
    # Rejected: the older word is there, and the newer one as well.
    ask two words
    word confirm anna
    first=$word
    word confirm ben
    sql "UPDATE approvals SET state = 0, confirmations = 1 WHERE id = '$approval'; DELETE FROM words WHERE by = 'custodian:ben'"
    second=$word
    word reject ben
    forge anna "$first"
    add ben "$second"
    not_believed "it was rejected since" two words
    # Too late.
    ask soon enough
    word confirm anna
    said=$(date +%s) # or a moment earlier, says the receipt
    late() { [ "$(date +%s)" -gt $((said + 1)) ]; }
    eventually 5 late
    sql "UPDATE approvals SET state = 1, expires_at = unixepoch() + 600 WHERE id = '$approval'"
    not_believed "it is too long ago, says the ledger" soon enough
    # Of one who is none any more.
    ask one more
    word confirm ben
    brig approvals custodians --remove ben --by anna --by-passphrase-file pass
    sql "UPDATE custodians SET revoked_at = 0"
    forge ben "$word"
    not_believed "one of those who confirmed it is no custodian any more" one more
}

@test "a receipt that was made to fit is none" {
    ask one
    word confirm anna
    of_one=$word
    first=$approval
    brig sandbox exec -- true # something behind it, for the end of the ledger is looked at anyway
    ask another
    brig sandbox exec -- true
    sqlite3 "$BRIG_HOME/receipts.db" "UPDATE receipts SET body = replace(body, '$first', '$approval') WHERE run_id = '$of_one'"
    forge anna "$of_one"
    not_believed "does not hold: its content does not match its hash" another
}

@test "a run that waits does not go on by such a word either" {
    brig sandbox exec --policy ask.yaml --wait 2m -- echo late >waited 2>&1 &
    running=$!
    seen() { approval=$(brig approvals list --json | jq -r '.approvals[].approval_id') && [ -n "$approval" ]; }
    eventually 10 seen
    sql "UPDATE approvals SET state = 1, confirmations = 1, decided_by = 'custodian:anna',
            decided_at = unixepoch(), expires_at = unixepoch() + 600"
    await "$running"
    [ "$status" -eq 77 ]
    grep -q "approval $approval is not confirmed as it would have to be: 0 of 1 people have confirmed it" waited
}
