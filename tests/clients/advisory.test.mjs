// SPDX-License-Identifier: Apache-2.0
// The library in advisory mode: from the first turn to a release two custodians signed, and what is wrong on the way.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { generateKeyPairSync, sign } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import http from "node:http";
import { test } from "node:test";

import * as sdk from "../../sdk/typescript/dist/index.js";

const { Brig } = sdk;
const { BRIG, BRIG_HOME, TEST_SOCKET, TEST_STRICT_TOKEN, TEST_TOKEN, TEST_URL } = process.env;
const brig = (...args) => execFileSync(BRIG, args, { encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });

const admin = new Brig({ baseUrl: TEST_URL, token: TEST_TOKEN });
const as = async (principal, ...scopes) =>
  new Brig({ baseUrl: TEST_URL, token: (await admin.tokens.create({ principal, scopes })).token });
const harness = await as("harness", "read", "run");
const person = await as("person", "read", "approve", "receipts");

/* Custodians whose keys Brig has never seen; anna, who lets them in, is its own. */
const keys = {};
writeFileSync("anna.pass", "a long passphrase of anna\n", { mode: 0o600 });
brig("approvals", "enroll", "anna", "--passphrase-file", "anna.pass");
for (const name of ["ben", "carol"]) {
  const { publicKey, privateKey } = generateKeyPairSync("ed25519");
  const hex = publicKey.export({ type: "spki", format: "der" }).subarray(-32).toString("hex");
  brig("approvals", "enroll", name, "--public-key", hex, "--by", "anna", "--by-passphrase-file", "anna.pass");
  keys[name] = privateKey;
}
const signature = (name, preimage) => sign(null, preimage, keys[name]).toString("hex");
const confirmed = async (name, action, more = {}) => ({
  custodian: name,
  digest: action.digest,
  human_confirmed: true,
  signature: signature(name, await sdk.advisoryPreimage("confirm", action.request_id, action.digest)),
  ...more,
});
/* Who signs was a custodian before the first run began, by the second. */
const enrolled = Math.floor(Date.now() / 1000);
while (Math.floor(Date.now() / 1000) <= enrolled) await new Promise((resolve) => setTimeout(resolve, 50));

const envelope = (client_view, facts = []) => ({
  epistemic: { facts, hypotheses: [], assumptions: [] },
  advisory: {},
  sandbox: { actions_permitted: false, reason: "Helix aligned sandbox mode" },
  client_view,
});
const begin = (agent_id, more = {}) =>
  harness.advisory.sessions.begin({ agent_id, agent_version: "model-7", constitution: "Advise; do nothing.", ...more });
const create = (name, content = "hello") =>
  ({ type: "filesystem", operation: "create", target: `/sandbox/output/${name}`, risk: "reversible", content });

async function collect(iterable) {
  const all = [];
  for await (const each of iterable) all.push(each);
  return all;
}

async function server(t, onRequest) {
  const it = http.createServer(onRequest).listen(0, "127.0.0.1");
  await new Promise((resolve) => it.once("listening", resolve));
  t.after(() => {
    it.closeAllConnections();
    it.close();
  });
  return `http://127.0.0.1:${it.address().port}`;
}

