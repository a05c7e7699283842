#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# The ledger from outside: what is recorded, what is noticed, and a second opinion on all of it.

load common

VECTORS=$BRIG_ROOT/tests/vectors/receipt

# runs N: that many runs on the mock provider, two receipts each.
runs() {
    local i
    for ((i = 0; i < $1; i++)); do
        brig sandbox exec --provider mock -- echo "run $i" >/dev/null 2>&1 || return
    done
}

ledger_sql() {
    need sqlite3
    sqlite3 "$BRIG_HOME/receipts.db" "$1"
}

# both_say FILE INTEGRITY [FAULT SEQ]: brig and the script that shares no code give this answer.
both_say() {
    local answer fault=${3:-none} seq=${4:-0}
    run brig verify --json "$1"
    json_is .integrity "$2"
    json_is '.fault.kind // "none"' "$fault"
    json_is '.fault.seq // 0' "$seq"
    answer=$("$BRIG_ROOT/tests/flow/verify-receipt" "$BRIG_HOME/receipts.pub" "$1") || true
    [[ $answer == *"integrity $2"* ]] || { echo "$answer" >&2; return 1; }
    [ "$fault" = none ] || [[ $answer == *"fault $fault $seq"* ]] || { echo "$answer" >&2; return 1; }
}

@test "a run leaves an intent and an outcome that name each other" {
    run --separate-stderr brig sandbox exec --provider mock --json -- echo hello
    status_is 0
    id=$(jq -r .receipt_id <<<"$output")
    run --separate-stderr brig receipts show "$id" --json
    status_is 0
    json_is .kind outcome
    json_is .mock true
    intent=$(jq -r .intent_id <<<"$output")
    run --separate-stderr brig receipts show "$intent"
    json_is .kind intent
    json_is .seq 1
    json_is .posture.evidence planned
    json_is .run_id "$(brig receipts show "$id" | jq -r .run_id)"
}

@test "a denial is a receipt too" {
    printf 'version: 1\ndefault: deny\n' >policy.yaml
    run --separate-stderr brig sandbox exec --provider mock --policy policy.yaml -- echo hello
    status_is 77
    run brig receipts list --json
    json_is '.receipts | length' 1
    json_is '.receipts[0].kind' denial
    json_is '.receipts[0].status' DENIED
    run brig receipts verify
    status_is 0
}

@test "arguments and variables are not in the ledger or its export" {
    brig sandbox exec --provider mock --env SECRET=canary-one -- echo canary-two >/dev/null 2>&1
    brig receipts export >export.jsonl 2>/dev/null
    run grep -c canary export.jsonl
    status_is 1
    run grep -rc canary "$BRIG_HOME"
    [[ $output != *:[1-9]* ]]
}

@test "verify says integrity and completeness apart" {
    runs 2
    run brig receipts verify
    status_is 0
    says "integrity intact: 4 entries"
    says "completeness not proven"
    says "the key of this state directory"
    brig receipts head >head.json
    run brig receipts verify --head head.json
    status_is 0
    says "completeness proven"
    run --separate-stderr brig receipts verify --head head.json --json
    json_is .integrity intact
    json_is .completeness proven
    json_is .ok true
}

@test "what was cut off after a head was taken is noticed" {
    runs 3
    brig receipts head >head.json
    brig receipts export --output export.jsonl
    head -n 4 export.jsonl >cut.jsonl
    run brig verify cut.jsonl
    status_is 0
    says "completeness not proven"
    run brig verify --head head.json cut.jsonl
    status_is 76
    says "entry 5 is missing: the chain ends with entry 4"
    run "$BRIG_ROOT/tests/flow/verify-receipt" "$BRIG_HOME/receipts.pub" cut.jsonl head.json
    status_is 1
    says "completeness truncated"
    ledger_sql 'DELETE FROM receipts WHERE seq > 4'
    run brig receipts verify
    status_is 0
    run brig receipts verify --head head.json
    status_is 76
    says "truncated"
}

@test "an export verifies, also by a script that shares no code" {
    need openssl python3
    runs 3
    brig receipts export >good.jsonl 2>/dev/null
    both_say good.jsonl intact
    run brig verify good.jsonl
    status_is 0
}

