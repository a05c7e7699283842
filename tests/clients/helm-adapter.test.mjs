// SPDX-License-Identifier: Apache-2.0
// The adapter with HELM's shape, each behaviour by itself against answers that are made up. The same
// against the daemon is in helm.test.mjs.

import assert from "node:assert/strict";
import { test } from "node:test";

import Default, { HelmMastraSandbox, HelmSandboxDenyError } from "../../sdk/typescript/dist/helm.js";

const JUDGE = "http://judge:8080";
const BOXES = "http://boxes:3000";

const json = (body, status = 200, headers = {}) =>
  new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json", ...headers } });
const made = (sandboxId = "box-1") => json({ sandboxId });
const ran = (output = "hi\n", more = {}) =>
  json({ output, errors: "", exitCode: 0, timedOut: false, durationMs: 7, ...more });
const call = { id: "c", type: "function", function: { name: "sandbox_exec", arguments: "{}" } };
const completion = (finish_reason, message, headers) =>
  json({ object: "chat.completion", model: "helm-governance", choices: [{ index: 0, finish_reason, message }] }, 200, headers);
const approved = (headers = {}) => completion("tool_calls", { role: "assistant", content: null, tool_calls: [call] }, headers);
const refused = (content = "not here", headers = {}) => completion("stop", { role: "assistant", content }, headers);
const envelope = (status, reason_code = "DENY_POLICY_VIOLATION", message = "no") =>
  json({ error: { message, type: "permission_denied", code: "DENY", reason_code } }, status);

/* An adapter that gets these answers in turn, and what it asked. */
function adapter(answers, config = {}) {
  const calls = [];
  const fetch = async (url, init = {}) => {
    calls.push({ url, method: init.method, headers: init.headers, body: init.body });
    const next = answers.shift();
    if (next === undefined) throw new Error(`nobody expected ${init.method} ${url}`);
    if (next instanceof Error) throw next;
    return next;
  };
  const sandbox = new HelmMastraSandbox({ baseUrl: JUDGE, daytonaApiKey: "key", daytonaUrl: BOXES, fetch, ...config });
  return { sandbox, calls };
}

const denial = (promise) =>
  promise.then(() => assert.fail("it ran"), (error) => {
    assert.ok(error instanceof HelmSandboxDenyError, String(error));
    return error;
  });

test("it is the default export, and takes the platform's fetch when none is given", async (t) => {
  assert.equal(Default, HelmMastraSandbox);
  t.mock.method(globalThis, "fetch", async () => made("from-global"));
  const sandbox = new HelmMastraSandbox({ baseUrl: JUDGE, apiKey: "k" });
  await sandbox.init();
  assert.equal(globalThis.fetch.mock.calls[0].arguments[0], `${JUDGE}/sandbox`); // one daemon does both
});

test("init makes a sandbox with the key, the language and the time", async () => {
  const { sandbox, calls } = adapter([made()]);
  await sandbox.init();
  assert.equal(calls[0].url, `${BOXES}/sandbox`);
  assert.equal(calls[0].method, "POST");
  assert.equal(calls[0].headers.Authorization, "Bearer key");
  assert.deepEqual(JSON.parse(calls[0].body), { language: "python3", timeout: 30 });
  const other = adapter([made()], { defaultLanguage: "node", execTimeout: 5500 });
  await other.sandbox.init();
  assert.deepEqual(JSON.parse(other.calls[0].body), { language: "node", timeout: 5 });
});

test("init that fails says with what", async () => {
  await assert.rejects(adapter([new Response("x", { status: 500 })]).sandbox.init(), /500/);
  await assert.rejects(adapter([json({})]).sandbox.init(), /no sandbox/);
});

