// SPDX-License-Identifier: Apache-2.0
// leave.mjs PORT TOKEN: asks for a command whose output is streamed, and closes the connection at a
// different point each time: within the request, and after so many bytes of the answer.
import net from "node:net";

const [port, token] = [Number(process.argv[2]), process.argv[3]];
const body = JSON.stringify({ command: ["sh", "-c", "for i in 1 2 3 4 5 6 7 8; do echo line $i; sleep 0.02; done"] });
const request = `POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${token}\r\nAccept: application/x-ndjson\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

// sent: how much of the request; read: then how much of the answer before the end.
function leave(sent, read, harsh) {
    return new Promise((resolve) => {
        const socket = net.connect(port, "127.0.0.1");
        let got = 0;
        const go = () => (harsh ? socket.resetAndDestroy() : socket.destroy());
        socket.on("connect", () => socket.write(request.slice(0, sent), () => read === 0 && setTimeout(go, 5)));
        socket.on("data", (piece) => {
            got += piece.length;
            if (read && got >= read) go();
        });
        socket.on("error", () => {});
        socket.on("close", resolve);
    });
}

const leavings = [];
for (let sent = 0; sent < request.length; sent += 29) leavings.push(leave(sent, 0, sent % 2));
for (let read = 1; read < 900; read += 45) leavings.push(leave(request.length, read, read % 2));
await Promise.all(leavings);
