#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# Every example of docs/api.md runs, in the order of the page, against a daemon.

load common
load sandbox
load kept
load image-kit
load serve

setup() {
    common_setup
    need curl jq tar busybox python3
    ln -s "$BRIG" brig
    PATH=$WORK:$PATH
}

teardown() {
    local status=0
    serve_end || status=$?
    destroy_all
    return $status
}

# The page's, on the port and socket of this test. What is refused fails; what starts inside gets a
# moment; what would go on for ever ends with its first word.
curl() {
    local arg words=() options=(-sS --fail-with-body --max-time 60)
    for arg in "$@"; do
        words+=("${arg//127.0.0.1:8080/127.0.0.1:$PORT}")
        case $arg in
        */.local/share/brig/daemon.sock) words[-1]=$WORK/d.sock ;;
        */ports/*) options+=(--retry 50 --retry-delay 1 --retry-all-errors) ;;
        */receipts/tail) words[-1]+="?after=0&limit=1" ;;
        esac
    done
    command curl "${options[@]}" "${words[@]}"
}

# The lines of the indented blocks; what begins with a brace is an answer.
commands() {
    sed -n 's/^    \([^ {].*\)$/\1/p' "$BRIG_ROOT/docs/api.md"
}

@test "every example of docs/api.md runs" {
    local line n=0
    serve
    echo "a report" >report.txt
    busybox_layout "$WORK/layout" busybox:1 >/dev/null
    tar -C layout -cf busybox.tar .
    commands >page
    while IFS= read -r line; do
        n=$((n + 1))
        case $line in
        "brig serve "*) continue ;; # it runs
        esac
        # In this shell: a later line uses what an earlier one sets.
        eval "$line" >answer 2>said </dev/null || {
            echo "$line" >&2
            cat said answer >&2
            return 1
        }
        case $line in
        *'"echo","Hello"'*) jq -e '.stdout == "Hello\n"' answer >/dev/null ;;
        *'echo $A'*) jq -e '.stdout == "1\n"' answer >/dev/null ;;
        *'-T report.txt'*) jq -e '.bytes == 9' answer >/dev/null ;;
        *'receipts/tail'*) grep -q '^id: 1$' answer ;;
        esac
    done <page
    echo "# $n commands"
    [ "$n" -ge 20 ]
    unset -f curl
    # The page leaves nothing behind, and its errors look like this one.
    api /v1/sandboxes
    json_is '.sandboxes | length' 0
    shown=$(sed -n 's/^    \({"error".*\)$/\1/p' "$BRIG_ROOT/docs/api.md" | jq -c '.error | keys')
    serve_end
    serve --policy "$BRIG_ROOT/tests/clients/policy.yaml"
    post /v1/runs '{"command":["rm","x"]}'
    [ "$(jq -c '.error | keys' <<<"$output")" = "$shown" ]
}

@test "the page has every code there is, and no path that is not there" {
    [ -e "$BRIG_ROOT/src/lib/base/err.h" ] || skip "the sources are not here"
    while read -r status code; do
        grep -q "^| $status | .*\`$code\`" "$BRIG_ROOT/docs/api.md" || {
            echo "$status $code is not on the page" >&2
            return 1
        }
    done < <(sed -n 's/^ *X([A-Z_]*, "\([a-z_]*\)", \([0-9]*\), .*/\2 \1/p' "$BRIG_ROOT/src/lib/base/err.h")
    serve
    TOKEN=$(token)
    api /v1/openapi.json
    jq -r '.paths | keys[]' <<<"$output" | sed 's/{[^}]*}/[^\/]*/g; s/^/^/; s/$/$/' >paths
    while read -r path; do
        printf '%s\n' "$path" | grep -qf paths || {
            echo "$path is not there" >&2
            return 1
        }
    done < <(grep -o '`[A-Z]* /v1/[^`? ]*' "$BRIG_ROOT/docs/api.md" | sed 's/^.* //; s/…//; s/{[^}]*}/x/g')
}