test("an approved command is judged first, then run", async () => {
  const { sandbox, calls } = adapter([made("box-7"), approved(), ran("world\n", { errors: "e", exitCode: 3, timedOut: true, durationMs: 9 })]);
  const result = await sandbox.exec({ command: ["echo", "world"], env: { A: "1" }, workDir: "/tmp", timeout: 2900 });
  assert.deepEqual(calls.map((c) => c.url), [`${BOXES}/sandbox`, `${JUDGE}/v1/chat/completions`, `${BOXES}/sandbox/box-7/process/execute`]);
  assert.deepEqual(
    [result.stdout, result.stderr, result.exitCode, result.timedOut, result.durationMs],
    ["world\n", "e", 3, true, 9]);
  assert.deepEqual(JSON.parse(calls[2].body), { command: "echo world", env: { A: "1" }, cwd: "/tmp", timeout: 2 });
  assert.equal(calls[2].headers.Authorization, "Bearer key");
});

test("the judge hears what would run, where, and with what", async () => {
  const { sandbox, calls } = adapter([made("box-8"), approved(), ran()], { apiKey: "judge-key" });
  await sandbox.exec({ command: ["ls", "-la"], env: { B: "2" } });
  const body = JSON.parse(calls[1].body);
  const intent = JSON.parse(body.messages[0].content);
  assert.equal(body.model, "helm-governance");
  assert.equal(body.tools[0].function.name, "sandbox_exec");
  assert.deepEqual(intent, {
    type: "sandbox_exec_intent", provider: "daytona", sandbox_id: "box-8", command: ["ls", "-la"], env: { B: "2" },
  });
  assert.equal(calls[1].headers.Authorization, "Bearer judge-key");
});

test("words are quoted for a backend that has a shell, and only joined for Brig, which compares", async () => {
  const shell = adapter([made(), approved(), ran()]);
  await shell.sandbox.exec({ command: ["echo", "a; echo INJECTED", "it's"] });
  assert.equal(JSON.parse(shell.calls[2].body).command, "echo 'a; echo INJECTED' 'it'\\''s'");
  const brig = adapter([made(), approved(), ran()], { daytonaUrl: JUDGE + "/" });
  await brig.sandbox.exec({ command: ["echo", "a b"] });
  assert.equal(JSON.parse(brig.calls[2].body).command, "echo a b");
});

test("a refusal is an error that says what was refused and why, and reaches no sandbox", async () => {
  const told = [];
  const { sandbox, calls } = adapter([made(), refused("blocked by a rule")], { onDeny: (d) => told.push(d) });
  const error = await denial(sandbox.exec({ command: ["danger"] }));
  assert.equal(error.name, "HelmSandboxDenyError");
  assert.deepEqual(error.denial, { command: ["danger"], reasonCode: "DENY_POLICY_VIOLATION", message: "blocked by a rule" });
  assert.deepEqual(told, [error.denial]);
  assert.equal(calls.length, 2);
  assert.equal(sandbox.getReceipts().length, 0);
});

test("every status that is not an approval is a refusal, also with a call beside it", async () => {
  for (const status of ["DENIED", "PEP_VALIDATION_FAILED", "PENDING", "PROXY_ITERATION_LIMIT", "PROXY_WALLCLOCK_LIMIT", "GOVERNANCE_ERROR", "approved"]) {
    const { sandbox, calls } = adapter([made(), approved({ "X-Helm-Status": status, "X-Helm-Reason-Code": "R" })]);
    assert.equal((await denial(sandbox.exec({ command: ["x"] }))).denial.reasonCode, "R");
    assert.equal(calls.length, 2, status);
  }
});

test("an answer without a call, or without anything, is a refusal", async () => {
  const broken = [json({}), json({ choices: [] }), new Response("not JSON"), completion("tool_calls", {}), completion("tool_calls", { tool_calls: [] }),
    completion("stop", { tool_calls: [call] })];
  for (const answer of broken) await denial(adapter([made(), answer]).sandbox.exec({ command: ["x"] }));
});

test("a judge that fails stops the command; the default is closed", async () => {
  const told = [];
  const api = adapter([made(), envelope(500, "ERROR_INTERNAL", "broken")], { onDeny: (d) => told.push(d) });
  const error = await denial(api.sandbox.exec({ command: ["echo"] }));
  assert.deepEqual([error.denial.reasonCode, error.denial.message, told.length], ["ERROR_INTERNAL", "broken", 1]);
  const network = adapter([made(), new Error("ECONNREFUSED")]);
  await assert.rejects(network.sandbox.exec({ command: ["echo"] }), /ECONNREFUSED/);
  assert.equal(network.calls.length, 2);
  await denial(adapter([made(), new Response("<html>", { status: 502 })]).sandbox.exec({ command: ["echo"] }));
});

