#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Images over HTTP: pulled with progress, imported, shown, exported, removed.

load common
load sandbox
load kept
load image-kit
load serve

setup() {
    common_setup
    need curl jq tar gzip busybox
    CURL_AUTH=()
    unset https_proxy HTTPS_PROXY BRIG_REGISTRY_USER BRIG_REGISTRY_PASSWORD BRIG_REGISTRY_CA
}

teardown() {
    local status=0
    serve_end || status=$?
    [ -z "${server_pid-}" ] || kill "$server_pid" 2>/dev/null || true
    destroy_all
    return $status
}

is_status() {
    [ "$http" = "$1" ] || {
        printf 'status is %s, should be %s: %s\n' "$http" "$1" "$output" >&2
        return 1
    }
}

@test "an archive becomes an image once; it is shown, run, verified, exported and removed" {
    digest=$(busybox_layout "$WORK/layout" bb:1)
    tar -C layout -cf bb.tar .
    serve
    TOKEN=$(token --scope read --scope run --scope images)
    api -X POST -T bb.tar -H 'Idempotency-Key: a' '/v1/images/import?name=bb:1'
    is_status 201
    json_is .image_digest "$digest"
    json_is '.receipt_id | length' 20
    receipt=$(printf '%s' "$output" | jq -r .receipt_id)
    api -X POST -T bb.tar -H 'Idempotency-Key: a' '/v1/images/import?name=bb:1'
    is_status 201
    json_is .receipt_id "$receipt"
    api /v1/images
    json_is '.images | length' 1
    [ "$(printf '%s' "$output" | jq -S .)" = "$("$BRIG" image list --json | jq -S .)" ]
    api '/v1/images/show?image=bb:1'
    [ "$(printf '%s' "$output" | jq -S .)" = "$("$BRIG" image show bb:1 --json | jq -S .)" ]
    post /v1/runs '{"command":["/bin/sh","-c","echo $GREETING"],"sandbox":{"image":"bb:1"}}'
    is_status 200
    json_is .stdout hello
    api -X POST '/v1/images/verify?image=bb:1'
    json_is .intact true
    api -D head -o out.tar '/v1/images/export?image=bb:1'
    is_status 200
    grep -qi "^x-image-digest: $digest" head
    TOKEN=$(token --tenant other --scope read --scope images)
    api /v1/images
    json_is '.images | length' 0
    api -N -X POST -T out.tar -H 'Accept: application/x-ndjson' '/v1/images/import?name=again'
    is_status 200
    [ "$(printf '%s\n' "$output" | jq -r 'select(.event == "done").image_digest')" = "$digest" ]
    api -X DELETE '/v1/images?image=again'
    is_status 200
    json_is .freed true
    api '/v1/images/show?image=again'
    refused 404 not_found
    api -X DELETE '/v1/images?image=again'
    refused 404 not_found

    # What is no image says so, as an answer and as a stream, with a receipt and without our paths.
    api -X POST --data-binary 'not a tar' /v1/images/import
    [ "$http" != 201 ]
    [[ $output != */proc/* ]]
    json_is '.error.details.receipt_id | length' 20
    api -X POST --data-binary 'not a tar' -H 'Accept: text/event-stream' /v1/images/import
    [[ $output == *'event: error'* ]]
    [ -z "$(find "$BRIG_HOME/spool" "$BRIG_HOME/tenants/other/spool" -type f)" ]
    TOKEN=$(token --scope read)
    api -X POST --data-binary x /v1/images/import
    refused 403 forbidden
}

@test "a pull tells how far it is; registries of this machine need the scope for it" {
    need docker-registry perl
    registry=127.0.0.1:$(perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1")->sockport')
    printf 'version: 0.1\nlog: {level: error}\nstorage: {filesystem: {rootdirectory: %s}}\nhttp: {addr: %s}\n' "$WORK/registry" "$registry" >registry.yml
    docker-registry serve registry.yml >registry.log 2>&1 3>&- &
    server_pid=$!
    eventually 10 curl -s -o /dev/null "http://$registry/v2/"
    digest=$(busybox_layout "$WORK/layout" x)
    push "$WORK/layout" "$registry" team/bb 1
    serve
    TOKEN=$(token --scope images)
    post /v1/images/pull "{\"image\":\"$registry/team/bb:1\"}"
    refused 403 forbidden
    post /v1/images/pull '{"image":"example.org/x","insecure_http":true}'
    refused 403 forbidden
    post /v1/images/pull '{"image":"example.org/x","username":"u"}'
    refused 400 invalid
    TOKEN=$(token --scope images --scope host)
    post /v1/images/pull "{\"image\":\"$registry/team/bb:1\"}" -H 'Accept: application/x-ndjson' -H 'Idempotency-Key: p'
    is_status 200
    printf '%s\n' "$output" | jq -se 'any(.event == "progress" and .done_bytes >= 0 and (.what | length) > 0)'
    [ "$(printf '%s\n' "$output" | jq -r 'select(.event == "done").image_digest')" = "$digest" ]
    # The answer to the same request, whoever lost the stream.
    post /v1/images/pull "{\"image\":\"$registry/team/bb:1\"}" -H 'Idempotency-Key: p'
    is_status 201
    json_is .image_digest "$digest"
    post /v1/images/pull "{\"image\":\"$registry/team/none:1\"}"
    refused 404 not_found
    json_is '.error.details.receipt_id | length' 20
    post /v1/images/pull "{\"image\":\"$registry/team/none:1\"}" -H 'Accept: text/event-stream'
    is_status 200
    [[ $output == *'event: error'*'"not_found"'* ]]
    post /v1/images/pull '{"image":"Not A Name"}'
    refused 400 invalid
}
