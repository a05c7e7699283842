#!/usr/bin/env bats
# SPDX-License-Identifier: Apache-2.0
# WebSockets of clients people have, in real sandboxes, with what a sandbox gives them and no option of
# their own: what a rule allows arrives, and the rest ends with the rule's word.

load attack
load ../flow/sandbox
load ../flow/network
load egress-tls
load egress-clients

setup() {
    common_setup
    world_begin
    servers_begin
    policy_of '  clients:' '    binaries: [{path: /usr/bin/node, interpreter: true}, {path: "/usr/bin/python3.*", interpreter: true}]' '    endpoints:' \
        '      - host: public.test' '        port: 8443' '        protocol: websocket' '        rules:' \
        '          - allow: {method: GET, path: "/ws/**"}' \
        '          - allow: {method: WEBSOCKET_TEXT, path: /ws/talk}'
}

teardown() {
    servers_end
    world_end
}

@test "node: an upgrade over https, as the libraries for it do" {
    script='
import https from "node:https";
const talk = (path, text) => new Promise((done, fail) => {
    const ask = https.get({host: "public.test", port: 8443, path, timeout: 60000, headers: {Connection: "Upgrade", Upgrade: "websocket",
        "Sec-WebSocket-Version": 13, "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Extensions": "permessage-deflate; client_max_window_bits"}});
    ask.on("error", fail).on("response", (r) => r.on("data", (d) => done(r.statusCode + " " + d)));
    ask.on("upgrade", (r, socket, early) => {
        let all = early;
        const look = () => all.length >= 2 && all.length >= 2 + all[1] && done([r.statusCode, r.headers["sec-websocket-accept"],
            all[0] & 15, all.subarray((all[0] & 15) === 8 ? 4 : 2, 2 + all[1])].join(" ")) + socket.destroy();
        socket.on("data", (d) => { all = Buffer.concat([all, d]); look(); }).on("error", fail);
        socket.write(Buffer.concat([Buffer.from([0x81, 0x80 | text.length, 0, 0, 0, 0]), Buffer.from(text)]));
        look();
    });
});
console.log(await talk("/ws/talk", "hello"));
console.log(await talk("/ws/listen", "SECRET"));
console.log(await talk("/other", "SECRET"));'
    client /usr/bin/node --input-type=module -e "$script"
    echo "$output"
    cat "$DIR/asked"
    status_is 0
    [ "${lines[0]}" = "101 s3pPLMBiTxaQ9kYGzzhZRbK+xOo= 1 hello" ]
    [ "${lines[1]}" = "101 s3pPLMBiTxaQ9kYGzzhZRbK+xOo= 8 EGRESS_MESSAGE" ]
    [[ "${lines[2]}" == 403*EGRESS_REQUEST* ]]
    grep -q "^ws open /ws/talk extensions=$" "$DIR/asked"
    grep -qF "ws text 1 5 b'hello'" "$DIR/asked"
    not grep -q "SECRET\|/other" "$DIR/asked"
}

@test "node: its own WebSocket, where it has one" {
    flag=
    if [ "$(/usr/bin/node -p 'typeof WebSocket')" != function ]; then
        flag=--experimental-websocket
        /usr/bin/node "$flag" -e 0 2>/dev/null || skip "this node has no WebSocket of its own"
    fi
    script='
const talk = (path, text) => new Promise((done) => {
    const ws = new WebSocket("wss://public.test:8443" + path, ["chat"]);
    const heard = [];
    ws.onopen = () => ws.send(text);
    ws.onmessage = (m) => { heard.push(m.data.length > 100 ? m.data.length : m.data); ws.close(4001, "enough"); };
    ws.onerror = () => done("refused");
    ws.onclose = (e) => done([ws.protocol, ...heard, e.code, e.reason].join(" "));
});
console.log(await talk("/ws/talk", "hello"));
console.log(await talk("/ws/talk", "x".repeat(300000)));
console.log(await talk("/ws/listen", "SECRET"));
console.log(await talk("/other", "SECRET"));'
    client /usr/bin/node $flag --no-warnings --input-type=module -e "$script"
    echo "$output"
    cat "$DIR/asked" | cut -c1-100
    status_is 0
    [ "${lines[0]}" = "chat hello 4001 " ]
    [ "${lines[1]}" = "chat 300000 4001 " ]
    [ "${lines[2]}" = "chat 1008 EGRESS_MESSAGE" ]
    [ "${lines[3]}" = refused ]
    not grep -q "SECRET\|/other" "$DIR/asked"
}

@test "python: over a socket of its own, past the proxy" {
    client /usr/bin/python3 -c "
$(cat "$BATS_TEST_DIRNAME/egress-ws.py")
w = ask('/ws/talk', host='public.test', port=8443, tls=True, past=True)
print(w.send(TEXT, 'hello').hear(), w.send(PING, 'p').hear(), w.send(BINARY, b'SECRET').hear())"
    echo "$output"
    status_is 0
    [ "$output" = "text hello pong p close 1008 EGRESS_MESSAGE" ]
    not grep -q SECRET "$DIR/asked"
}