test("what a command, a path, an output and an action are, over every way", async () => {
  for (const client of [admin, new Brig({ baseUrl: TEST_URL, token: TEST_TOKEN, fetch }), new Brig({ socketPath: TEST_SOCKET })]) {
    const removed = await client.advisory.check("command", "rm -rf /etc");
    assert.deepEqual([removed.verdict, removed.exit_code, removed.rule], ["advisory", 10, "banned.rm"]);
    assert.deepEqual(removed.category, ["unsafe_command", "attempted_shell_execution"]);
    assert.deepEqual(removed.findings[0].span, removed.span);
    assert.equal((await client.advisory.check("command", "podman ps")).rule, "alias.docker");
    assert.equal((await client.advisory.check("command", "podman ps", { profile: "strict-seed" })).verdict, "allow");
    assert.equal((await client.advisory.check("path", "x", { cwd: "/sandbox/output", access: "create" })).verdict, "gate");
    assert.equal((await client.advisory.check("path", "../x")).rule, "R2.parent");
    const said = await client.advisory.check("output", JSON.stringify(envelope("All is well.")));
    assert.deepEqual([said.valid, said.compliance, said.client_view], [true, 100, "All is well."]);
    const none = await client.advisory.check("action", '{"type":"filesystem"}');
    assert.deepEqual([none.valid, none.exit_code, none.position.line], [false, 14, 1]);
    const bytes = await client.advisory.check("command", new Uint8Array([0x72, 0x6d, 0x20, 0xff]));
    assert.deepEqual([bytes.verdict, bytes.rule], ["advisory", "unparseable"]);
  }
  await assert.rejects(harness.advisory.check("command", "ls", { profile: "other" }), sdk.InvalidError);
  await assert.rejects(harness.advisory.check("speech", "ls"), sdk.InvalidError);
});

test("a whole session: turns, an action a custodian confirms, its end, two signatures, and the release", async () => {
  const session = await begin("reviewer", { turns: 10, timeout_s: 600, idle_s: 300, action_timeout_s: 120 });
  assert.deepEqual([session.info.evidence, session.info.channel, session.info.requester], ["claimed", "api", "harness"]);
  assert.deepEqual([session.info.profile, session.info.turns_max, session.info.ended], ["default", 10, false]);
  const first = await session.turn("How long is it?", envelope("It has ten lines."));
  assert.deepEqual([first.turn, first.verdict, first.valid, first.over], [1, "allow", true, false]);
  assert.deepEqual([first.findings, first.client_view], [[], "It has ten lines."]);
  assert.equal((await session.turn("And now?", JSON.stringify(envelope("Still ten.")))).valid, true);

  const asked = await session.actions.request(create("report.txt"));
  assert.deepEqual([asked.state, asked.done, asked.drift], ["pending", false, "0"]);
  const [shown] = await collect(person.advisory.sessions.of(session.id).actions.all());
  assert.deepEqual([shown.request_id, shown.reading.operation, shown.reading.target], [asked.request_id, "create", "/sandbox/output/report.txt"]);
  assert.deepEqual([shown.reading.as_asked, shown.reading.target_now.exists], [true, false]);
  const theirs = person.advisory.sessions.of(session.id).actions;
  const word = await confirmed("ben", shown);
  await assert.rejects(session.actions.confirm(asked.request_id, word), sdk.ForbiddenError); // not who began it: no scope
  await assert.rejects(theirs.confirm(asked.request_id, { ...word, custodian: "carol" }), sdk.ForbiddenError); // not her signature
  const done = await theirs.confirm(asked.request_id, word);
  assert.deepEqual([done.state, done.done, done.decided_by], ["confirmed", true, "custodian:ben"]);
  assert.equal((await person.receipts.show(done.receipt_id)).action, "advise-act");
  assert.equal(readFileSync(`${BRIG_HOME}/advisory/${session.id}/sandbox/output/report.txt`, "utf8"), "hello");
  await assert.rejects(theirs.confirm(asked.request_id, word), sdk.ConflictError); // once
  const second = await session.actions.request(create("other.txt"));
  const no = signature("carol", await sdk.advisoryPreimage("reject", second.request_id, second.digest));
  assert.equal((await theirs.reject(second.request_id, { custodian: "carol", signature: no })).state, "rejected");
  const third = await session.actions.request(create("third.txt"));
  const aborted = await theirs.confirm(third.request_id, await confirmed("ben", third, { human_confirmed: "yes, please" }));
  assert.deepEqual([aborted.state, aborted.done], ["aborted", false]);

  const report = await session.end();
  assert.deepEqual([report.ended, report.turns, report.drift, report.chain], [true, 2, "0", "holds"]);
  assert.deepEqual(await session.end(), report); // twice is once
  assert.deepEqual(await person.advisory.sessions.of(session.id).report(), report);
  assert.deepEqual((await person.advisory.sessions.get(session.id)).info, report);
  await assert.rejects(session.turn("more?", envelope("no")), sdk.ConflictError);

  const gate = await person.gate.show("reviewer", { runs: 1 });
  assert.deepEqual([gate.agent_id, gate.agent_version, gate.evidence, gate.n], ["reviewer", "model-7", "claimed", 1]);
  assert.deepEqual(gate.conditions.filter((each) => !each.passed), []);
  assert.deepEqual([gate.runs[0].run_id, gate.runs[0].head_hash], [session.id, report.head_hash]);
  assert.deepEqual([gate.met, gate.released, gate.signatures.passed], [false, false, false]);
  const until = Math.floor(Date.now() / 1000) + 3 * 86_400;
  for (const name of ["ben", "carol"])
    brig("gate", "sign", "reviewer", "--runs", "1", "--as", name, "--report", gate.gate_report_sha256, "--expires-at", String(until),
      "--signature", signature(name, await sdk.gatePreimage(gate, name, until)));
  brig("gate", "release", "reviewer", "--runs", "1");
  const released = await person.gate.show("reviewer", { runs: 1, agent_version: "model-7" });
  assert.deepEqual([released.met, released.released, released.why_not], [true, true, ""]);
  assert.deepEqual(released.signatures.words.map((each) => [each.custodian, each.expires_at, each.why_not]), [["ben", until, ""], ["carol", until, ""]]);
  assert.equal(released.gate_report_sha256, gate.gate_report_sha256);
  brig("gate", "revoke", "reviewer");
  assert.equal((await person.gate.show("reviewer", { runs: 1 })).released, false);
  await assert.rejects(person.gate.show("nobody"), sdk.NotFoundError);
  await assert.rejects(person.gate.show("reviewer", { runs: 0 }), sdk.InvalidError);
});

