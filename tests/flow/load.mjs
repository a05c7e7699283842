// SPDX-License-Identifier: Apache-2.0
// load.mjs PORT TOKEN PID WHAT N: many requests at once, and what became of each.
//
//   once      N commands in sandboxes of their own, all asked for before the first answer is read
//   kept      N sandboxes: created, a command streamed, destroyed; the time is create to first output
//   slow      N clients that send a request a byte at a time and never end it
//   stream    one command that writes N bytes, as events
//
// Meanwhile /healthz is asked every 20 ms on a connection of its own. Prints one JSON object; ends
// with 1 when an answer was neither right nor a typed error, or a command ran another number of times
// than it was answered for.
import net from "node:net";
import http from "node:http";
import fs from "node:fs";

const [port, token, pid, what] = [Number(process.argv[2]), process.argv[3], process.argv[4], process.argv[5]];
const n = Number(process.argv[6]);
const auth = { authorization: `Bearer ${token}`, "content-type": "application/json" };
const now = () => Number(process.hrtime.bigint() / 1000n) / 1000;
const rank = (list, share) => list[Math.min(list.length - 1, Math.floor(list.length * share))] ?? null;
const rssKiB = () => Number(/VmRSS:\s+(\d+)/.exec(fs.readFileSync(`/proc/${pid}/status`, "utf8"))[1]);

const agent = new http.Agent({ keepAlive: false, maxSockets: Infinity });

function ask(method, path, body, extra = {}) {
    return new Promise((resolve, reject) => {
        const request = http.request({ host: "127.0.0.1", port, method, path, agent, headers: { ...auth, ...extra } }, (answer) => {
            const pieces = [];
            let first = 0;
            answer.on("data", (piece) => {
                first ||= now();
                pieces.push(piece);
            });
            answer.on("end", () => resolve({ status: answer.statusCode, text: Buffer.concat(pieces).toString(), first }));
            answer.on("error", reject);
        });
        request.on("error", reject);
        request.end(body);
    });
}

// ---- health, while the rest goes on ----

const health = [];
let peak = rssKiB(), watching = true;
const before = peak;
async function watchHealth() {
    const own = new http.Agent({ keepAlive: true, maxSockets: 1 });
    while (watching) {
        const began = now();
        await new Promise((resolve) => {
            const request = http.get({ host: "127.0.0.1", port, path: "/healthz", agent: own, headers: auth }, (answer) => {
                answer.resume();
                answer.on("end", resolve);
            });
            request.on("error", resolve);
        });
        health.push(now() - began);
        peak = Math.max(peak, rssKiB());
        await new Promise((resolve) => setTimeout(resolve, 20));
    }
    own.destroy();
}

// ---- what is asked ----

const answered = { done: 0, refused: {}, wrong: 0, lost: 0 };
const times = [];

function isTyped(text) {
    try {
        const error = JSON.parse(text).error;
        return typeof error.code === "string" && typeof error.message === "string" ? error.code : null;
    } catch {
        return null;
    }
}

function note(status, text, isRight) {
    if (status === 200 || status === 201) {
        isRight(text) ? answered.done++ : answered.wrong++;
        return;
    }
    const code = isTyped(text);
    code ? (answered.refused[code] = (answered.refused[code] ?? 0) + 1) : answered.wrong++;
}

async function once(i) {
    const word = `word-${i}-${process.pid}`;
    const began = now();
    try {
        const { status, text } = await ask("POST", "/v1/runs", JSON.stringify({ command: ["echo", word] }), { "idempotency-key": word });
        note(status, text, (body) => JSON.parse(body).stdout === `${word}\n`);
        times.push(now() - began);
    } catch (error) {
        answered.lost++; // closed without an answer
    }
}

async function kept(i) {
    const began = now();
    try {
        const made = await ask("POST", "/v1/sandboxes", "{}");
        if (made.status !== 201) return note(made.status, made.text, () => false);
        const id = JSON.parse(made.text).sandbox_id;
        const ran = await ask("POST", `/v1/sandboxes/${id}/exec`, JSON.stringify({ command: ["echo", `hi ${i}`] }), { accept: "application/x-ndjson" });
        note(ran.status, ran.text, (body) => body.includes(`hi ${i}`));
        times.push(ran.first - began);
        await ask("DELETE", `/v1/sandboxes/${id}`);
    } catch (error) {
        answered.lost++;
    }
}

function slow() {
    return new Promise((resolve) => {
        const text = `POST /v1/runs HTTP/1.1\r\nHost: localhost\r\nX-A: ${"a".repeat(4000)}`;
        let at = 0;
        const socket = net.connect(port, "127.0.0.1");
        const timer = setInterval(() => (at < text.length ? socket.write(text[at++]) : 0), 200);
        socket.on("error", () => {});
        socket.on("close", () => {
            clearInterval(timer);
            answered.done++; // shown out, as it should be
            resolve();
        });
    });
}

async function stream() {
    const began = now();
    let bytes = 0;
    await new Promise((resolve, reject) => {
        const request = http.request({ host: "127.0.0.1", port, method: "POST", path: "/v1/runs", agent, headers: { ...auth, accept: "application/x-ndjson" } }, (answer) => {
            answer.on("data", (piece) => (bytes += piece.length));
            answer.on("end", resolve);
            answer.on("error", reject);
        });
        request.on("error", reject);
        request.end(JSON.stringify({ command: ["sh", "-c", `yes 0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde | head -c ${n}`], sandbox: { limits: { wall_ms: 600000 } } }));
    });
    times.push(now() - began);
    bytes >= n ? answered.done++ : answered.wrong++;
}

const watched = watchHealth();
const began = now();
if (what === "stream") await stream();
else await Promise.all(Array.from({ length: n }, (_, i) => ({ once, kept, slow })[what](i)));
const took = now() - began;
watching = false;
await watched;
times.sort((a, b) => a - b);
health.sort((a, b) => a - b);
const round = (ms) => (ms === null ? null : Math.round(ms * 10) / 10);
console.log(JSON.stringify({
    what, n, ...answered, seconds: round(took / 1000),
    p50_ms: round(rank(times, 0.5)), p99_ms: round(rank(times, 0.99)), most_ms: round(times.at(-1) ?? null),
    health_n: health.length, health_p50_ms: round(rank(health, 0.5)), health_p99_ms: round(rank(health, 0.99)), health_most_ms: round(health.at(-1)),
    rss_before_mib: round(before / 1024), rss_peak_mib: round(peak / 1024),
}));
process.exit(answered.wrong ? 1 : 0);
