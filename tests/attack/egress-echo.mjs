// SPDX-License-Identifier: Apache-2.0
// An HTTP/2 server that says in one stream what it heard in another: egress-echo.mjs DIR ADDRESS PORT,
// with good.crt and good.key in DIR. What it was sent as authorization is in DIR/heard.
//
//     /key     takes it
//     /slow    begins to answer, and ends with what comes as /key meanwhile, byte by byte
//     /coded   the same, compressed
//     /late    answers, head and all, only when something came; compressed
//     /hints   has it in a head before its answer, in names and values of the answer's, in trailers
import { appendFileSync, readFileSync } from "node:fs";
import { createSecureServer } from "node:http2";
import { gzipSync } from "node:zlib";

const [dir, address, port] = process.argv.slice(2);
const server = createSecureServer({ cert: readFileSync(`${dir}/good.crt`), key: readFileSync(`${dir}/good.key`) });
let waiting = [];

const answers = {
    "/key": (stream, auth) => {
        appendFileSync(`${dir}/heard`, `${auth}\n`);
        stream.respond({ ":status": 200 });
        stream.end("taken\n");
        for (const go of waiting) go(auth);
        waiting = [];
    },
    "/slow": (stream) => {
        stream.respond({ ":status": 200 });
        stream.write("begun\n");
        waiting.push(async (auth) => {
            for (const letter of `heard ${auth}\n`) await new Promise((done) => stream.write(letter, done));
            stream.end();
        });
    },
    "/coded": (stream) => {
        stream.respond({ ":status": 200, "content-encoding": "gzip" });
        stream.write(gzipSync("begun\n"));
        waiting.push((auth) => stream.end(gzipSync(`heard ${auth}\n`)));
    },
    "/late": (stream) => {
        waiting.push((auth) => {
            stream.respond({ ":status": 200, "content-encoding": "gzip" });
            stream.end(gzipSync(`heard ${auth}\n`));
        });
    },
    "/hints": (stream, auth) => {
        const word = auth.split(" ")[1];
        stream.additionalHeaders({ ":status": 103, link: `<${word}>` });
        stream.respond({ ":status": 200, "x-value": word, [`x-${word}`]: "name" }, { waitForTrailers: true });
        stream.on("wantTrailers", () => stream.sendTrailers({ "x-trailer": word }));
        stream.end("hinted\n");
    },
};
server.on("stream", (stream, headers) => {
    stream.on("error", () => {});
    answers[headers[":path"]](stream, headers.authorization ?? "");
});
server.on("sessionError", () => {});
server.listen(Number(port), address);