test("what was said comes in pages, to whom it may come", async () => {
  const session = await begin("speaker");
  const said = ["All is well.", "Run `rm -rf build` and look.", "Nothing else."];
  for (const text of said) await session.turn("what now?", envelope(text));
  const bad = await session.turn("and?", "no envelope at all");
  assert.deepEqual([bad.valid, bad.findings[0].category], [false, "structural_violation"]);
  const view = await collect(session.view.all({ limit: 1 }));
  assert.deepEqual(view.map((each) => each.turn), [1, 2, 3, 4]);
  assert.ok(view[0].client_view === said[0] && !JSON.stringify(view).includes("rm -rf") && !JSON.stringify(view).includes("at all"));
  assert.deepEqual(await collect(session.view.all()), view);
  assert.deepEqual(await collect(session.view.all({ after: 2 })), view.slice(2));
  assert.deepEqual(await session.view.page({ after: 1, limit: 1 }), { items: [view[1]], next_after: 2 });
  assert.deepEqual(await session.view.page({ after: 4 }), { items: [], next_after: 4 });
  await assert.rejects(session.envelopes.page(), sdk.ForbiddenError);
  await assert.rejects(session.events.page(), sdk.ForbiddenError);

  const governed = person.advisory.sessions.of(session.id);
  const envelopes = await collect(governed.envelopes.all({ limit: 3 }));
  assert.deepEqual(envelopes.map((each) => [each.turn, each.valid]), [[1, true], [2, true], [3, true], [4, false]]);
  assert.equal(envelopes[1].envelope.client_view, said[1]);
  assert.equal(envelopes[1].envelope.governance.run_id, session.id);
  const events = await collect(governed.events.all({ limit: 3 }));
  assert.deepEqual(events.map((each) => each.seq), events.map((_, i) => i + 1));
  assert.deepEqual(events.slice(1).map((each) => each.prev_hash), events.slice(0, -1).map((each) => each.hash));
  assert.deepEqual([events[0].kind, events[1].kind, events[2].kind], ["start", "constitution", "prompt"]);

  const report = await session.end();
  assert.equal(report.counts.unsafe_command, 1);
  // Only who began it speaks for its agent; another tenant knows nothing of it.
  const other = await as("other", "read", "run");
  await assert.rejects(other.advisory.sessions.of((await begin("speaker")).id).turn("x", "y"), sdk.ForbiddenError);
  await assert.rejects(new Brig({ baseUrl: TEST_URL, token: TEST_STRICT_TOKEN }).advisory.sessions.get(session.id), sdk.NotFoundError);
});

