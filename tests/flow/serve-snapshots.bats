#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Snapshots over HTTP: taken, listed, gone back to, forked, carried out and in.

load common
load sandbox
load kept
load serve

setup() {
    common_setup
    need curl
    serve
    TOKEN=$(token)
}

teardown() {
    local status=0 each
    serve_end || status=$?
    destroy_all
    for each in $("$BRIG" snapshot list --json | jq -r '.snapshots[].snapshot_id'); do
        "$BRIG" snapshot remove "$each" 2>/dev/null || true
    done
    return $status
}

# said SANDBOX CMD…: what a command in it prints.
said() {
    local sandbox=$1
    shift
    post "/v1/sandboxes/$sandbox/exec" "$(jq -nc '{command:$ARGS.positional}' --args -- "$@")"
    [ "$http" = 200 ] || return
    output=$(printf '%s' "$output" | jq -r .stdout)
}

is_status() {
    [ "$http" = "$1" ] || {
        printf 'status is %s, should be %s: %s\n' "$http" "$1" "$output" >&2
        return 1
    }
}

@test "a snapshot is taken once, found by its name, gone back to and removed" {
    post /v1/sandboxes '{"name":"s"}'
    is_status 201
    id=$(printf '%s' "$output" | jq -r .sandbox_id)
    said s sh -c 'echo one >/tmp/f; echo'
    post /v1/sandboxes/s/snapshots '{"name":"first"}' -H 'Idempotency-Key: a'
    is_status 201
    json_is .done true
    json_is .sandbox_id "$id"
    snap=$(printf '%s' "$output" | jq -r .snapshot_id)
    # The same request again is the same answer; nothing is taken twice.
    post /v1/sandboxes/s/snapshots '{"name":"first"}' -H 'Idempotency-Key: a'
    is_status 201
    json_is .snapshot_id "$snap"
    post /v1/sandboxes/s/snapshots '{"name":"other"}' -H 'Idempotency-Key: a'
    refused 409 conflict
    api /v1/snapshots
    json_is '.snapshots | length' 1
    json_is '.snapshots[0].snapshot_id' "$snap"
    # What the command line says is what the API says.
    api /v1/snapshots/first
    is_status 200
    [ "$(printf '%s' "$output" | jq -S 'del(.digest)')" = "$("$BRIG" snapshot show first | jq -S 'del(.digest)')" ]
    api /v1/sandboxes/s/snapshots
    json_is '.snapshots | length' 1

    said s sh -c 'echo two >/tmp/f; cat /tmp/f'
    [ "$output" = two ]
    post /v1/sandboxes/s/restore '{"snapshot_id":"first"}'
    is_status 200
    json_is .action restore
    said s cat /tmp/f
    [ "$output" = one ]
    brig snapshot tend
    api -X POST "/v1/snapshots/$snap/verify"
    json_is .intact true

    api -X DELETE "/v1/snapshots/$snap"
    is_status 200
    json_is .freed false # the sandbox stands on it
    api "/v1/snapshots/$snap"
    refused 404 not_found
    api -X DELETE "/v1/snapshots/$snap"
    refused 404 not_found
    post /v1/sandboxes/s/restore '{"snapshot_id":"nothing"}'
    refused 404 not_found
    post /v1/sandboxes/s/restore '{}'
    refused 400 invalid
    run -0 brig receipts verify --json
    json_is .open_runs 0
}

