#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Parts of files over HTTP: Range, If-Range, If-None-Match.

load common
load sandbox
load kept
load serve

setup() {
    common_setup
    need curl jq
    serve
    TOKEN=$(token --scope read --scope run)
}

teardown() {
    local status=0
    serve_end || status=$?
    destroy_all
    return $status
}

is_status() {
    [ "$http" = "$1" ] || {
        printf 'status is %s, should be %s: %s\n' "$http" "$1" "$output" >&2
        return 1
    }
}

header() {
    tr -d '\r' <head | sed -n "s/^$1: //Ip"
}

@test "a part of a file is what was asked for, of the file that was seen" {
    F='/v1/sandboxes/s/files?path=/sandbox/tmp/f'
    post /v1/sandboxes '{"name":"s"}'
    api -T - "$F" <<<'0123456789'
    api -D head "$F"
    is_status 200
    [ "$(header content-length)" = 11 ]
    [ "$(header accept-ranges)" = bytes ]
    etag=$(header etag)
    [ -n "$(header last-modified)" ]
    while read -r range bytes shown; do
        api -D head -H "Range: bytes=$range" "$F"
        is_status 206
        [ "$output" = "$bytes" ] || [ "$output" = "$bytes"$'\n' ]
        [ "$(header content-range)" = "bytes $shown/11" ]
    done <<'R'
2-4 234 2-4
0-0 0 0-0
5- 56789 5-10
-4 789 7-10
8-100 89 8-10
R
    for range in 11- 20-30 -0; do
        api -D head -H "Range: bytes=$range" "$F"
        refused 416 invalid
        [ "$(header content-range)" = 'bytes */11' ]
    done
    api -H 'Range: bytes=0-1,3-4' "$F"
    refused 416 invalid
    says 'one range at a time'
    # What is not understood asks for all.
    for range in 'lines=1-2' 'bytes=4-2' 'bytes=a-b'; do
        api -H "Range: $range" "$F"
        is_status 200
    done
    api -H 'Range: bytes=2-4' -H "If-Range: $etag" "$F"
    is_status 206
    api -D head -H "If-None-Match: $etag" "$F"
    is_status 304
    [ -z "$output" ]
    [ "$(header etag)" = "$etag" ]
    # Another content of the same length is another file.
    api -T - "$F" <<<'abcdefghij'
    api -H 'Range: bytes=2-4' -H "If-Range: $etag" "$F"
    is_status 200
    [[ $output == abcdefghij* ]]
    api -H "If-None-Match: $etag" "$F"
    is_status 200
    # Large ones, by parts, are the whole.
    post /v1/sandboxes/s/exec '{"command":["sh","-c","head -c 5000000 /dev/urandom >/sandbox/tmp/f; sha256sum </sandbox/tmp/f"]}'
    sum=$(printf '%s' "$output" | jq -r .stdout)
    for part in 0-1999999 2000000-3999999 4000000-; do
        curl -sS -H "Authorization: Bearer $TOKEN" -r "$part" "http://127.0.0.1:$PORT$F"
    done | sha256sum >sum
    [ "$(cat sum)" = "${sum%$'\n'}" ]
    # A folder and what is not there are errors, not streams that break off.
    api '/v1/sandboxes/s/files?path=/sandbox/tmp'
    [ "$http" -ge 400 ]
    json_is '.error.code | length > 0' true
    api '/v1/sandboxes/s/files?path=/sandbox/tmp/none'
    refused 404 not_found
    # A part that was read is recorded as what it was, once it was: the last byte is out before that.
    api -H 'Range: bytes=0-9' "$F"
    eventually 10 sh -c "'$BRIG' receipts export | tail -n 1 | jq -e '.. | objects | select(.bytes? == 10)'"
}