@test "each kind of tampering gets the same answer from both verifiers" {
    need openssl python3
    runs 3
    brig receipts export >good.jsonl 2>/dev/null
    sed '4s/APPROVED/DENIED/' good.jsonl >changed.jsonl
    both_say changed.jsonl tampered changed 4
    sed '2s/"signature":"\(.\)/"signature":"0\1/; 2s/\("signature":"[0-9a-f]\{128\}\)./\1/' good.jsonl >signature.jsonl
    both_say signature.jsonl tampered changed 2
    sed 3d good.jsonl >missing.jsonl
    both_say missing.jsonl tampered missing 3
    sed 1d good.jsonl >first.jsonl
    both_say first.jsonl tampered missing 1
    sed 2p good.jsonl >twice.jsonl
    both_say twice.jsonl tampered duplicated 2
    awk 'NR==3 {held=$0; next} {print} NR==4 {print held}' good.jsonl >moved.jsonl
    both_say moved.jsonl tampered moved 3
    head -c -100 good.jsonl >torn.jsonl
    both_say torn.jsonl torn torn 6
    sed '3s/.*/{}/' good.jsonl >empty.jsonl
    both_say empty.jsonl tampered changed 3
    sed '5s/^{/{"seq":5,/' good.jsonl >duplicate-member.jsonl
    both_say duplicate-member.jsonl tampered changed 5
    for file in changed signature missing first twice moved torn empty duplicate-member; do
        run brig verify $file.jsonl
        status_is 76
    done
}