test("sessions are listed, over as many pages as it takes, those that do not hold among them", async () => {
  const ids = [];
  for (let i = 0; i < 3; i++) ids.push((await begin("many")).id);
  const events = `${BRIG_HOME}/advisory/${ids[1]}/events.jsonl`;
  const kept = readFileSync(events, "utf8");
  writeFileSync(events, kept.replace('"seq":1', '"seq":7'));
  const all = await collect(person.advisory.sessions.all({ limit: 1 }));
  const mine = all.filter((each) => ids.includes(each.run_id));
  assert.equal(new Set(all.map((each) => each.run_id)).size, all.length);
  assert.deepEqual(mine.map((each) => each.run_id).sort(), [...ids].sort());
  assert.deepEqual(mine.filter((each) => each.chain !== "holds").map((each) => each.run_id), [ids[1]]);
  const page = await person.advisory.sessions.page({ limit: 100 });
  assert.equal(page.sessions.length + page.broken.length, all.length);
  assert.deepEqual(page.broken.map((each) => each.run_id), [ids[1]]);
  await assert.rejects(person.advisory.sessions.get(ids[1]), sdk.IntegrityError);
  writeFileSync(events, kept);
  assert.equal((await person.advisory.sessions.get(ids[1])).info.agent_id, "many");
});

test("a session by strict-seed, judged anew, and as a dataset", async () => {
  const session = await begin("seeded", { profile: "strict-seed" });
  assert.equal(session.info.profile, "strict-seed");
  assert.equal((await session.turn("how?", envelope("[FACT] Use `rsync -a x y` for that."))).verdict, "allow");
  await session.turn("where?", envelope("The file /home/anna/x has it."));
  await assert.rejects(person.advisory.replay({ run_id: session.id }), sdk.ConflictError);
  await session.end();
  const same = await person.advisory.replay({ run_id: session.id }, { profile: "strict-seed" });
  assert.deepEqual([same.sessions, same.turns, same.differ, same.differences], [1, 2, 0, []]);
  const now = await person.advisory.replay({ agent_id: "seeded", last: 5 });
  assert.deepEqual([now.profile, now.turns, now.differ, now.left_out], ["default", 2, 1, 0]);
  assert.deepEqual([now.differences[0].run_id, now.differences[0].turn, now.differences[0].stored], [session.id, 1, true]);
  assert.deepEqual([now.differences[0].before.findings, now.before.unsafe_command, now.after.unsafe_command], [[], 0, 1]);
  assert.ok(now.differences[0].after.findings.some((each) => each.rule === "alias.cp"));

  const records = await collect(person.advisory.dataset({ run_id: session.id }));
  const turns = records.filter((each) => each.record === "turn");
  assert.deepEqual(turns.map((each) => each.output.envelope.client_view), ["[FACT] Use `rsync -a x y` for that.", "The file [path] has it."]);
  const bytes = Buffer.concat(await collect(await person.advisory.export({ run_id: session.id }))).toString();
  assert.equal(bytes, brig("advisory", "export", session.id));
  assert.deepEqual(bytes.trimEnd().split("\n").map((line) => JSON.parse(line)), records);
  assert.deepEqual(await collect(person.advisory.dataset({ agent_id: "seeded", last: 1 })), records);
  assert.ok((await collect(person.advisory.dataset())).length > records.length);
  await assert.rejects(collect(person.advisory.dataset({ agent_id: "nobody" })), sdk.NotFoundError);
  await assert.rejects(harness.advisory.export({ run_id: session.id }), sdk.ForbiddenError);
  await assert.rejects(begin("seeded", { profile: "lax" }), sdk.InvalidError);
  await assert.rejects(begin("seeded", { strict_seed: true }), sdk.InvalidError);
});

