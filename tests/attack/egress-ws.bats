#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# WebSockets that egress looks into, between a client and a server that write whatever they like: what
# a rule allows arrives, what it does not ends the connection for its reason, and nothing that is not
# a message of its own slips past.

load attack
load egress
load egress-tls

setup() {
    egress_setup
    export WS="$BATS_TEST_DIRNAME/egress-ws.py"
}

FULL='protocol="websocket",access="full"'
TALK='protocol="websocket",access="read-write"'
LISTEN='protocol="websocket",access="read-only"'

# Inside: python with both ends of a WebSocket, which ends with the script.
talk='talk() { python3 -c "import os
exec(open(os.environ[\"WS\"]).read())
$1"; }
'

@test "messages arrive as they were sent, in both directions, and are counted" {
    run in_world "$(allow "api.test:80,$FULL")" "$talk"'talk "
w = ask(\"/ws/echo\", extra=\"Sec-WebSocket-Extensions: permessage-deflate\r\nSec-WebSocket-Protocol: chat, other\r\n\")
print(\"chat\" in w.head.decode(), \"xtensions\" in w.head.decode())
print(w.send(TEXT, \"hello\").hear(), w.send(BINARY, b\"\\x00\\xff\").hear() == \"binary \\x00\\xff\", w.send(TEXT, \"\").hear())
w.send(TEXT, \"par\", fin=0).send(0, \"ti\", fin=0).send(PING, \"now\").send(0, \"al\")
print(w.hear(), w.hear())
big = \"x\" * 4194304
w.send(TEXT, big)
got = 0
while got < len(big): got += int(w.hear().split()[-1])
print(got)
print(w.send(PING, \"mine\").hear(), w.send(CLOSE, b\"\\x0f\\xa0bye\").hear(), w.hear())
"'
    echo "$output"
    cat "$DIR/log"
    [ "${lines[0]}" = "True False" ]
    [ "${lines[1]}" = "text hello True text" ]
    [ "${lines[2]}" = "pong now text partial" ]
    [ "${lines[3]}" = 4194304 ]
    [ "${lines[4]}" = "pong mine close 4000 end" ]
    grep -q "^ws open /ws/echo extensions=$" "$DIR/log"
    grep -qF "ws text 1 7 b'partial'" "$DIR/log"
    grep -qF "ws ping 1 0 b''" "$DIR/log"
    grep -qF "ws close 1 2 b'\\x0f\\xa0'" "$DIR/log"
    not grep -q unmasked "$DIR/log"
    [ "$(counted '(c["requests"], c["refused"])')" = "(1, 0)" ]
    [ "$(counted 'c["bytes_out"] > 3000000 and c["bytes_in"] > 3000000')" = True ]
}

@test "who may only listen says nothing: no text, no bytes, no words in pings and closes" {
    run in_world "$(allow "api.test:80,$LISTEN" "second.test:80,$TALK")" "$talk"'talk "
print(ask(\"/ws/echo\").send(TEXT, \"SECRET-text\").hear())
print(ask(\"/ws/echo\").send(TEXT, \"SECRET\", fin=0).send(0, \"-part\").hear())
print(ask(\"/ws/echo\").send(BINARY, b\"SECRET-bytes\").hear())
w = ask(\"/ws/echo\").send(PING, \"SECRET-ping\").send(PONG, \"SECRET-pong\")
print(w.hear(), w.send(CLOSE, b\"\\x03\\xe8SECRET-why\").hear())
print(ask(\"/ws/echo\", host=\"second.test\").send(TEXT, \"fine\").hear(), ask(\"/ws/echo\", host=\"second.test\").send(BINARY, b\"SECRET-2\").hear())
"'
    echo "$output"
    [ "${lines[0]}" = "close 1008 EGRESS_MESSAGE" ]
    [ "${lines[1]}" = "close 1008 EGRESS_MESSAGE" ]
    [ "${lines[2]}" = "close 1008 EGRESS_MESSAGE" ]
    [ "${lines[3]}" = "pong SECRET-ping close 1000" ]
    [ "${lines[4]}" = "text fine close 1008 EGRESS_MESSAGE" ]
    not grep -q SECRET "$DIR/log"
    grep -qF "ws close 1 2 b'\\x03\\xe9'" "$DIR/log"
    [ "$(counted 'sorted((r["reason"], r["method"], r["count"]) for r in c["refusals"] if r["host"] == "api.test")')" = \
        "[('EGRESS_MESSAGE', 'WEBSOCKET_BINARY', 1), ('EGRESS_MESSAGE', 'WEBSOCKET_TEXT', 2)]" ]
    grep -h WEBSOCKET_TEXT "$DIR"/state/egress/* | grep -q EGRESS_MESSAGE
}

@test "rules about places, and about operations of GraphQL" {
    rules='rules=[{"allow":{"method":"GET","path":"/ws/*","line":2}},{"allow":{"method":"WEBSOCKET_TEXT","path":"/ws/talk","line":3}}]'
    graphql='rules=[{"allow":{"operation_type":"subscription","fields":["ticks"],"line":2}}]'
    run in_world "$(allow "api.test:80,protocol=\"websocket\",$rules" "second.test:80,protocol=\"websocket\",$graphql" 'www.test:80,protocol="rest",access="full"')" "$talk"'talk "
print(ask(\"/ws/talk\").send(TEXT, \"a\").hear(), ask(\"/ws/other\").send(TEXT, \"a\").hear(), ask(\"/elsewhere\"))
import json
def op(query, type=\"subscribe\"): return ask(\"/ws/g\", host=\"second.test\").send(TEXT, json.dumps({\"type\": type, \"id\": \"1\", \"payload\": {\"query\": query}})).hear()[:40]
print(op(\"subscription {ticks}\")[:22], op(\"mutation {drop}\"), op(\"subscription {ticks}\", \"start\")[:18], op(\"subscription {\"))
print(ask(\"/ws/g\", host=\"second.test\").send(TEXT, \"no json\").hear())
print(ask(\"/ws/g\", host=\"second.test\").send(TEXT, \"{\\\"type\\\":\\\"connection_init\\\"}\").hear())
print(ask(\"/ws/echo\", host=\"www.test\"))
"'
    echo "$output"
    [ "${lines[0]}" = "text a close 1008 EGRESS_MESSAGE 403 EGRESS_REQUEST" ]
    [ "${lines[1]}" = 'text {"type": "subscri close 1008 EGRESS_BODY text {"type": "sta close 1008 EGRESS_BODY_FORM' ]
    [ "${lines[2]}" = "close 1008 EGRESS_MESSAGE" ]
    [ "${lines[3]}" = 'text {"type":"connection_init"}' ]
    [ "${lines[4]}" = "403 EGRESS_UPGRADE" ]
}

@test "frames that are none end it, whoever sent them" {
    python3 - "$DIR/answers" "$WS" <<'P'
import sys
exec(open(sys.argv[2]).read())
def put(name, data): open(sys.argv[1] + "/" + name, "wb").write(data)
put("masked", frame(TEXT, b"x"))
put("rsv", frame(TEXT, b"x", masked=False, rsv=4))
put("utf8", frame(TEXT, b"\xff", masked=False))
put("stray", frame(0, b"x", masked=False))
put("cut-ping", frame(PING, b"x", fin=0, masked=False))
put("code", frame(CLOSE, b"\x03\xed", masked=False))
put("good", frame(TEXT, b"a", fin=0, masked=False) + frame(PING, b"srv", masked=False) + frame(0, b"b", masked=False) + frame(CLOSE, b"\x03\xe8done", masked=False))
P
    run in_world "$(allow "api.test:80,$FULL")" "$talk"'talk "
def raw(data): return ask(\"/ws/echo\").raw(data).hear()
print(raw(frame(TEXT, b\"x\", masked=False)))
print(raw(frame(TEXT, b\"x\", rsv=4)))
print(raw(frame(3, b\"x\")))
print(raw(frame(0, b\"x\")))
print(raw(frame(TEXT, b\"x\", fin=0) + frame(TEXT, b\"y\")))
print(raw(frame(PING, b\"x\" * 126)))
print(raw(frame(PING, b\"x\", fin=0)))
print(raw(frame(TEXT, b\"\\xff\\xfe\")))
print(raw(frame(TEXT, b\"\\xe2\\x82\", fin=0) + frame(0, b\"a\")))
print(raw(frame(CLOSE, b\"\\x03\\xed\")))
print(raw(b\"\\x82\\xff\" + struct.pack(\">Q\", 17 << 20) + b\"mask\"))
print(raw(b\"\\x81\\xff\" + struct.pack(\">Q\", (4 << 20) + 1) + b\"mask\"))
print(raw(frame(BINARY, b\"\", fin=0) + frame(0, b\"\", fin=0) * 4096))
for name in (\"masked\", \"rsv\", \"utf8\", \"stray\", \"cut-ping\", \"code\"): print(name, ask(\"/ws/say/\" + name).hear())
w = ask(\"/ws/say/good\")
print(w.hear(), w.hear(), w.hear(), w.hear())
print(ask(\"/ws/echo\").send(TEXT, \"control\").hear())
"'
    echo "$output"
    for i in 0 1 2 3 4 5 6 9; do [ "${lines[$i]}" = "close 1002 EGRESS_MESSAGE_FRAMING" ]; done
    for i in 7 8; do [ "${lines[$i]}" = "close 1007 EGRESS_MESSAGE_FRAMING" ]; done
    for i in 10 11 12; do [ "${lines[$i]}" = "close 1009 EGRESS_MESSAGE_TOO_LARGE" ]; done
    for i in 13 14 15 16 17 18; do [[ "${lines[$i]}" == *" close 1011 EGRESS_ANSWER_FRAMING" ]]; done
    [ "${lines[19]}" = "text- a ping srv more b close 1000 done" ]
    [ "${lines[20]}" = "text control" ]
    not grep -q "^ws text.*xff" "$DIR/log"
}

@test "an upgrade is what was asked for, or none" {
    run in_world "$(allow "api.test:80,$FULL")" "$talk"'talk "
print(ask(\"/ws/bad/accept\")); print(ask(\"/ws/bad/extension\")); print(ask(\"/ws/bad/protocol\")); print(ask(\"/redirect\"))
KEY = b\"short\"
print(ask(\"/ws/echo\"))
"'
    echo "$output"
    for i in 0 1 2; do [ "${lines[$i]}" = "502 EGRESS_UPGRADE" ]; done
    [ "${lines[3]}" = 302 ]
    [ "${lines[4]}" = "400 EGRESS_UPGRADE" ]
}

@test "budgets and shapes of secrets hold for messages" {
    run in_world "$(allow "api.test:80,$FULL,budget={\"bytes_out\":3000}" "second.test:80,$FULL,secret_shapes=\"deny\"" \
        "www.test:80,$FULL,response={\"max_bytes\":1000}")" "$talk"'talk "
w = ask(\"/ws/echo\")
print(w.send(TEXT, \"x\" * 1500).hear(), w.send(TEXT, \"SECRET\" * 300).hear())
w = ask(\"/ws/echo\", host=\"second.test\")
print(w.send(TEXT, \"hello\").hear(), w.send(TEXT, \"key ghp_\" + \"aB3dE6gH9jK2mN5pQ8rS1tU4vW7xY0zA1bC2\").hear())
w = ask(\"/ws/echo\", host=\"www.test\")
print(w.send(TEXT, \"x\" * 1000).hear(), w.send(TEXT, \"x\" * 1001).hear())
"'
    echo "$output"
    [ "${lines[0]}" = "text 1500 close 1008 EGRESS_BUDGET" ]
    [ "${lines[1]}" = "text hello close 1008 EGRESS_SECRET_SHAPE" ]
    [ "${lines[2]}" = "text 1000 close 1009 EGRESS_RESPONSE_TOO_LARGE" ]
    not grep -q "SECRET\|ghp_" "$DIR/log"
}

@test "memory for messages has a ceiling, and is given back" {
    run in_world "$(allow "api.test:80,$FULL")" "$talk"'talk "
part = b\"x\" * (16 * 1048576 - 65536)
held = [ask(\"/ws/echo\").send(BINARY, part, fin=0).send(PING, \"there\") for i in range(4)]
print([w.hear() for w in held])
print(ask(\"/ws/echo\").send(BINARY, b\"y\" * 1048576, fin=0).hear())
print([w.send(0, b\"\").hear().split()[0] for w in held[:1]])
held[1].s.shutdown(socket.SHUT_RDWR); print(held[1].hear())
for i in range(300):
    said = ask(\"/ws/echo\").send(BINARY, b\"z\" * 1048576).hear()
    if said.startswith(\"binary\"): break
print(said.split()[0])
"'
    echo "$output"
    [ "${lines[0]}" = "['pong there', 'pong there', 'pong there', 'pong there']" ]
    [ "${lines[1]}" = "close 1013 EGRESS_BUSY" ]
    [ "${lines[2]}" = "['binary-']" ]
    # It has hung up itself; whether a reset overtakes the end is nobody's promise.
    [[ "${lines[3]}" == end || "${lines[3]}" == ConnectionResetError ]]
    [ "${lines[4]}" = binary- ]
    [ "$(grep -c "^ws binary" "$DIR/log")" -ge 2 ]
}

@test "a message that never ends is waited for half a minute" {
    WORLD_SECONDS=400
    run in_world "$(allow "api.test:80,$FULL")" "$talk"'talk "
w, other = ask(\"/ws/echo\"), ask(\"/ws/echo\")
w.s.settimeout(150)
w.send(TEXT, \"SECRET\", fin=0)
print(w.hear(), other.send(TEXT, \"still there\").hear())
"'
    echo "$output"
    [ "$output" = "close 1008 EGRESS_MESSAGE_TIMEOUT text still there" ]
    not grep -q SECRET "$DIR/log"
}

@test "one whose rule is gone is closed; one whose rule stays goes on under the new ones" {
    export NARROW="$(allow "api.test:80,$LISTEN" "second.test:80,$FULL,path=\"/ws/keep\"")"
    run in_world "$(allow "api.test:80,$FULL" "second.test:80,$FULL")" "$talk"'talk "
import signal, time
a, b, c = ask(\"/ws/echo\"), ask(\"/ws/keep\", host=\"second.test\"), ask(\"/ws/drop\", host=\"second.test\")
print(a.send(TEXT, \"1\").hear(), b.send(TEXT, \"1\").hear(), c.send(TEXT, \"1\").hear())
dir = os.environ[\"DIR\"]
open(dir + \"/rules.swap\", \"w\").write(os.environ[\"NARROW\"])
os.kill(int(open(dir + \"/box.pid\").read()), signal.SIGUSR1)
print(c.hear())
print(b.send(TEXT, \"2\").hear(), a.send(TEXT, \"SECRET\").hear())
"'
    echo "$output"
    [ "${lines[0]}" = "text 1 text 1 text 1" ]
    [ "${lines[1]}" = "close 1008 EGRESS_RULE_LOST" ]
    [ "${lines[2]}" = "text 2 close 1008 EGRESS_MESSAGE" ]
    not grep -q SECRET "$DIR/log"
}

@test "a placeholder of the vault goes nowhere without one" {
    run in_world "$(allow "api.test:80,$FULL")" "$talk"'talk "
print(ask(\"/ws/echo\").send(TEXT, \"a \\\${vault:KEY}\").hear())
print(ask(\"/ws/echo\").send(TEXT, \"a \\\${vau\", fin=0).send(0, \"lt:KEY}\").hear())
print(ask(\"/ws/echo\").send(BINARY, b\"openshell:resolve:env:KEY\").hear())
"'
    echo "$output"
    [ "$(grep -c "close 1008 VAULT_PLACEHOLDER_MISPLACED" <<<"$output")" -eq 3 ]
    not grep -q "KEY" "$DIR/log"
}

@test "inside TLS the same" {
    tls_setup
    run in_tls_world "$(allow "api.test:443,$TALK" "www.test:443,$LISTEN")" "$talk"'unset SSL_CERT_FILE; talk "
w = ask(\"/ws/echo\", port=443, tls=True)
print(w.send(TEXT, \"hello\").hear(), w.send(PING, \"p\").hear(), w.send(BINARY, b\"SECRET\").hear())
w = ask(\"/ws/echo\", port=443, tls=True)
print(w.send(TEXT, \"y\" * 10000).hear(), w.send(CLOSE).hear(), w.hear())
print(ask(\"/ws/echo\", host=\"www.test\", port=443, tls=True).send(TEXT, \"SECRET\").hear())
"'
    echo "$output"
    [ "${lines[0]}" = "text hello pong p close 1008 EGRESS_MESSAGE" ]
    [ "${lines[1]}" = "text 10000 close end" ]
    [ "${lines[2]}" = "close 1008 EGRESS_MESSAGE" ]
    not grep -q SECRET "$DIR/log"
}
