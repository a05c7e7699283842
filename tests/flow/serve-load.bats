#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Many at once, slow ones, and ones that leave: every request is answered right or with a typed
# error, nothing runs twice, and whoever asks how the daemon is gets an answer.

load common
load sandbox
load kept
load serve

setup() {
    common_setup
    need curl node
}

teardown() {
    local status=0
    serve_end || status=$?
    destroy_all
    return $status
}

# load WHAT N: what load.mjs says.
load_with() {
    timeout 120 node "$BRIG_ROOT/tests/flow/load.mjs" "$PORT" "$TOKEN" "$DAEMON" "$@"
}

# receipts_of FILTER: how many runs have such a receipt, and how many more than one.
receipts_of() {
    "$BRIG" receipts export 2>/dev/null | jq -r "select(.action == null and ($1)) | .run_id" | sort | uniq -c | awk '{ n++; if ($1 != 1) twice++ } END { print n + 0, twice + 0 }'
}

@test "hundreds at once beside slow clients: each runs once, the ledger says the same" {
    serve
    TOKEN=$(token --rate 100000 --at-once 10000)
    load_with slow 200 >slow &
    slow=$!
    run -0 load_with once 250
    json_is .wrong 0
    json_is .lost 0
    done=$(jq .done <<<"$output")
    [ "$done" -gt 0 ]
    json_is '(.done + ([.refused[]] | add // 0))' 250
    [ "$(receipts_of '.kind == "outcome"')" = "$done 0" ]
    wait "$slow"
    [ "$(jq .done slow)" -eq 200 ]
    serve_end
    run -0 brig receipts verify
}

@test "beyond what it may run and hold, requests are refused by type and not lost" {
    serve --runs 4
    TOKEN=$(token --rate 100000 --at-once 40)
    run -0 load_with once 300
    json_is .wrong 0
    json_is .lost 0
    json_is '.refused.limit > 0' true
    done=$(jq .done <<<"$output")
    [ "$(receipts_of '.kind == "outcome"')" = "$done 0" ]
    serve_end
}

@test "a client that leaves at any point leaves nothing behind" {
    serve
    TOKEN=$(token)
    run -0 node "$BRIG_ROOT/tests/flow/leave.mjs" "$PORT" "$TOKEN"
    [ "$(curl -sS "http://127.0.0.1:$PORT/healthz")" = ok ]
    # What began has ended, each with its one receipt.
    eventually 20 no_sandbox_left
    serve_end
    read -r intents twice < <(receipts_of '.kind == "intent"')
    [ "$twice" -eq 0 ]
    [ "$(receipts_of '.intent_id != null')" = "$intents 0" ]
    run -0 brig receipts verify
}