test("without failClosed a judge that fails is passed over, and the receipt says so", async () => {
  for (const failure of [envelope(500, "ERROR_X"), new Error("ECONNREFUSED")]) {
    const { sandbox } = adapter([made(), failure, ran("ok")], { failClosed: false });
    const { stdout, receipt } = await sandbox.exec({ command: ["echo", "ok"] });
    assert.equal(stdout, "ok");
    assert.equal(receipt.receipt.status, "PENDING");
    assert.equal(receipt.receipt.principal, "helm-fail-open");
    assert.equal(receipt.receipt.reason_code, failure instanceof Error ? "ERROR_INTERNAL" : "ERROR_X");
  }
});

test("without failClosed a refusal is still a refusal", async () => {
  for (const answer of [refused(), envelope(403), envelope(401), envelope(400)]) {
    const { sandbox, calls } = adapter([made(), answer], { failClosed: false });
    await denial(sandbox.exec({ command: ["x"] }));
    assert.equal(calls.length, 2);
  }
});

test("a backend that runs only what was approved refuses with its own reason", async () => {
  const told = [];
  const { sandbox } = adapter([made(), approved(), envelope(403, "NOT_APPROVED", "another command")], { onDeny: (d) => told.push(d) });
  const error = await denial(sandbox.exec({ command: ["x"] }));
  assert.equal(error.denial.reasonCode, "NOT_APPROVED");
  assert.equal(told.length, 1);
  await assert.rejects(adapter([made(), approved(), new Response("", { status: 500 })]).sandbox.exec({ command: ["x"] }), /500/);
});

test("a receipt has the judge's words, and hashes that are the same for the same", async () => {
  const headers = {
    "X-Helm-Status": "APPROVED", "X-Helm-Receipt-ID": "r1", "X-Helm-Decision-ID": "d1", "X-Helm-ProofGraph-Node": "n1",
    "X-Helm-Signature": "s1", "X-Helm-Output-Hash": "sha256:o", "X-Helm-Lamport-Clock": "41", "X-Helm-Reason-Code": "POLICY_ALLOW",
  };
  const { sandbox } = adapter([made(), approved(headers), ran("a"), approved(), ran("a"), approved(), ran("b")]);
  const first = (await sandbox.exec({ command: ["echo", "x"], env: { A: "1", B: "2" } })).receipt;
  const second = (await sandbox.exec({ env: { B: "2", A: "1" }, command: ["echo", "x"] })).receipt;
  const third = (await sandbox.exec({ command: ["echo", "y"] })).receipt;
  for (const hash of [first.requestHash, first.outputHash]) assert.match(hash, /^sha256:[a-f0-9]{64}$/);
  assert.equal(first.requestHash, second.requestHash);
  assert.equal(first.outputHash, second.outputHash);
  assert.notEqual(first.requestHash, third.requestHash);
  assert.notEqual(first.outputHash, third.outputHash);
  const { timestamp, ...rest } = first.receipt;
  assert.ok(!Number.isNaN(Date.parse(timestamp)));
  assert.deepEqual(rest, {
    receipt_id: "r1", decision_id: "d1", effect_id: "n1", status: "APPROVED", reason_code: "POLICY_ALLOW", output_hash: "sha256:o",
    blob_hash: "", prev_hash: "", lamport_clock: 41, signature: "s1", principal: "helm-kernel",
  });
  assert.deepEqual([second.receipt.lamport_clock, third.receipt.lamport_clock], [42, 43]); // it never falls back
  assert.equal(second.receipt.reason_code, "ALLOW");
  assert.deepEqual([first.command, first.exitCode], [["echo", "x"], 0]);
});