@test "forks of a live sandbox and of a snapshot; all of them or none" {
    post /v1/sandboxes '{"name":"s"}'
    said s sh -c 'echo one >/tmp/f; echo'
    post /v1/sandboxes/s/fork '{"count":2,"name":"f","labels":{"a":"b"}}' -H 'Idempotency-Key: k'
    is_status 201
    json_is '.sandboxes | length' 2
    json_is '.sandboxes[1].name' f-2
    json_is '.sandboxes[1].labels[0]' a=b
    post /v1/sandboxes/s/fork '{"count":2,"name":"f","labels":{"a":"b"}}' -H 'Idempotency-Key: k'
    is_status 201
    api /v1/sandboxes
    json_is '.sandboxes | length' 3
    said f-1 sh -c 'cat /tmp/f; echo fork >/tmp/f'
    [ "$output" = one ]
    said f-2 cat /tmp/f
    [ "$output" = one ]
    # The snapshot that was taken for them is not left behind.
    api /v1/snapshots
    json_is '.snapshots | length' 0

    post /v1/sandboxes/f-1/snapshots '{"name":"base"}'
    post /v1/snapshots/base/fork '{"name":"g"}'
    is_status 201
    said g cat /tmp/f
    [ "$output" = fork ]
    post /v1/sandboxes '{"name":"h","snapshot_id":"'"$("$BRIG" snapshot show base | jq -r .snapshot_id)"'"}'
    is_status 201
    said h cat /tmp/f
    [ "$output" = fork ]
    post /v1/snapshots/nothing/fork '{}'
    refused 404 not_found
    post /v1/sandboxes/s/fork '{"count":1001}'
    refused 400 invalid
    # Folders of the machine are not passed on without the scope for it.
    mkdir shown
    brig sandbox create --name m --mount "$WORK/shown:/shown:ro"
    TOKEN=$(token --scope read --scope run)
    post /v1/sandboxes/m/fork '{}'
    refused 403 forbidden
    says 'scope \"host\"'
    api /v1/snapshots
    json_is '.snapshots | length' 1
}

@test "an archive carries a snapshot to another tenant, without its credentials" {
    post /v1/sandboxes '{"name":"s"}'
    said s sh -c 'echo one >/tmp/f; mkdir ~/.ssh; printf -- "-----BEGIN OPENSSH PRIVATE KEY-----\nabc\n-----END OPENSSH PRIVATE KEY-----\n" >~/.ssh/id_ed25519; echo'
    post /v1/sandboxes/s/snapshots '{"name":"base"}'
    is_status 201
    api -D head -o snap.tar /v1/snapshots/base/export
    is_status 200
    grep -qi '^content-type: application/x-tar' head
    grep -qi '^x-dropped: [1-9]' head
    receipt=$(tr -d '\r' <head | sed -n 's/^x-receipt-id: //Ip')
    brig receipts show "$receipt" | jq -e '.. | select(.path? == "-")'
    tar -tf snap.tar | grep -q oci-layout
    [ -z "$(find "$BRIG_HOME/spool" -type f)" ]

    TOKEN=$(token --tenant other)
    api /v1/snapshots
    json_is '.snapshots | length' 0
    api -X POST -T snap.tar -H 'Idempotency-Key: i' '/v1/snapshots/import?name=copy'
    is_status 201
    snap=$(printf '%s' "$output" | jq -r .snapshot_id)
    api -X POST -T snap.tar -H 'Idempotency-Key: i' '/v1/snapshots/import?name=copy'
    is_status 201
    json_is .snapshot_id "$snap"
    # Another body, or another name, under the same key is another request.
    printf x >>snap.tar
    api -X POST -T snap.tar -H 'Idempotency-Key: i' '/v1/snapshots/import?name=copy'
    refused 409 conflict
    api /v1/snapshots
    json_is '.snapshots | length' 1
    post /v1/snapshots/copy/fork '{"name":"t"}'
    is_status 201
    said t sh -c 'cat /tmp/f; ls ~/.ssh'
    [ "$output" = one ]
    api -X DELETE /v1/sandboxes/t
    api -X DELETE "/v1/snapshots/$snap"
    json_is .done true

    # What is no archive is refused, with a receipt, and says nothing of our files.
    api -X POST --data-binary 'not a tar' /v1/snapshots/import
    [ "$http" != 201 ]
    [[ $output != */proc/* ]]
    [[ $output != *"$BRIG_HOME"* ]]
    [ -z "$(find "$BRIG_HOME/tenants/other/spool" -type f)" ]
    # A body that stops half way leaves nothing.
    run ! curl -sS --max-time 2 -H "Authorization: Bearer $TOKEN" -H 'Content-Length: 100000' -H 'Expect:' --data-binary @head "http://127.0.0.1:$PORT/v1/snapshots/import"
    api /v1/snapshots
    json_is '.snapshots | length' 0
}
