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
    [ -z "$DAEMON" ] || kill -TERM "$DAEMON" 2>/dev/null || true # the second time it waits for nobody
    serve_end || status=$?
    destroy_all
    return $status
}

# load WHAT N: what load.mjs says.
load_with() {
    timeout 500 node "$BRIG_ROOT/tests/flow/load.mjs" "$PORT" "$TOKEN" "$DAEMON" "$@"
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

# metric_is_least NAME N: by the daemon's own word.
metric_is_least() {
    local n
    n=$(curl -sS -H "Authorization: Bearer $TOKEN" "http://127.0.0.1:$PORT/metrics" | awk -v name="$1" '$1 == name { print $2 }')
    [ "${n:-0}" -ge "$2" ]
}

# hold N: so many commands that last longer than the test; all of them run.
hold() {
    local i
    holders=()
    for ((i = 0; i < $1; i++)); do
        curl -sS --max-time 900 -H "Authorization: Bearer $TOKEN" -d '{"command":["sleep","800"],"sandbox":{"limits":{"wall_ms":900000}}}' \
            "http://127.0.0.1:$PORT/v1/runs" >/dev/null 2>&1 3>&- &
        holders+=($!)
    done
    eventually 30 metric_is_least brig_runs "$1"
}

@test "a request that waits has its connection and nothing else: each of a thousand is served" {
    # Three descriptors each would be half as many again as there are.
    ulimit -n 2100
    serve --runs 4
    TOKEN=$(token --rate 100000 --at-once 10000)
    run -0 load_with once 1000
    json_is .done 1000
    json_is .wrong 0
    json_is .lost 0
    json_is '.refused | length' 0
    [ "$(receipts_of '.kind == "outcome"')" = "1000 0" ]
    serve_end
    run -0 brig receipts verify
}

@test "stopped, it refuses what waits at once, and told twice it waits for nobody" {
    serve --runs 2 --grace 10m
    TOKEN=$(token --rate 100000 --at-once 10000 --scope run --scope read --scope metrics)
    hold 2
    load_with once 300 >load 3>&- &
    crowd=$!
    (
        post /v1/runs '{"command":["true"]}' -H 'Idempotency-Key: again'
        printf '%s %s\n' "$http" "$output" >keyed
    ) &
    keyed=$!
    eventually 60 metric_is_least brig_runs_waiting 301
    kill -TERM "$DAEMON"
    wait "$keyed"
    wait "$crowd"
    [ "$(cut -c 1-3 keyed)" = 503 ]
    output=$(sed 's/^503 //' keyed)
    json_is .error.code unavailable
    json_is .error.reason_code DAEMON_STOPPING
    output=$(cat load)
    json_is .refused.unavailable 300
    json_is .lost 0
    kill -0 "$DAEMON" # what runs has its grace
    kill -TERM "$DAEMON"
    eventually 30 gone "$DAEMON"
    serve_end
    wait "${holders[@]}" || true
    eventually 20 no_sandbox_left
    serve # which records what was left open, if anything was
    [ "$(receipts_of '.kind == "intent"')" = "2 0" ]
    [ "$(receipts_of '.intent_id != null')" = "2 0" ]
    post /v1/runs '{"command":["true"]}' -H 'Idempotency-Key: again'
    [ "$http" = 200 ]
    serve_end
    run -0 brig receipts verify --json
    json_is .open_runs 0
}

@test "a command line that waited for a daemon that stops does the work itself" {
    serve --runs 1 --grace 10m
    TOKEN=$(token --scope run --scope metrics)
    hold 1
    echo given | "$BRIG" sandbox exec -- cat >out 2>err &
    line=$!
    eventually 20 metric_is_least brig_runs_waiting 1
    kill -TERM "$DAEMON"
    wait "$line"
    [ "$(cat out)" = given ]
    kill -TERM "$DAEMON"
    serve_end
    wait "${holders[@]}" || true
}

@test "told to stop again and again it ends in order, also in its last moments" {
    local told
    for _ in 1 2 3 4 5; do
        serve
        (while kill -TERM "$DAEMON" 2>/dev/null; do :; done) 3>&- &
        told=$!
        serve_end
        wait "$told" || true
    done
}
