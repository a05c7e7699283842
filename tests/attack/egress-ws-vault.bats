#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# H01 to H07 in WebSockets: a placeholder in a message becomes the secret in the slot it is bound to, on
# its way to the server and nowhere else, and what the server says has none of it.

load attack
load ../flow/common
load egress
load egress-tls

CANARY='cAnary7f3a+9c51/Kq8w'

setup() {
    common_setup
    egress_setup
    tls_setup
    export BRIG_HOME=$DIR/state
    export WS="$BATS_TEST_DIRNAME/egress-ws.py"
}

REWRITE='protocol="websocket",access="full",websocket_credential_rewrite=true'
PLAIN='protocol="websocket",access="full"'

talk='unset SSL_CERT_FILE
talk() { python3 -c "import os, json
exec(open(os.environ[\"WS\"]).read())
def to(path, **how): return ask(path, port=443, tls=True, **how)
def say(path, what): return to(path).send(TEXT, what if isinstance(what, str) else json.dumps(what)).hear()
V = chr(36) + \"{vault:KEY}\"
$1"; }
'

in_vault_world() { # RULES SCRIPT
    local user=()
    [ "$(id -u)" -eq 0 ] || user=(-U -r)
    printf '%s' "$1" > "$DIR/rules"
    SERVERS="$BATS_TEST_DIRNAME/egress-tls-servers.py" EGRESS_BIN="$EGRESS_BIN" SCRIPT="$talk$2" \
        SSL_CERT_FILE="$DIR/root.crt" CA="$DIR/state/egress/ca.pem" \
        PROXY=http://127.0.0.1:3128 no_proxy= NO_PROXY= \
        timeout -k 5 "${WORLD_SECONDS:-240}" unshare "${user[@]}" -m -n -p -f --mount-proc bash -c "$egress_world"
}

bound() { # BIND-ARGUMENT…
    [ -e "$DIR/state/vault/secrets" ] || printf '%s' "$CANARY" | "$BRIG" vault set KEY >/dev/null
    "$BRIG" vault bind KEY "$@" >/dev/null
}

# Nowhere on this side.
clean() {
    not grep -rqF "$CANARY" "$DIR/state" && [[ "$output" != *"$CANARY"* ]]
}

@test "in a bound slot of a message it reaches the server, and does not come back" {
    bound --host api.test --slot websocket:/d/token --path '/ws/**'
    run in_vault_world "$(allow "api.test:443,$REWRITE")" 'talk "
w = to(\"/ws/echo\")
print(w.send(TEXT, json.dumps({\"op\": 2, \"d\": {\"token\": V, \"n\": 1}})).hear())
print(w.send(TEXT, json.dumps({\"d\": {\"token\": \"openshell:resolve:env:KEY\"}}), fin=0).send(0, \" \").hear())
print(w.send(TEXT, \"no json\").hear(), w.send(TEXT, \"{}\").hear(), w.send(BINARY, b\"x\").hear(), w.send(PING, \"p\").hear(), w.send(CLOSE).hear())
print(say(\"/ws/split\", {\"d\": {\"token\": V}}))
"'
    echo "$output"
    cat "$DIR/log"
    [ "${lines[0]}" = 'text {"op": 2, "d": {"token": "********************", "n": 1}}' ]
    [ "${lines[1]}" = 'text {"d": {"token": "********************"}}' ]
    [ "${lines[2]}" = "text no json text {} binary x pong p close" ]
    [ "${lines[3]}" = 'text {"d": {"token": "********************"}}' ]
    [ "$(grep -cF "$CANARY" "$DIR/log")" -eq 3 ]
    clean
    [ "$(counted '(c["secrets"], c["scrubbed"])')" = "(3, 3)" ]
    grep -q VAULT_SECRET_REFLECTED "$DIR"/state/egress/*
    "$BRIG" sandbox list >/dev/null
    [ "$("$BRIG" receipts list --json | jq -r '.. | objects | select(.kind? == "secret_use" or .record? == "secret_use") | 1' | wc -l)" -eq 3 ]
}

@test "anywhere else it closes the connection, and the server hears nothing" {
    bound --host api.test --slot websocket:/token --path '/ws/bound'
    run in_vault_world "$(allow "api.test:443,$REWRITE" "www.test:443,$PLAIN")" 'talk "
for what in ({\"other\": V}, {\"token\": \"Bearer \" + V}, {V: 1}, [V], \"say \" + V, V, {\"token\": V, \"b\": V}):
    print(say(\"/ws/bound\", what))
print(\"half\", to(\"/ws/bound\").send(TEXT, \"a \" + V[:5], fin=0).send(0, V[5:]).hear())
print(\"bytes\", to(\"/ws/bound\").send(BINARY, json.dumps({\"token\": V}).encode()).hear())
print(\"path\", say(\"/ws/other\", {\"token\": V}))
print(\"name\", say(\"/ws/bound\", {\"token\": V.replace(\"KEY\", \"OTHER\")}))
print(\"own\", say(\"/ws/bound\", \"{token: mine}\"))
print(\"own\", say(\"/ws/bound\", {\"token\": \"mine\"}))
print(\"host\", to(\"/ws/bound\", host=\"www.test\").send(TEXT, json.dumps({\"token\": V})).hear())
print(\"control\", say(\"/ws/bound\", {\"token\": V}))
"'
    echo "$output"
    [ "$(grep -c 'close 1008 VAULT_\(PLACEHOLDER_MISPLACED\|BODY_UNREADABLE\|NOT_BOUND\|PLACEHOLDER_MALFORMED\)' <<<"${output%%own*}")" -eq 11 ]
    [[ "$output" == *"path close 1008 VAULT_NOT_BOUND"*"name close 1008 VAULT_NOT_BOUND"* ]]
    [ "$(grep -c "own close 1008 VAULT_SECOND_CREDENTIAL" <<<"$output")" -eq 2 ]
    [[ "$output" == *"host close 1008 VAULT_PLACEHOLDER_MISPLACED"* ]]
    [[ "$output" == *'control text {"token": "********************"}'* ]]
    [ "$(grep -cF "$CANARY" "$DIR/log")" -eq 1 ]
    [ "$(grep -c "^ws text" "$DIR/log")" -eq 1 ]
    clean
}

@test "in the head of the upgrade it goes, and is taken out of all that comes back" {
    bound --host api.test --slot header:authorization --path '/ws/**'
    run in_vault_world "$(allow "api.test:443,$PLAIN" "www.test:443,protocol=\"rest\",access=\"full\",websocket_credential_rewrite=true")" 'talk "
w = to(\"/ws/tell\", extra=\"Authorization: Bearer \" + V + \"\r\n\")
print([l for l in w.head.decode().split(\"\r\n\") if \"X-Seen\" in l][0], \"/\", w.hear())
print(w.send(TEXT, \"hello\").hear())
print(to(\"/ws/echo\", extra=\"X-Other: \" + V + \"\r\n\"))
print(to(\"/ws/echo\", host=\"www.test\").send(TEXT, \"rest\").hear())
"'
    echo "$output"
    [ "${lines[0]}" = "X-Seen: Bearer ******************** / text you said Bearer ********************" ]
    [ "${lines[1]}" = "text hello" ]
    [[ "${lines[2]}" == "403 VAULT_"* ]]
    [ "${lines[3]}" = "text rest" ]
    clean
}