test("receipts are collected, told, counted from zero, and cleared", async () => {
  const told = [];
  const answers = () => [made(), approved(), ran(), approved(), ran()];
  const { sandbox } = adapter(answers(), { onReceipt: (r) => told.push(r) });
  await sandbox.exec({ command: ["one"] });
  await sandbox.exec({ command: ["two"] });
  assert.equal(sandbox.getReceipts().length, 2);
  assert.deepEqual(sandbox.getReceipts().map((r) => r.receipt.lamport_clock), [0, 1]);
  assert.deepEqual(told, [...sandbox.getReceipts()]);
  sandbox.clearReceipts();
  assert.equal(sandbox.getReceipts().length, 0);
  const silent = adapter(answers(), { collectReceipts: false, onReceipt: (r) => told.push(r) });
  await silent.sandbox.exec({ command: ["one"] });
  assert.equal(silent.sandbox.getReceipts().length, 0);
  assert.equal(told.length, 3);
});

test("the first commands make one sandbox, also when they come together", async () => {
  const calls = [];
  const fetch = async (url, init) => {
    calls.push(url);
    if (url === `${BOXES}/sandbox`) return made("shared");
    return url.includes("completions") ? approved() : ran();
  };
  const sandbox = new HelmMastraSandbox({ baseUrl: JUDGE, daytonaUrl: BOXES, fetch });
  await Promise.all([1, 2, 3].map((n) => sandbox.exec({ command: ["echo", String(n)] })));
  assert.equal(calls.filter((url) => url === `${BOXES}/sandbox`).length, 1);
});

test("destroy ends the sandbox once; without one it does nothing; the next command makes another", async () => {
  const { sandbox, calls } = adapter([made("box-9"), new Response(null, { status: 204 }), made("box-10"), approved(), ran()]);
  await sandbox.destroy();
  assert.equal(calls.length, 0);
  await sandbox.init();
  await sandbox.destroy();
  assert.deepEqual([calls[1].url, calls[1].method], [`${BOXES}/sandbox/box-9`, "DELETE"]);
  await sandbox.destroy();
  assert.equal(calls.length, 2);
  await sandbox.exec({ command: ["x"] });
  assert.match(calls[4].url, /box-10/);
});

test("files are written and read by path, and failures say their status", async () => {
  const { sandbox, calls } = adapter([made("fs"), new Response(null, { status: 200 }), new Response("content")]);
  await sandbox.writeFile("/app/a b.py", 'print("x")');
  assert.equal(calls[1].url, `${BOXES}/sandbox/fs/filesystem?path=%2Fapp%2Fa%20b.py`);
  assert.deepEqual([calls[1].method, calls[1].body], ["PUT", 'print("x")']);
  assert.equal(await sandbox.readFile("/app/out.txt"), "content");
  assert.equal(calls[2].url, `${BOXES}/sandbox/fs/filesystem?path=%2Fapp%2Fout.txt`);
  assert.equal(calls[2].method, "GET");
  await assert.rejects(adapter([made(), new Response("", { status: 500 })]).sandbox.writeFile("/bad", "x"), /500/);
  await assert.rejects(adapter([made(), new Response("", { status: 404 })]).sandbox.readFile("/missing"), /404/);
});

test("as a Workspace's sandbox it judges texts as what they are", async () => {
  const { sandbox, calls } = adapter([made(), approved(), ran("out"), approved(), ran("out")]);
  assert.equal(sandbox.status, "pending");
  await sandbox.start();
  assert.equal(sandbox.status, "running");
  let seen = "";
  const result = await sandbox.executeCommand("npm test | tee log", [], { onStdout: (t) => (seen += t), env: { A: "1", B: undefined }, cwd: "/tmp" });
  assert.deepEqual([result.success, result.stdout, seen], [true, "out", "out"]);
  const intent = (n) => JSON.parse(JSON.parse(calls[n].body).messages[0].content);
  assert.deepEqual(intent(1).command, ["sh", "-c", "npm test | tee log"]);
  assert.deepEqual(intent(1).env, { A: "1" });
  await sandbox.executeCommand("npm", ["run", "a b"]);
  assert.deepEqual(intent(3).command, ["npm", "run", "a b"]);
  assert.equal(sandbox.getInfo().status, "running");
  await assert.rejects(sandbox.writeFiles([{ path: "/x", content: "", mode: 0o600 }]), /mode/);
});