test("the same key is the same session, the same turn and the same request", async () => {
  const idempotencyKey = `advisory-${process.pid}`;
  const spec = { agent_id: "once", agent_version: "1", constitution: "Advise." };
  const session = await harness.advisory.sessions.begin(spec, { idempotencyKey });
  assert.equal((await harness.advisory.sessions.begin(spec, { idempotencyKey })).id, session.id);
  for (let i = 0; i < 2; i++) assert.equal((await session.turn("x", envelope("y"), { idempotencyKey: `${idempotencyKey}-t` })).turn, 1);
  assert.equal((await session.turn("x", envelope("y"))).turn, 2);
  const { request_id } = await session.actions.request(create("a"), { idempotencyKey: `${idempotencyKey}-a` });
  assert.equal((await session.actions.request(create("a"), { idempotencyKey: `${idempotencyKey}-a` })).request_id, request_id);
  const abort = new AbortController();
  abort.abort(new Error("enough"));
  await assert.rejects(session.turn("x", envelope("z"), { signal: abort.signal }), /enough/);
  await assert.rejects(collect(session.view.all({}, { signal: abort.signal })), /enough/);
  assert.equal((await session.report()).turns, 2);
});

test("a page that leads nowhere ends a list, and a dataset that breaks off never looks complete", async (t) => {
  let asked = 0;
  const baseUrl = await server(t, (request, answer) => {
    asked++;
    request.resume();
    if (request.url.includes("/export")) {
      answer.writeHead(200, { "content-type": "application/x-ndjson" }).write('{"record":"turn","seq":1}\n{"rec');
      setTimeout(() => request.socket.destroy(), 20);
      return;
    }
    const next_after = request.url.includes("/view") ? 0 : "";
    answer.setHeader("content-type", "application/json").end(JSON.stringify({ sessions: [], broken: [], actions: [], turns: [], next_after }));
  });
  for (const options of [{}, { fetch }]) {
    const client = new Brig({ baseUrl, token: "x", ...options });
    asked = 0;
    assert.deepEqual(await collect(client.advisory.sessions.all()), []);
    assert.deepEqual(await collect(client.advisory.sessions.of("s").actions.all()), []);
    assert.deepEqual(await collect(client.advisory.sessions.of("s").view.all()), []);
    assert.equal(asked, 3);
    const seen = [];
    await assert.rejects(async () => {
      for await (const each of client.advisory.dataset()) seen.push(each.seq);
    }, sdk.ConnectionError);
    assert.deepEqual(seen, [1]);
  }
  const ended = await server(t, (_, answer) => answer.end('{"record":"turn","seq":1}\n{"rec'));
  await assert.rejects(collect(new Brig({ baseUrl: ended }).advisory.dataset()), sdk.ConnectionError);
});

test("budgets are told with what is used of them, and usage with who used it", async () => {
  brig("budget", "set", "--per", "principal", "--within", "1h", "--runs", "100", "--wall", "1h");
  const runner = await as("spender", "read", "run");
  await runner.run(["true"]);
  const { budgets, prices } = await runner.budgets({ principal: "spender" });
  assert.deepEqual(prices, { run: 0, vcpu_second: 0, gib_second: 0 });
  assert.deepEqual(budgets.map((each) => [each.per, each.name, each.within_s, each.set_by]), [["principal", "spender", 3600, "operator"]]);
  const runs = budgets[0].amounts.find((each) => each.kind === "runs");
  assert.deepEqual([runs.limit, runs.used, runs.reserved], [100, 1, 0]);
  const wall = budgets[0].amounts.find((each) => each.kind === "wall");
  assert.ok(wall.limit === 3_600_000_000 && wall.used > 0);
  assert.ok((await admin.budgets()).budgets.length >= 1);
  const [used] = await runner.usage({ principal: "spender" });
  assert.deepEqual([used.principal, used.commands, used.denied], ["spender", 1, 0]);
  await assert.rejects(runner.budgets({ principle: "spender" }), sdk.InvalidError);
});
