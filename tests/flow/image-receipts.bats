#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Images come, go and leave under receipts.

load common
load image-kit
load sandbox

setup() {
    common_setup
    need jq tar gzip busybox sqlite3
    digest=$(busybox_layout "$WORK/layout" example.org/bb:1)
}

teardown() {
    [ -z "${server_pid-}" ] || kill "$server_pid" 2>/dev/null || true
}

# opening 'JQ FILTER': of the newest intent.
opening() {
    ledger "SELECT body FROM receipts WHERE kind = 'intent' ORDER BY seq DESC LIMIT 1" | jq -r "$1"
}

@test "import, export and remove leave an intent and an outcome each" {
    run -0 brig image import "$WORK/layout" --json
    receipt=$(jq -r .receipt_id <<<"$output")
    receipt_is .action image-import
    receipt_is .kind outcome
    receipt_is .receipt_id "$receipt"
    receipt_is .status APPROVED
    receipt_is .outcome.image.digest "$digest"
    receipt_is .outcome.image.reference example.org/bb:1
    receipt_is .principal "uid:$(id -u)"
    [ "$(opening .action)" = image-import ]
    [ "$(opening .receipt_id)" = "$(receipt .intent_id)" ]
    run -0 brig image export example.org/bb:1 --output out.tar --json
    receipt_is .action image-export
    receipt_is .image example.org/bb:1
    receipt_is .outcome.image.digest "$digest"
    run -0 brig image remove example.org/bb:1 --json
    receipt_is .action image-remove
    receipt_is .outcome.image.digest "$digest"
    json_is .receipt_id "$(receipt .receipt_id)"
    chain_holds 6
    nothing_is_left
}

@test "the request is bound, whatever it was" {
    run -0 brig image import "$WORK/layout" --name named
    wanted=$(printf '{"action":"image-import","image":"named","path":"%s"}' "$WORK/layout" | sha256sum | cut -c 1-64)
    receipt_is .request_hash "sha256:$wanted"
    receipt_is .image named
}

@test "what is not what it says is a denial, any other failure an outcome" {
    for file in "$WORK"/layout/blobs/sha256/*; do
        if head -c 2 "$file" | cmp -s - <(printf '\037\213'); then printf X >>"$file"; fi
    done
    run brig image import "$WORK/layout"
    status_is 76
    receipt_is .action image-import
    receipt_is .kind denial
    receipt_is .status DENIED
    receipt_is .reason_code IMAGE_REFUSED
    [ "$(receipt .intent_id)" = "$(opening .receipt_id)" ]
    run brig image import /dev/null --name x
    [ "$status" -ne 0 ]
    receipt_is .kind outcome
    receipt_is .reason_code IMAGE_FAILED
    [ -n "$(receipt .outcome.failure)" ]
    chain_holds 4
    nothing_is_left
}

@test "what is not there needs no receipt" {
    run brig image remove nothing
    status_is 66
    [ "$(receipts_of intent)" = 0 ]
}

@test "a pull that is killed is told by the next command" {
    need node
    : >"$WORK/requests"
    node "$BRIG_ROOT/tests/flow/bad-registry.mjs" "$WORK/layout" >"$WORK/bad.out" 2>/dev/null 3>&- &
    server_pid=$!
    eventually 10 grep -q port "$WORK/bad.out"
    bad=127.0.0.1:$(sed -n 's/^port //p' "$WORK/bad.out")
    "$BRIG" image pull "$bad/stall:latest" >/dev/null 2>&1 3>&- &
    pull=$!
    eventually 20 grep -q blobs "$WORK/requests"
    kill -9 $pull
    wait $pull || true
    eventually 5 no_run_is_held
    receipt_is .kind intent
    receipt_is .image "$bad/stall:latest"
    run -0 brig image import "$WORK/layout"
    [ "$(ledger "SELECT count(*) FROM receipts WHERE body LIKE '%RUN_ABANDONED%'")" = 1 ]
    chain_holds 4
    nothing_is_left
}

@test "without a ledger nothing comes" {
    mkdir -p "$BRIG_HOME/receipts.db"
    run brig image import "$WORK/layout"
    [ "$status" -ne 0 ]
    [ ! -e "$BRIG_HOME/images/names.json" ]
    [ -z "$(find "$BRIG_HOME/images/content" -type f 2>/dev/null)" ]
}
