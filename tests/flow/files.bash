# SPDX-License-Identifier: Apache-2.0
# For tests of files and ports of kept sandboxes; loaded behind common.bash. Adds:
#
#     make_box ARGS…        a kept sandbox of these arguments; sets $id
#     inside 'SHELL TEXT'   runs it in $id
#     files VERB PATH…      brig sandbox files VERB $id PATH…, with an end
#     copy ARGS…            brig sandbox cp ARGS…, with an end
#     last_receipt FILTER   of the newest receipt

PATIENCE=30

make_box() {
    id=$("$BRIG" sandbox create --json "$@" | jq -r .sandbox_id) && [ "$id" != null ]
}

inside() {
    timeout -k 5 $PATIENCE "$BRIG" sandbox exec --quiet "$id" -- sh -c "$1" </dev/null
}

files() {
    local verb=$1
    shift
    timeout -k 5 $PATIENCE "$BRIG" sandbox files "$verb" "$id" "$@"
}

copy() {
    timeout -k 5 $PATIENCE "$BRIG" sandbox cp "$@"
}

last_receipt() {
    local newest
    newest=$("$BRIG" receipts list --json --limit 1 | jq -r '.receipts[-1].receipt_id')
    "$BRIG" receipts show --json "$newest" | jq -r "$1"
}

destroy_boxes() {
    local each
    for each in $("$BRIG" sandbox list --json | jq -r '.sandboxes[].sandbox_id'); do
        "$BRIG" sandbox destroy "$each" 2>/dev/null || true
    done
}
