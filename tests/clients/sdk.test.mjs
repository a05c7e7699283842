// SPDX-License-Identifier: Apache-2.0
// The library against the built daemon, over every way there is to reach it.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import http from "node:http";
import { after, test as nodeTest } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

import * as sdk from "../../sdk/typescript/dist/index.js";

// Tests of a group carry its name: TAP counts what stands at the margin.
let group = "";
const describe = (name, tests) => {
  group = `${name}: `;
  tests();
};
const test = (name, work) => nodeTest(group + name, work);

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc");
const { Brig } = sdk;
const { BRIG, BRIG_HOME, TEST_PERSON_TOKEN, TEST_SOCKET, TEST_STRICT_TOKEN, TEST_TOKEN, TEST_URL } = process.env;
const pub = () => readFileSync(`${BRIG_HOME}/receipts.pub`, "utf8");

const ways = {
  "TCP": { baseUrl: TEST_URL, token: TEST_TOKEN },
  "fetch": { baseUrl: TEST_URL, token: TEST_TOKEN, fetch },
  "a unix socket": { socketPath: TEST_SOCKET },
};
const brig = new Brig(ways["TCP"]);
const strict = new Brig({ baseUrl: TEST_URL, token: TEST_STRICT_TOKEN });

async function withSandbox(client, work, spec = {}) {
  const sandbox = await client.sandboxes.create(spec);
  try {
    await work(sandbox);
  } finally {
    await sandbox.destroy();
  }
}

/* Asks until the answer is true; a test that waits in vain fails by the time of all. */
async function until(question) {
  while (!(await question())) await new Promise((resolve) => setTimeout(resolve, 25));
}

async function collect(iterable) {
  const all = [];
  for await (const each of iterable) all.push(each);
  return all;
}

const textOf = async (stream) => Buffer.concat(await collect(stream)).toString();

/* A server that misbehaves as the test wants it; ends with the test. */
async function server(t, onRequest) {
  const it = http.createServer(onRequest).listen(0, "127.0.0.1");
  await new Promise((resolve) => it.once("listening", resolve));
  t.after(() => {
    it.closeAllConnections();
    it.close();
  });
  return `http://127.0.0.1:${it.address().port}`;
}

