// SPDX-License-Identifier: Apache-2.0
// socket-client.cjs PORT TOKEN PATH FIRST [EVENT:TEXT MESSAGE]...: a WebSocket whose first message
// is FIRST. Prints every event as a line, and the close. For each pair, the first event EVENT whose
// data has TEXT in it is answered with MESSAGE; one that begins with = is sent as bytes.
const crypto = require("crypto");
const net = require("net");

const [port, token, path, first, ...rest] = process.argv.slice(2);
const rules = [];
for (let i = 0; i < rest.length; i += 2) {
    const [event, text] = rest[i].split(":");
    rules.push({ event, text, message: rest[i + 1] });
}

const socket = net.connect(Number(port), "127.0.0.1");
let got = Buffer.alloc(0);
let open = false;

function send(message) {
    const bytes = message.startsWith("=") ? Buffer.from(message.slice(1)) : Buffer.from(message);
    const opcode = message.startsWith("=") ? 2 : 1;
    const mask = crypto.randomBytes(4);
    const head = bytes.length < 126
        ? Buffer.from([128 | opcode, 128 | bytes.length])
        : Buffer.from([128 | opcode, 254, bytes.length >> 8, bytes.length & 255]);
    socket.write(Buffer.concat([head, mask, bytes.map((byte, i) => byte ^ mask[i & 3])]));
}

function onEvent(event) {
    console.log(JSON.stringify(event));
    for (const rule of rules)
        if (!rule.done && rule.event === event.event && (event.data || "").includes(rule.text)) {
            rule.done = true;
            send(rule.message);
        }
}

function onFrame(opcode, payload) {
    if (opcode === 1)
        onEvent(JSON.parse(payload));
    if (opcode === 8) {
        console.log(`closed ${payload.readUInt16BE(0)} ${payload.subarray(2)}`);
        socket.end();
    }
}

// One frame at the start of what came, or nothing yet.
function takeFrame() {
    if (got.length < 2)
        return false;
    let size = got[1] & 127;
    let at = 2;
    if (size === 126) {
        if (got.length < 4)
            return false;
        size = got.readUInt16BE(2);
        at = 4;
    }
    if (got.length < at + size)
        return false;
    const opcode = got[0] & 15;
    const payload = got.subarray(at, at + size);
    got = got.subarray(at + size);
    onFrame(opcode, payload);
    return true;
}

socket.on("connect", () => socket.write([
    `GET ${path} HTTP/1.1`, "Host: localhost", `Authorization: Bearer ${token}`, "Connection: Upgrade",
    "Upgrade: websocket", "Sec-WebSocket-Version: 13",
    `Sec-WebSocket-Key: ${crypto.randomBytes(16).toString("base64")}`, "", ""].join("\r\n")));
socket.on("data", (bytes) => {
    got = Buffer.concat([got, bytes]);
    if (!open) {
        const end = got.indexOf("\r\n\r\n");
        if (end < 0)
            return;
        console.log(got.toString().split("\r\n")[0]);
        open = true;
        got = got.subarray(end + 4);
        send(first);
    }
    while (takeFrame());
});
