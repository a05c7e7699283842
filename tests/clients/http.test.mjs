// SPDX-License-Identifier: Apache-2.0
// The daemon as anybody meets it: curl, and Node's fetch.

import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";

const { TEST_SOCKET, TEST_TOKEN, TEST_URL } = process.env;
const AUTH = ["-H", `Authorization: Bearer ${TEST_TOKEN}`];
const curl = (...args) => execFileSync("curl", ["-sS", "--fail-with-body", "--max-time", "60", ...args], { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
const api = (path, init = {}) =>
  fetch(TEST_URL + path, { ...init, headers: { authorization: `Bearer ${TEST_TOKEN}`, ...init.headers } });
const post = (path, body, init = {}) => api(path, { method: "POST", body: JSON.stringify(body), ...init });

test("curl: makes, runs, streams, uploads, downloads and ends", () => {
  const id = JSON.parse(curl(...AUTH, `${TEST_URL}/v1/sandboxes`, "-d", "{}")).sandbox_id;
  const at = `${TEST_URL}/v1/sandboxes/${id}`;
  assert.equal(JSON.parse(curl(...AUTH, `${at}/exec`, "--json", '{"command":["echo","by curl"]}')).stdout, "by curl\n");
  const events = curl(...AUTH, "-N", "-H", "Accept: text/event-stream", `${at}/exec`, "-d", '{"command":["seq","3"]}');
  assert.match(events, /^event: stdout\n/m);
  assert.match(events, /"exit_code":0/);
  const data = randomBytes(2_000_000);
  writeFileSync("data", data);
  const hash = JSON.parse(curl(...AUTH, "-T", "data", `${at}/files?path=/sandbox/tmp/data`)).hash;
  assert.equal(hash, `sha256:${createHash("sha256").update(data).digest("hex")}`);
  curl(...AUTH, "-o", "back", `${at}/files?path=/sandbox/tmp/data`);
  assert.ok(readFileSync("back").equals(data));
  // Chunked, without a length; and compressed, which a body that is handed on must not be.
  curl(...AUTH, "-H", "Transfer-Encoding: chunked", "-X", "PUT", "--data-binary", "@data", `${at}/files?path=/sandbox/tmp/chunked`);
  assert.equal(JSON.parse(curl(...AUTH, `${at}/files/stat?path=/sandbox/tmp/chunked`)).size, data.length);
  assert.equal(JSON.parse(curl(...AUTH, "-X", "DELETE", at)).done, true);
});

test("curl: the owner's unix socket, keep-alive, HEAD, and errors with their status", () => {
  assert.equal(JSON.parse(curl("--unix-socket", TEST_SOCKET, "http://brig/v1/whoami")).tenant, "default");
  const who = `${TEST_URL}/v1/whoami`;
  const opened = curl(...AUTH, "-o", "/dev/null", "-o", "/dev/null", "-o", "/dev/null", "-w", "%{num_connects} ", who, who, who);
  assert.equal(opened.trim(), "1 0 0");
  assert.match(curl(...AUTH, "-I", `${TEST_URL}/v1/whoami`), /^HTTP\/1\.1 200 /);
  assert.throws(() => curl(`${TEST_URL}/v1/whoami`), (error) => error.status === 22 && JSON.parse(error.stdout).error.code === "forbidden");
});

test("fetch: bodies, statuses and headers are those of the description", async () => {
  const ran = await post("/v1/runs", { command: ["sh", "-c", "cat; exit 5"], stdin: "in" });
  assert.equal(ran.status, 200);
  assert.equal(ran.headers.get("content-type"), "application/json");
  assert.equal(ran.headers.get("cache-control"), "no-store");
  assert.ok(ran.headers.get("x-request-id"));
  const { exit_code, stdout } = await ran.json();
  assert.deepEqual([exit_code, stdout], [5, "in"]);
  const bad = await post("/v1/runs", { command: "ls" });
  assert.equal(bad.status, 400);
  const { error } = await bad.json();
  assert.deepEqual([error.type, error.code, error.reason_code], ["invalid_request", "invalid", "REQUEST_INVALID"]);
  assert.equal((await api("/v1/nowhere")).status, 404);
  assert.equal((await api("/v1/sandboxes", { method: "PUT" })).status, 405);
});

test("fetch: a stream comes as it is spoken, and leaving it ends the command", async () => {
  const { sandbox_id } = await (await post("/v1/sandboxes", {})).json();
  const leave = new AbortController();
  const answer = await post(`/v1/sandboxes/${sandbox_id}/exec`, { command: ["sh", "-c", "echo now; sleep 300"] },
    { headers: { accept: "application/x-ndjson" }, signal: leave.signal });
  let text = "";
  for await (const piece of answer.body) {
    text += Buffer.from(piece);
    if (text.includes("now")) break;
  }
  leave.abort();
  let processes;
  while (processes !== 1) ({ processes } = await (await api(`/v1/sandboxes/${sandbox_id}`)).json());
  await api(`/v1/sandboxes/${sandbox_id}`, { method: "DELETE" });
});

test("fetch: an upload as a stream, a download as one, and a form of many requests at once", async () => {
  const { sandbox_id } = await (await post("/v1/sandboxes", {})).json();
  const at = `/v1/sandboxes/${sandbox_id}/files?path=/sandbox/tmp/`;
  const body = new ReadableStream({
    start(controller) {
      for (let i = 0; i < 100; i++) controller.enqueue(new Uint8Array(10_000).fill(i));
      controller.close();
    },
  });
  const put = await api(`${at}streamed`, { method: "PUT", body, duplex: "half" });
  assert.equal((await put.json()).bytes, 1_000_000);
  assert.equal((await (await api(`${at}streamed`)).arrayBuffer()).byteLength, 1_000_000);
  const many = await Promise.all(Array.from({ length: 40 }, async (_, i) => {
    const answer = await post(`/v1/sandboxes/${sandbox_id}/exec`, { command: ["echo", String(i)] });
    return (await answer.json()).stdout;
  }));
  assert.deepEqual(many, Array.from({ length: 40 }, (_, i) => `${i}\n`));
  await api(`/v1/sandboxes/${sandbox_id}`, { method: "DELETE" });
});

test("curl: who hangs up during an upload leaves nothing", async () => {
  const { sandbox_id } = await (await post("/v1/sandboxes", {})).json();
  const at = `${TEST_URL}/v1/sandboxes/${sandbox_id}/files?path=/sandbox/tmp/half`;
  const upload = spawn("curl", ["-sS", ...AUTH, "-T", "-", at], { stdio: ["pipe", "ignore", "ignore"] });
  upload.stdin.write(Buffer.alloc(300_000));
  await new Promise((resolve) => setTimeout(resolve, 200));
  upload.kill("SIGKILL");
  upload.stdin.on("error", () => undefined);
  let left = 1;
  while (left) left = (await (await api(`/v1/sandboxes/${sandbox_id}/files/list?path=/sandbox/tmp`)).json()).entries.length;
  await api(`/v1/sandboxes/${sandbox_id}`, { method: "DELETE" });
});