for (const [way, options] of Object.entries(ways)) {
  describe(`over ${way}`, () => {
    const client = new Brig(options);

    test("who we are, which daemon it is, and what it counts", async () => {
      assert.equal((await client.whoami()).tenant, "default");
      assert.match((await client.version()).version, /^\d/);
      assert.equal(await client.healthy(), true);
      assert.match(await client.metrics(), /brig_http_requests_total/);
      assert.equal((await client.openapi()).openapi, "3.1.0");
    });

    test("a sandbox is made, listed, shown, held, extended and ended", async () => {
      const name = `life-${way.replace(/\W/g, "")}`;
      const sandbox = await client.sandboxes.create({ name, labels: { team: "a" }, limits: { pids: 50 } });
      assert.equal(sandbox.info.state, "running");
      assert.deepEqual(sandbox.info.labels, ["team=a"]);
      assert.ok((await client.sandboxes.list()).some((each) => each.sandbox_id === sandbox.id));
      const second = await client.sandboxes.create();
      const page = await client.sandboxes.page({ limit: 1 });
      assert.equal(page.sandboxes.length, 1);
      assert.equal(page.next_after, page.sandboxes[0].sandbox_id);
      const paged = [];
      for await (const one of client.sandboxes.all({ limit: 1 })) paged.push(one.sandbox_id);
      assert.deepEqual(paged, [...paged].sort());
      assert.ok(paged.includes(sandbox.id) && paged.includes(second.id));
      await second.destroy();
      assert.equal((await client.sandboxes.get(name)).id, sandbox.id);
      assert.equal((await sandbox.pause()).action, "pause");
      assert.equal((await sandbox.show()).state, "paused");
      assert.equal((await sandbox.resume()).done, true);
      assert.equal((await sandbox.extend(7_200_000)).action, "extend");
      assert.equal((await sandbox.destroy()).done, true);
      await assert.rejects(client.sandboxes.get(name), sdk.NotFoundError);
    });

    test("a command's end, output and receipt", async () => {
      await withSandbox(client, async (sandbox) => {
        const command = ["sh", "-c", 'cat; echo "$WHO" >&2; pwd; exit 7'];
        const result = await sandbox.exec(command, { stdin: "in\n", env: { WHO: "me" }, workdir: "/tmp" });
        assert.equal(result.exit_code, 7);
        assert.equal(result.stdout, "in\n/tmp\n");
        assert.equal(result.stderr, "me\n");
        const receipt = await client.receipts.show(result.receipt_id);
        assert.equal(receipt.outcome.exit_code, 7);
        assert.equal(await sdk.receiptFault(receipt, pub()), undefined);
        const bytes = await sandbox.exec(["cat"], { stdin: new Uint8Array([0xff, 0, 0xfe]) });
        assert.equal(bytes.stdout_b64, "/wD+");
        const late = await sandbox.exec(["sleep", "60"], { timeout_ms: 200 });
        assert.equal(late.timed_out, true);
        assert.ok(late.duration_ms < 20_000); // its own time, not the sandbox's
      });
    });

    test("output comes as events and by callbacks", async () => {
      const events = await collect(await client.runStream(["sh", "-c", "echo one; echo two >&2; exit 3"]));
      assert.equal(events[0].event, "start");
      assert.equal(events.find((e) => e.event === "stdout").text, "one\n");
      assert.deepEqual([...events.find((e) => e.event === "stderr").bytes], [...Buffer.from("two\n")]);
      assert.equal(events.at(-1).event, "exit");
      assert.equal(events.at(-1).id, "4.4");
      assert.equal(events.at(-1).result.exit_code, 3);
      let out = "";
      let err = "";
      const result = await client.run(["sh", "-c", "printf a; printf '\\377' >&2; printf b"], {
        onStdout: (event) => (out += event.text),
        onStderr: (event) => (err += event.bytes[0]),
      });
      assert.deepEqual([out, err, result.exit_code], ["ab", "255", 0]);
    });

    test("ten megabytes arrive complete, read slowly", async () => {
      const run = await client.runStream(["perl", "-e", 'printf "%063d\\n", $_ for 1..160000']);
      let size = 0;
      for await (const event of run) {
        if (event.event !== "stdout") continue;
        size += event.bytes.length;
        if (size % 7 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
      assert.equal(size, 10_240_000);
    });

    test("who leaves the loop ends the command", async () => {
      await withSandbox(client, async (sandbox) => {
        for await (const event of await sandbox.stream(["sh", "-c", "echo ready; sleep 300"]))
          if (event.event === "stdout") break;
        const abort = new AbortController();
        const gone = sandbox.exec(["sleep", "300"], { signal: abort.signal });
        setTimeout(() => abort.abort(new Error("enough")), 100);
        await assert.rejects(gone, /enough/);
        await until(async () => (await sandbox.show()).processes === 1);
      });
    });

    test("input, signals and a terminal over a WebSocket", async () => {
      await withSandbox(client, async (sandbox) => {
        const session = await sandbox.open(["sh", "-c", "read a; echo got $a; cat"]);
        await session.write("one\n");
        await session.write(new Uint8Array(Buffer.from("rest")));
        session.end();
        let text = "";
        for await (const event of session) if (event.event === "stdout") text += event.text;
        assert.equal(text, "got one\nrest");

        const trapped = await sandbox.open(
          ["sh", "-c", 'trap "exit 9" INT; echo ready; while :; do sleep 0.05; done'],
          { onStdout: () => trapped.signal("SIGINT") },
        );
        assert.equal((await trapped.wait()).exit_code, 9);

        let seen = "";
        const tty = await sandbox.open(
          ["sh", "-c", 'trap "stty size; exit 0" WINCH; tty; while :; do sleep 0.05; done'],
          {
            tty: true,
            onStdout: (event) => {
              seen += event.text;
              if (event.text.includes("/dev/pts")) tty.resize(33, 77);
            },
          },
        );
        await tty.wait();
        assert.match(seen, /33 77/);
      });
    });

    test("a WebSocket's refusals are errors like the others", async () => {
      await withSandbox(client, async (sandbox) => {
        await assert.rejects((await sandbox.open([])).wait(), sdk.InvalidError);
        const abort = new AbortController();
        const long = await sandbox.open(["sleep", "300"], { signal: abort.signal });
        abort.abort(new Error("enough"));
        await assert.rejects(long.wait(), /enough/);
        await assert.rejects((await client.sandboxes.of("nobody").open(["true"])).wait(), sdk.NotFoundError);
      });
    });

    test("a detached command is followed from where one was, and signalled", async () => {
      await withSandbox(client, async (sandbox) => {
        const script = 'trap "echo told; exit 5" TERM; echo one; echo two; while :; do sleep 0.05; done';
        const job = await sandbox.detach(["sh", "-c", script]);
        let from;
        let text = "";
        for await (const event of job.follow()) {
          if (event.event !== "stdout") continue;
          text += event.text;
          from = event.id;
          if (text.includes("two")) break;
        }
        assert.equal(from, "8.0");
        assert.equal((await job.info()).state, "running");
        await job.send("SIGTERM");
        const rest = sandbox.detached(job.exec_id).follow({ from });
        let more = "";
        for await (const event of rest) if (event.event === "stdout") more += event.text;
        assert.equal(more, "told\n");
        const end = await job.wait({ from: "4.0", onStdout: (event) => (more += event.text) });
        assert.equal(end.exit_code, 5);
        assert.equal(more, "told\ntwo\ntold\n");
        assert.equal((await sandbox.execs()).execs[0].exec_id, job.exec_id);
        await assert.rejects(job.send(15), sdk.ConflictError);
      });
    });

    test("files come and go", async () => {
      await withSandbox(client, async ({ files }) => {
        const data = new Uint8Array(3_000_000).map((_, i) => i * 7);
        const written = await files.write("/sandbox/tmp/a b", data);
        assert.equal(written.bytes, data.length);
        assert.deepEqual(await files.read("/sandbox/tmp/a b"), data);
        await files.write("/sandbox/tmp/stream", (async function* () {
          yield "one ";
          yield new Uint8Array(Buffer.from("two"));
        })());
        assert.equal(await files.readText("/sandbox/tmp/stream"), "one two");
        await files.write("/sandbox/tmp/blob", new Blob(["from a blob"]));
        assert.equal(await textOf(await files.readStream("/sandbox/tmp/blob")), "from a blob");
        assert.equal((await files.stat("/sandbox/tmp/blob")).size, 11);
        await files.mkdir("/sandbox/tmp/d/e", { parents: true });
        await files.move("/sandbox/tmp/blob", "/sandbox/tmp/d/e/c");
        assert.equal(await files.exists("/sandbox/tmp/blob"), false);
        const tar = await files.pack("/sandbox/tmp/d");
        await files.mkdir("/sandbox/tmp/copy");
        await files.unpack("/sandbox/tmp/copy", tar);
        assert.equal(await files.readText("/sandbox/tmp/copy/e/c"), "from a blob");
        assert.deepEqual((await files.list("/sandbox/tmp/copy")).entries.map((e) => [e.name, e.type]), [["e", "directory"]]);
        await assert.rejects(files.remove("/sandbox/tmp/d"));
        await files.remove("/sandbox/tmp/d", { recursive: true });
        await assert.rejects(files.read("/sandbox/tmp/d/e/c"), sdk.NotFoundError);
      });
    });

    test("an answer that is read late is whole, whatever was collected meanwhile", async () => {
      await withSandbox(client, async ({ files }) => {
        await files.write("/sandbox/tmp/late", "x".repeat(1000));
        const stream = await files.readStream("/sandbox/tmp/late");
        for (let i = 0; i < 10; i++) {
          collectGarbage();
          await new Promise((resolve) => setTimeout(resolve, 10));
        }
        assert.equal((await textOf(stream)).length, 1000);
      });
    });

    test("a source that fails leaves nothing, and its own error", async () => {
      await withSandbox(client, async ({ files }) => {
        await assert.rejects(files.write("/sandbox/tmp/half", (async function* () {
          yield new Uint8Array(100_000);
          throw new Error("the source is broken");
        })()), /broken/);
        await until(async () => (await files.list("/sandbox/tmp")).entries.length === 0);
      });
    });

    test("changes are told as they happen", async () => {
      await withSandbox(client, async (sandbox) => {
        const busy = await sandbox.detach(["sh", "-c", "while :; do mktemp /sandbox/tmp/newXXXXXX; sleep 0.1; done"]);
        for await (const change of sandbox.files.watch("/sandbox/tmp")) {
          if (change.event !== "create") continue;
          assert.match(change.name, /^new/);
          break;
        }
        await busy.send("SIGKILL");
      });
    });
  });
}

describe("errors", () => {
  test("a denial has its reason and its receipt", async () => {
    const denied = await strict.run(["rm", "x"]).catch((error) => error);
    assert.ok(denied instanceof sdk.DeniedError && denied instanceof sdk.ForbiddenError);
    assert.equal(denied.status, 403);
    assert.equal(denied.type, "permission_denied");
    assert.equal(denied.reason_code, "POLICY_DENY");
    assert.equal((await strict.receipts.show(denied.details.receipt_id)).rule, "no-rm");
    const streamed = await (await strict.runStream(["rm", "x"])).wait().catch((error) => error);
    assert.ok(streamed instanceof sdk.DeniedError);
    assert.equal((await strict.receipts.show(streamed.details.receipt_id)).verdict, "DENY");
    await withSandbox(strict, async (sandbox) => {
      await assert.rejects((await sandbox.open(["rm", "x"])).wait(), sdk.DeniedError);
    });
  });

  test("one class per kind", async () => {
    await assert.rejects(brig.run([]), sdk.InvalidError);
    await assert.rejects(new Brig({ baseUrl: TEST_URL, token: "wrong" }).whoami(), sdk.UnauthenticatedError);
    await assert.rejects(new Brig({ baseUrl: TEST_URL }).whoami(), sdk.UnauthenticatedError);
    await assert.rejects(brig.sandboxes.get("nobody"), sdk.NotFoundError);
    const { token } = await brig.tokens.create({ scopes: ["read"] });
    const reader = new Brig({ baseUrl: TEST_URL, token });
    const forbidden = await reader.run(["true"]).catch((error) => error);
    assert.ok(forbidden instanceof sdk.ForbiddenError && !(forbidden instanceof sdk.DeniedError));
    assert.match(forbidden.message, /scope "run"/);
  });

  test("nobody there is a ConnectionError, after retries for what may be retried", async () => {
    const nowhere = new Brig({ baseUrl: "http://127.0.0.1:1", retries: 1 });
    await assert.rejects(nowhere.whoami(), sdk.ConnectionError);
    assert.equal(await nowhere.healthy(), false);
    await assert.rejects(nowhere.run(["true"]), sdk.ConnectionError);
    await assert.rejects(new Brig({ socketPath: "/nowhere.sock" }).whoami(), sdk.ConnectionError);
    await assert.rejects(nowhere.sandboxes.of("x").open(["true"]), sdk.ConnectionError);
  });
});

describe("once", () => {
  test("the same key does not do it twice", async () => {
    const idempotencyKey = `key-${process.pid}`;
    const first = await brig.sandboxes.create({}, { idempotencyKey });
    const second = await brig.sandboxes.create({}, { idempotencyKey });
    assert.equal(first.id, second.id);
    await first.destroy();
    await assert.rejects(brig.sandboxes.create({ name: "x" }, { idempotencyKey }), sdk.ConflictError);
  });

  test("what creates carries one key through all attempts; what does not is sent once", async (t) => {
    const seen = [];
    const url = await server(t, (request, answer) => {
      seen.push([request.method, request.headers["idempotency-key"]]);
      request.resume();
      if (seen.length % 3) {
        request.socket.destroy();
        return;
      }
      answer.setHeader("content-type", "application/json").end('{"sandbox_id":"s"}');
    });
    for (const options of [{}, { fetch }]) {
      seen.length = 0;
      const client = new Brig({ baseUrl: url, retries: 2, ...options });
      assert.equal((await client.sandboxes.create()).id, "s");
      assert.equal(seen.length, 3);
      assert.equal(new Set(seen.map(([, key]) => key)).size, 1);
      assert.ok(seen[0][1]);
      seen.length = 0;
      await assert.rejects(client.sandboxes.of("s").destroy(), sdk.ConnectionError);
      assert.deepEqual(seen, [["DELETE", undefined]]);
    }
  });

  test("a busy daemon is asked again, one that refuses is not; the caller may stop it", async (t) => {
    const answers = [];
    let asked = 0;
    const url = await server(t, (request, answer) => {
      request.resume();
      answer.writeHead(answers[Math.min(asked++, answers.length - 1)], { "content-type": "application/json" });
      answer.end('{"sandbox_id":"s"}');
    });
    const client = new Brig({ baseUrl: url, retries: 2 });
    const tries = async (...statuses) => {
      answers.splice(0, answers.length, ...statuses);
      asked = 0;
      const end = await client.sandboxes.create().then((s) => s.id, (error) => error.constructor.name);
      return [end, asked];
    };
    assert.deepEqual(await tries(429, 503, 201), ["s", 3]);
    assert.deepEqual(await tries(503), ["UnavailableError", 3]);
    assert.deepEqual(await tries(500), ["InternalError", 1]);
    assert.deepEqual(await tries(409), ["ConflictError", 1]);
    answers.splice(0, answers.length, 503);
    const abort = new AbortController();
    const stopped = new Brig({ baseUrl: url, retries: 10 }).sandboxes.create({}, { signal: abort.signal });
    setTimeout(() => abort.abort(new Error("enough")), 50);
    await assert.rejects(stopped, /enough/);
  });

  test("a request that runs nothing has an end", async (t) => {
    const url = await server(t, (request) => request.resume());
    await assert.rejects(new Brig({ baseUrl: url, timeoutMs: 50 }).whoami(), sdk.TimeoutError);
    await assert.rejects(new Brig({ baseUrl: url, timeoutMs: 50, fetch }).whoami(), sdk.TimeoutError);
  });

  test("an answer that breaks off never looks complete", async (t) => {
    const url = await server(t, (request, answer) => {
      request.resume();
      if (request.url.includes("/exec") || request.url.includes("/runs"))
        answer.writeHead(200, { "content-type": "application/x-ndjson" }).write('{"event":"start","id":"0.0","run_id":"r"}\n');
      else answer.writeHead(200).write("half");
      setTimeout(() => request.socket.destroy(), 200);
    });
    for (const options of [{}, { fetch }]) {
      const client = new Brig({ baseUrl: url, ...options });
      await assert.rejects(client.sandboxes.of("s").files.read("/x"), sdk.ConnectionError);
      await assert.rejects((await client.runStream(["true"])).wait(), sdk.ConnectionError);
    }
  });

  test("an answer that does not end is not collected without end", async (t) => {
    const piece = "x".repeat(1024 * 1024);
    const url = await server(t, (request, answer) => {
      request.resume();
      answer.writeHead(request.url === "/version" ? 500 : 200, { "content-type": "application/json" }).write('["');
      let left = 65;
      const more = () => {
        while (left-- > 0) if (!answer.write(piece)) return answer.once("drain", more);
        answer.end('"]');
      };
      more();
    });
    for (const options of [{}, { fetch }]) {
      const client = new Brig({ baseUrl: url, ...options });
      await assert.rejects(client.whoami(), (error) => error instanceof sdk.ConnectionError && /more than/.test(error.message));
      await assert.rejects(client.metrics(), sdk.ConnectionError);
      await assert.rejects(client.version(), (error) => error instanceof sdk.InternalError && error.status === 500);
    }
  });

  test("a stream that ends without its exit is not an end", async (t) => {
    const url = await server(t, (request, answer) => {
      request.resume();
      answer.writeHead(200, { "content-type": "application/x-ndjson" }).end('{"event":"start","id":"0.0","run_id":"r"}\n');
    });
    await assert.rejects((await new Brig({ baseUrl: url }).runStream(["true"])).wait(), sdk.ConnectionError);
  });

  test("following goes on where it was when the connection breaks", async (t) => {
    const asked = [];
    const url = await server(t, (request, answer) => {
      const from = request.headers["last-event-id"];
      asked.push(from);
      answer.writeHead(200, { "content-type": "application/x-ndjson" });
      if (asked.length === 1) {
        answer.write('{"event":"stdout","data":"one","id":"3.0"}\n');
        setTimeout(() => request.socket.destroy(), 200);
      } else {
        answer.end('{"event":"stdout","data":"two","id":"6.0"}\n{"event":"exit","exit_code":0,"id":"6.0"}\n');
      }
    });
    let text = "";
    const job = new Brig({ baseUrl: url }).sandboxes.of("s").detached("e");
    const end = await job.wait({ onStdout: (event) => (text += event.text) });
    assert.deepEqual([text, end.exit_code, asked], ["onetwo", 0, ["0.0", "3.0"]]);
  });
});

describe("receipts", () => {
  test("they are listed in pages, shown, and verified here", async () => {
    const { run_id, receipt_id } = await brig.run(["true"]);
    const mine = await brig.receipts.list({ run_id });
    assert.deepEqual(mine.map((r) => r.kind), ["outcome", "intent"]);
    assert.equal((await brig.receipts.show(mine[1].seq)).receipt_id, mine[1].receipt_id);
    const some = (await collect(brig.receipts.all({ limit: 7 }))).map((r) => r.seq);
    assert.deepEqual(some, [...some].sort((a, b) => b - a));
    assert.equal(some.at(-1), 1);
    const head = await brig.receipts.head();
    const judged = await brig.receipts.verify({ key: pub(), head });
    assert.equal(judged.ok, true);
    assert.equal(judged.completeness, "proven");
    const there = await brig.receipts.verifyThere(head);
    assert.equal(there.ok, true);
    assert.equal(there.trusted_key.key_id, judged.key_id);
    assert.equal((await sdk.verifyReceipts(mine.reverse(), { key: pub(), part: true })).entries, 2);
    assert.ok(receipt_id);
  });

  test("what a client keeps of the ledger shows when that was changed", async () => {
    const lines = (await textOf(await brig.receipts.export())).trimEnd().split("\n");
    const changed = lines.with(2, lines[2].replace('"tenant":"default"', '"tenant":"another"'));
    const report = await sdk.verifyReceipts(changed.join("\n") + "\n", { key: pub() });
    assert.equal(report.integrity, "tampered");
    assert.deepEqual([report.fault.kind, report.fault.seq, report.fault.line], ["changed", 3, 3]);
    assert.equal(report.fault.receipt_id, JSON.parse(lines[2]).receipt_id);
  });
});

describe("following the ledger", () => {
  test("every receipt once and in order, from the next one, a number, or where it broke", async (t) => {
    const { seq } = await brig.receipts.head();
    const some = await collect(brig.receipts.tail({ after: seq - 3, limit: 3 }));
    assert.deepEqual(some.map((r) => r.seq), [seq - 2, seq - 1, seq]);
    const next = brig.receipts.tail({ limit: 2 });
    const first = next.next();
    const watcher = setInterval(() => void brig.run(["true"]), 100);
    const made = [(await first).value, ...(await collect(next))];
    clearInterval(watcher);
    assert.ok(made[0].seq > seq && made[1].seq === made[0].seq + 1);
    assert.deepEqual(await collect(brig.receipts.tail({ after: (await brig.receipts.head()).seq + 1000, wait_ms: 50 })), []);

    const asked = [];
    const url = await server(t, (request, answer) => {
      asked.push(new URL(request.url, "http://x").searchParams.get("after"));
      answer.writeHead(200, { "content-type": "application/x-ndjson" });
      answer.write(`{"seq":${asked.length + 7}}\n`);
      setTimeout(() => request.socket.destroy(), 200);
    });
    const broken = await collect(new Brig({ baseUrl: url }).receipts.tail({ after: 7, limit: 3 }));
    assert.deepEqual([broken.map((r) => r.seq), asked], [[8, 9, 10], ["7", "8", "9"]]);
  });
});

describe("snapshots", () => {
  test("they are taken, listed, gone back to, forked, verified, carried out and in, and removed", async () => {
    await withSandbox(brig, async (sandbox) => {
      await sandbox.files.write("/sandbox/tmp/kept", "before");
      const taken = await sandbox.snapshot("base");
      await sandbox.files.write("/sandbox/tmp/kept", "after");
      assert.ok((await brig.snapshots.list()).some((each) => each.snapshot_id === taken.snapshot_id));
      assert.equal((await sandbox.snapshots())[0].name, "base");
      assert.equal((await brig.snapshots.get("base")).snapshot_id, taken.snapshot_id);
      await sandbox.restore("base");
      assert.equal(await sandbox.files.readText("/sandbox/tmp/kept"), "before");
      execFileSync(BRIG, ["snapshot", "tend"]); // or a moment later, by itself
      assert.equal((await brig.snapshots.verify("base")).intact, true);
      const forks = [...(await brig.snapshots.fork("base", { count: 2 })), ...(await sandbox.fork())];
      for (const fork of forks) {
        assert.equal(await fork.files.readText("/sandbox/tmp/kept"), "before");
        await fork.destroy();
      }
      const { archive, receipt_id, image_digest } = await brig.snapshots.export("base");
      const tar = Buffer.concat(await collect(archive));
      assert.equal((await brig.receipts.show(receipt_id)).action, "snapshot-export");
      assert.match(image_digest, /^sha256:/);
      const brought = await brig.snapshots.import(tar, { name: "brought" });
      assert.equal((await brig.snapshots.get("brought")).snapshot_id, brought.snapshot_id);
      await brig.snapshots.remove("brought");
      assert.ok((await brig.snapshots.remove("base")).receipt_id);
      await assert.rejects(brig.snapshots.get("base"), sdk.NotFoundError);
    });
  });
});

describe("the stop button", () => {
  test("refuses new effects until it is lifted", async () => {
    const entry = { tenant: "strict", principal: (await strict.whoami()).principal };
    await brig.freeze.set({ ...entry, reason: "a test" });
    assert.equal((await brig.freeze.list())[0].reason, "a test");
    await assert.rejects(strict.run(["true"]), (error) =>
      error instanceof sdk.FrozenError && error.reason_code === "SYSTEM_FROZEN");
    await brig.freeze.lift(entry);
    assert.equal((await strict.run(["true"])).exit_code, 0);
  });
});

describe("approvals", () => {
  test("a person's word lets exactly that happen, once", async () => {
    const { token } = await strict.tokens.create({ scopes: ["read", "approve"], principal: "a-mask" });
    const mask = new Brig({ baseUrl: TEST_URL, token });
    const person = new Brig({ baseUrl: TEST_URL, token: TEST_PERSON_TOKEN });
    const asked = await strict.run(["git", "push"]).catch((error) => error);
    assert.ok(asked instanceof sdk.DeniedError);
    assert.equal(asked.reason_code, "POLICY_ASK");
    const { approval_id } = asked.details;
    assert.ok((await person.approvals.list()).some((each) => each.approval_id === approval_id));
    assert.equal((await strict.approvals.show(approval_id)).state, "pending");
    await assert.rejects(strict.approvals.confirm(approval_id), sdk.ForbiddenError); // not by whoever asked
    await assert.rejects(mask.approvals.confirm(approval_id), sdk.ForbiddenError); // nor through a token of his
    const waiting = strict.run(["git", "push", "--tags"], { approval_wait_ms: 30_000 });
    await until(async () => (await person.approvals.list()).length > 1);
    const other = (await person.approvals.list()).find((each) => each.approval_id !== approval_id);
    assert.equal((await person.approvals.confirm(other.approval_id, { comment: "go" })).state, "confirmed");
    assert.equal((await waiting).verdict, "ALLOW");
    assert.equal((await person.approvals.reject(approval_id)).state, "rejected");
    await assert.rejects(strict.run(["git", "push"]), sdk.DeniedError);
  });

  test("all that waits is listed, over as many pages as it takes", async () => {
    const { token } = await strict.tokens.create({ scopes: ["read", "run"], principal: "asks-much" });
    const agent = new Brig({ baseUrl: TEST_URL, token });
    const person = new Brig({ baseUrl: TEST_URL, token: TEST_PERSON_TOKEN });
    const asked = [];
    // A megabyte of them ends a page, whatever its limit is.
    for (let i = 0; i < 12; i++) {
      const refusal = await agent.run(["git", "push", `${i}`, "x".repeat(100_000)]).catch((error) => error);
      assert.equal(refusal.reason_code, "POLICY_ASK");
      asked.push(refusal.details.approval_id);
    }
    const ids = async (of) => (await collect(of)).map((each) => each.approval_id);
    const requester = "asks-much";
    const first = await person.approvals.page({ requester });
    assert.ok(first.more && first.approvals.length < asked.length);
    assert.equal(first.next_after, first.approvals.at(-1).seq);
    assert.deepEqual(await person.approvals.list({ requester }), first.approvals);
    assert.deepEqual(await ids(person.approvals.all({ requester })), asked);
    assert.deepEqual(await ids(person.approvals.all({ requester, limit: 5 })), asked);
    assert.deepEqual(await ids(person.approvals.all({ requester, after: first.next_after })), asked.slice(first.approvals.length));
    assert.deepEqual(await ids(agent.approvals.all()), asked); // one's own
    assert.deepEqual(await ids(person.approvals.all({ requester: "nobody" })), []);
    const last = await person.approvals.page({ requester, after: first.next_after });
    assert.equal(last.more, false);
  });

  test("a page that leads nowhere ends the list", async (t) => {
    let asked = 0;
    const baseUrl = await server(t, (request, response) => {
      asked++;
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify({ approvals: [], more: true, next_after: 0 }));
    });
    assert.deepEqual(await collect(new Brig({ baseUrl, token: "x" }).approvals.all()), []);
    assert.equal(asked, 1);
  });
});

describe("policies", () => {
  test("they are read strictly and asked, without effect", async () => {
    assert.ok((await strict.policies.show()).policy_hash);
    assert.equal((await strict.policies.explain(["rm", "x"])).rule, "no-rm");
    const other = "version: 1\ndefault: allow\nnetwork_policies: {}\n";
    assert.equal((await strict.policies.explain(["rm", "x"], { policy: other })).verdict, "ALLOW");
    const dear = "version: 1\ndefault: deny\ncommands: [{allow: [make], cost: \"<=0.5\"}]\n";
    assert.equal((await strict.policies.explain(["make"], { policy: dear, cost: "0.50" })).verdict, "ALLOW");
    assert.equal((await strict.policies.explain(["make"], { policy: dear })).verdict, "DENY");
    assert.deepEqual((await strict.policies.explain(["ls"])).would_be_refused, []);
    assert.equal((await strict.policies.check("version: 1\nnonsense: 2\n")).error.line, 2);
  });
});

describe("ports", () => {
  test("a server inside has an address for a browser", async () => {
    await withSandbox(brig, async (sandbox) => {
      await sandbox.files.write("/sandbox/tmp/serve", `
        use IO::Socket::INET;
        $| = 1;
        my $server = IO::Socket::INET->new(LocalAddr => "127.0.0.1", LocalPort => 3000, Listen => 5) or die;
        print "up";
        while (my $client = $server->accept) {
            my $asked = <$client>;
            print $client "HTTP/1.1 200 OK\\r\\nContent-Length: 6\\r\\nConnection: close\\r\\n\\r\\ninside";
            close $client;
        }`);
      const job = await sandbox.detach(["perl", "/sandbox/tmp/serve"]);
      for await (const event of job.follow()) if (event.event === "stdout") break;
      const preview = await sandbox.preview(3000, 60_000);
      assert.equal(await (await fetch(TEST_URL + preview.path)).text(), "inside");
      assert.equal((await brig.receipts.show(preview.receipt_id)).kind, "outcome");
      await job.send("SIGKILL");
    });
  });
});

describe("usage", () => {
  test("is asked for by day and principal", async (t) => {
    const asked = [];
    const url = await server(t, (request, answer) => {
      asked.push(request.url);
      answer.setHeader("content-type", "application/json").end('{"usage":[{"day":"2026-11-16","principal":"ci","commands":2}]}');
    });
    const [used] = await new Brig({ baseUrl: url }).usage({ since: "2026-11-01", principal: "ci" });
    assert.deepEqual([used.day, used.commands], ["2026-11-16", 2]);
    assert.deepEqual(asked, ["/v1/usage?since=2026-11-01&principal=ci"]);
  });
});

describe("images and the machine", () => {
  test("images are listed, the machine is looked at", async () => {
    assert.deepEqual(await brig.images.list(), []);
    await assert.rejects(brig.images.show("nothing:here"), sdk.NotFoundError);
    assert.ok(Object.keys(await brig.doctor()).length > 0);
  });
});

describe("much input", () => {
  test("goes through a WebSocket at the command's pace, and orders still arrive", async () => {
    await withSandbox(brig, async (sandbox) => {
      const count = await sandbox.open(["wc", "-c"]);
      const writing = (async () => {
        for (let i = 0; i < 40; i++) await count.write(new Uint8Array(100_000));
        count.end();
      })();
      let text = "";
      for await (const event of count) if (event.event === "stdout") text += event.text;
      await writing;
      assert.equal(text.trim(), "4000000");
      const deaf = await sandbox.open(["sleep", "300"]);
      const stuck = deaf.write(new Uint8Array(3_000_000));
      setTimeout(() => deaf.signal("SIGKILL"), 200);
      assert.equal((await deaf.wait()).signal, 9);
      await stuck;
    });
  });
});

describe("the environment", () => {
  test("says where the daemon is, and its token goes nowhere else", async (t) => {
    const set = (name, value) => {
      const before = process.env[name];
      process.env[name] = value;
      t.after(() => (before === undefined ? delete process.env[name] : (process.env[name] = before)));
    };
    set("BRIG_SOCKET", TEST_SOCKET);
    assert.match((await new Brig().whoami()).principal, /^uid:/);
    set("BRIG_URL", TEST_URL);
    set("BRIG_TOKEN", TEST_TOKEN);
    assert.match((await new Brig().whoami()).principal, /^token:/);
    await assert.rejects(new Brig({ baseUrl: TEST_URL }).whoami(), sdk.UnauthenticatedError);
  });
});

describe("tokens", () => {
  test("they are made, listed and revoked", async () => {
    const made = await brig.tokens.create({ scopes: ["read"], principal: "ci", expires_in_s: 600 });
    const ci = new Brig({ baseUrl: TEST_URL, token: made.token });
    assert.equal((await ci.whoami()).principal, "ci");
    assert.ok((await brig.tokens.list()).some((token) => token.token_id === made.token_id));
    assert.ok((await brig.tokens.revoke(made.token_id)).revoked_at);
    await assert.rejects(ci.whoami(), sdk.UnauthenticatedError);
  });
});

describe("the platform's own WebSocket", () => {
  // Node 20 has one behind a flag.
  const inside = (code) =>
    execFileSync(process.execPath, ["--experimental-websocket", "--input-type=module", "-e", code], {
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, SDK: new URL("../../sdk/typescript/dist/index.js", import.meta.url).href },
    });

  test("brings its token as a subprotocol, which does not come back", () => {
    const out = inside(`
      const { Brig } = await import(process.env.SDK);
      const brig = new Brig({ baseUrl: process.env.TEST_URL, token: process.env.TEST_TOKEN });
      const sandbox = await brig.sandboxes.create();
      const session = await sandbox.open(["cat"], { platformSocket: true });
      await session.write("through the platform\\n");
      session.end();
      for await (const event of session) if (event.event === "stdout") process.stdout.write(event.text);
      const ws = new WebSocket(process.env.TEST_URL.replace("http", "ws") + "/v1/sandboxes/" + sandbox.id + "/exec",
        ["brig.v1", "brig.bearer." + process.env.TEST_TOKEN]);
      await new Promise((resolve) => (ws.onopen = resolve));
      console.log("chosen:", ws.protocol);
      ws.close();
      await sandbox.destroy();`);
    assert.equal(out, "through the platform\nchosen: brig.v1\n");
  });

  test("and is refused with a wrong one, with two, and without one", () => {
    const out = inside(`
      const refused = (protocols) => new Promise((resolve) => {
        const ws = new WebSocket(process.env.TEST_URL.replace("http", "ws") + "/v1/sandboxes/x/exec", protocols);
        ws.onopen = () => resolve("open");
        ws.onclose = ws.onerror = () => resolve("refused");
      });
      const good = "brig.bearer." + process.env.TEST_TOKEN;
      console.log(await refused(["brig.v1", "brig.bearer.wrong"]), await refused(["brig.v1", good, good + "x"]),
        await refused(["brig.v1"]), await refused(["brig.v1", "brig.bearer."]));`);
    assert.equal(out, "refused refused refused refused\n");
  });
});

after(() => {
  const left = JSON.parse(execFileSync(BRIG, ["sandbox", "list", "--json"], { encoding: "utf8" }));
  assert.deepEqual(left.sandboxes, []);
});
