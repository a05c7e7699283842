#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# H01, H09, H11: a secret that was set is nowhere but sealed: not in files of the state directory, not
# in what Brig prints, logs, counts or records, not in its processes' arguments and environments,
# and not in a sandbox.

load attack
load ../flow/serve

CANARY='cAnary/7f3a+9c51 "Kq%z8w"'

setup() {
    common_setup
    need curl jq python3
    printf '%s' "$CANARY" >canary
    forms >patterns
}

teardown() {
    serve_end
    destroy_all 2>/dev/null || true
}

# Every common form of it, one a line. Of base64 what is the same at each alignment.
forms() {
    python3 - "$CANARY" <<'P'
import base64, json, sys, urllib.parse
c = sys.argv[1]
b = c.encode()
out = [c, json.dumps(c)[1:-1], urllib.parse.quote(c, safe=''), urllib.parse.quote_plus(c), b.hex(), b.hex().upper()]
for skip in range(3):
    for code in (base64.b64encode, base64.urlsafe_b64encode):
        text = code(b'\0' * skip + b).decode().rstrip('=')
        out.append(text[-(-skip * 8 // 6):(skip + len(b)) * 8 // 6])
print('\n'.join(dict.fromkeys(out)))
P
}

# clean FILE…: none of the forms is in any of them.
clean() {
    ! grep -raFlf "$WORK/patterns" "$@" >found 2>/dev/null || {
        echo "the canary is in: $(cat found)" >&2
        return 1
    }
}

@test "the forms are found where they are (control)" {
    mkdir control
    while IFS= read -r form; do
        printf 'xx%sxx' "$form" >control/file
        run clean control
        [ "$status" -eq 1 ]
    done <patterns
    printf 'nothing' >control/file
    clean control
}

@test "set, bound, rotated and listed: the state directory and every output stay clean" {
    mkdir out
    n=0
    say() {
        n=$((n + 1))
        "$BRIG" "$@" >"out/$n.out" 2>"out/$n.err" <canary || true
    }
    for json in '' --json; do
        say vault set KEY $json
        say vault bind KEY --host api.example.org --slot header:authorization --path "/p$n" $json
        say vault rotate KEY $json
        say vault list $json
        say vault show KEY $json
        say vault set 'bad name' $json
        say vault bind KEY --host nowhere --slot nonsense $json
        say vault rotate NONE $json
        say receipts list $json
        say receipts verify $json
    done
    "$BRIG" receipts export --output out/export
    [ "$("$BRIG" vault show KEY --json | jq -r .version)" = 4 ]
    "$BRIG" vault rekey >/dev/null
    clean out "$BRIG_HOME"
    # It is there, sealed: with a changed byte nothing opens.
    [ -s "$BRIG_HOME/vault/secrets" ]
    printf 'x' | dd of="$BRIG_HOME/vault/secrets" bs=1 seek=200 conv=notrunc 2>/dev/null
    run "$BRIG" vault list
    [ "$status" -eq 76 ]
    [[ $output == *"the vault is damaged"* ]]
}

@test "the value cannot be given as an argument, and stands in no process's arguments or environment" {
    run "$BRIG" vault set KEY "$CANARY" </dev/null
    [ "$status" -eq 64 ]
    mkfifo pipe
    "$BRIG" vault set KEY <pipe >set.out 2>&1 3>&- &
    pid=$!
    exec 5>pipe
    printf '%s' "$CANARY" >&5
    cp "/proc/$pid/cmdline" args
    cp "/proc/$pid/environ" env
    exec 5>&-
    wait "$pid"
    clean args env set.out
}

@test "a sandbox knows nothing of it: environment, files, memory of its processes" {
    "$BRIG" vault set KEY <canary >/dev/null
    "$BRIG" vault bind KEY --host api.example.org --slot header:authorization >/dev/null
    "$BRIG" sandbox exec --quiet -- sh -c 'env; cat /proc/*/environ /proc/*/cmdline; find / -xdev -type f -size -64k \
        -path "*vault*" 2>/dev/null; cat /proc/self/maps; dd if=/proc/self/mem bs=4096 count=1 2>/dev/null' >inside 2>&1 || true
    [ -s inside ]
    clean inside
    run ! grep -q "$BRIG_HOME" inside
}

@test "the API takes values and never gives one; logs and counters know nothing" {
    serve
    TOKEN=$(token --scope vault --scope receipts --scope metrics)
    jq -n --rawfile v canary '{value:$v}' >body
    mkdir answers
    i=0
    keep() {
        i=$((i + 1))
        printf '%s' "$output" >"answers/$i"
    }
    api -X PUT --data-binary @body /v1/vault/KEY
    [ "$http" = 200 ]
    keep
    api -X POST --data-binary @body /v1/vault/KEY/rotate
    [ "$http" = 200 ]
    keep
    post /v1/vault/KEY/bindings '{"host":"api.example.org","slot":"header:authorization"}'
    [ "$http" = 201 ]
    keep
    for path in /v1/vault /v1/vault/KEY /v1/receipts /metrics; do
        api $path
        [ "$http" = 200 ]
        keep
    done
    # Refused, with the value in the request.
    api -X PUT --data-binary @body /v1/vault/bad%20name
    [ "$http" = 400 ]
    keep
    api -X POST --data-binary @body /v1/vault/NONE/rotate
    [ "$http" = 404 ]
    keep
    jq -n --rawfile v canary '{value:$v,more:1}' >wrong
    api -X PUT --data-binary @wrong /v1/vault/KEY
    [ "$http" = 400 ]
    keep
    cp "/proc/$DAEMON/cmdline" answers/cmdline
    cp "/proc/$DAEMON/environ" answers/environ
    # Who may not, may not.
    TOKEN=$(token --scope read --scope admin)
    api /v1/vault
    [ "$http" = 403 ]
    serve_end
    clean answers serve.out serve.err "$BRIG_HOME"
}

@test "another tenant has another vault" {
    serve
    TOKEN=$(token --scope vault)
    jq -n --rawfile v canary '{value:$v}' >body
    api -X PUT --data-binary @body /v1/vault/KEY
    [ "$http" = 200 ]
    TOKEN=$(token --scope vault --tenant other)
    api /v1/vault/KEY
    [ "$http" = 404 ]
    api -X PUT --data-binary @body /v1/vault/KEY
    post /v1/vault/KEY/bindings '{"host":"api.example.org","slot":"query:key"}'
    [ "$(printf '%s' "$output" | jq -r '.bindings[0].tenant')" = other ]
    [ "$("$BRIG" vault show KEY --json | jq '.bindings | length')" = 0 ]
}