@test "the commands of docs/formats/receipt.md verify the vector" {
    need openssl jq xxd sha256sum
    cp "$VECTORS"/* .
    head -n 1 chain.jsonl | jq -cSj 'del(.hash, .signature)' | cmp - first-body.json
    sum=$( (printf 'brig/receipt/1\0'; cat first-body.json) | sha256sum | cut -c 1-64)
    [ "sha256:$sum" = "$(cat first-hash)" ]
    (printf 'brig/receipt/1\0'; cat first-body.json) | openssl dgst -sha256 -binary >digest
    xxd -r -p first-signature >signature
    run openssl pkeyutl -verify -pubin -inkey public.pem -rawin -in digest -sigfile signature
    status_is 0
    id=$(openssl pkey -pubin -in public.pem -outform DER | tail -c 32 | sha256sum | cut -c 1-16)
    json_is .key_id "ed25519:$id" "$(cat first-body.json)"
}

@test "the vector verifies with the key and the head that were published" {
    run brig verify --key "$VECTORS/public.pem" --head "$VECTORS/head.json" "$VECTORS/chain.jsonl"
    status_is 0
    says "completeness proven"
    says "given with --key"
    [ -n "${BRIG_TEST_DAEMON-}" ] || [ ! -e "$BRIG_HOME" ] # a daemon makes its own
}

@test "without a key nothing is trusted, and a key in the file would not be either" {
    run brig verify "$VECTORS/chain.jsonl"
    status_is 64
    says "no key to trust"
    runs 1
    run brig verify "$VECTORS/chain.jsonl"
    status_is 76
    says "another key than the trusted one signed it"
}

@test "one receipt out of a chain is verified as a part" {
    runs 2
    brig receipts export 2>/dev/null | sed -n 3p >one.jsonl
    run brig verify one.jsonl
    status_is 76
    says "entry 1 is missing"
    run brig verify --part one.jsonl
    status_is 0
    brig receipts show 3 --json | jq -c . >shown.jsonl
    run brig verify --part shown.jsonl
    status_is 0
}

@test "a changed ledger is named, and nothing runs behind a changed head" {
    runs 2
    ledger_sql "UPDATE receipts SET body = replace(body, 'APPROVED', 'DENIED') WHERE seq = 2"
    run brig receipts verify
    status_is 76
    says "entry 2"
    says "its content does not match its hash"
    ledger_sql "UPDATE receipts SET body = replace(body, 'APPROVED', 'DENIED') WHERE seq = 4"
    run brig sandbox exec --provider mock -- echo hello
    status_is 76
    says "has been changed"
}

# holds_not SEQ WHY: shown, with why it does not hold, in both forms.
holds_not() {
    run -76 --separate-stderr brig receipts show "$1"
    json_is .v 1
    [[ $stderr == *"entry $1 of the ledger does not hold: $2"* ]] || { echo "$stderr" >&2; return 1; }
    run -76 --separate-stderr brig receipts show "$1" --json
    json_is .error.code integrity
    json_is .error.details.receipt.v 1
    [[ $(jq -r .error.message <<<"$output") == *"does not hold: $2"* ]]
}

@test "a receipt that does not hold is shown, and said not to" {
    runs 1
    cp -a "$BRIG_HOME" "$BRIG_HOME.other"
    BRIG_HOME=$BRIG_HOME.other runs 1
    runs 4
    for seq in 1 2 10; do
        run -0 --separate-stderr brig receipts show "$seq"
        json_is .seq "$seq"
        [ -z "$stderr" ]
    done
    ledger_sql "UPDATE receipts SET body = replace(body, 'APPROVED', 'DENIED') WHERE seq = 2"
    holds_not 2 "its content does not match its hash"
    json_is .error.details.receipt.status DENIED
    run -0 brig receipts show 1
    run -0 brig receipts show 3 # it names the hash that entry 2 still says it has
    ledger_sql "UPDATE receipts SET signature = zeroblob(64) WHERE seq = 3"
    holds_not 3 "its signature does not hold"
    # An authentic one, of another chain of the same key.
    ledger_sql "ATTACH '$BRIG_HOME.other/receipts.db' AS other;
        UPDATE receipts SET (receipt_id, run_id, body, hash, signature) =
            (SELECT receipt_id, run_id, body, hash, signature FROM other.receipts WHERE seq = 4) WHERE seq = 4"
    holds_not 4 "its prev_hash is not the hash of the entry before it"
    ledger_sql "DELETE FROM receipts WHERE seq = 6"
    holds_not 7 "the entry before it is missing"
    ledger_sql "UPDATE receipts SET kind = 'denial' WHERE seq = 8"
    holds_not 8 "the columns it is found by do not say what its content says"
    ledger_sql "UPDATE receipts SET seq = 6 WHERE seq = 8"
    holds_not 6 ""
    run -0 brig receipts show 10
}

@test "the list says what each receipt is about" {
    runs 1
    run -0 brig freeze
    run -0 brig unfreeze
    run -0 brig receipts list
    [[ "${lines[0]}" == *outcome*unfreeze*APPROVED* ]]
    [[ "${lines[2]}" == *outcome*freeze*APPROVED* ]]
    [[ "${lines[4]}" == *outcome*run*APPROVED* ]]
    run -0 brig receipts list --json
    json_is '.receipts[0].action' unfreeze
}

@test "a key that others can read, a newer schema and a damaged ledger are refused with a sentence" {
    without_daemon "its keeper has the key, and it has the ledger open, from before they were changed"
    runs 1
    chmod 644 "$BRIG_HOME/receipts.key"
    run brig sandbox exec --provider mock -- echo hello
    status_is 76
    says "chmod 600"
    chmod 600 "$BRIG_HOME/receipts.key"
    ledger_sql 'PRAGMA user_version = 99'
    run brig sandbox exec --provider mock -- echo hello
    status_is 69
    says "written by a newer Brig"
    rm -f "$BRIG_HOME"/receipts.db*
    head -c 20000 /dev/urandom >"$BRIG_HOME/receipts.db"
    chmod 600 "$BRIG_HOME/receipts.db"
    run brig sandbox exec --provider mock -- echo hello
    status_is 76
    says "is not a database"
}

@test "a receipt that does not exist is named" {
    runs 1
    run brig receipts show zzzz
    status_is 66
    says 'there is no receipt "zzzz"'
    run brig receipts show ../etc
    status_is 64
}

@test "eight processes with 200 runs each append to one chain" {
    for p in 1 2 3 4 5 6 7 8; do
        runs 200 &
        pids[p]=$!
    done
    for p in 1 2 3 4 5 6 7 8; do
        wait "${pids[p]}"
    done
    run --separate-stderr brig receipts verify --json
    status_is 0
    json_is .entries 3200
    json_is .last_seq 3200
    json_is .open_runs 0
    # One that stays shortens its log less often: LOG_PAGES_RESIDENT.
    [ "$(stat -c %s "$BRIG_HOME/receipts.db-wal")" -lt "$([ -z "${BRIG_TEST_DAEMON-}" ] && echo 4000000 || echo 8200000)" ]
}
