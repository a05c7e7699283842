// SPDX-License-Identifier: Apache-2.0
// The sandbox for @mastra/core, inside a Workspace of the real package, on the daemon.

import assert from "node:assert/strict";
import { test } from "node:test";

import { createWorkspaceTools, MastraSandbox, Workspace, WORKSPACE_TOOLS } from "@mastra/core/workspace";

import { Brig, DeniedError } from "../../sdk/typescript/dist/index.js";
import { BrigSandbox } from "../../sdk/typescript/dist/mastra.js";

const { TEST_STRICT_TOKEN, TEST_TOKEN, TEST_URL } = process.env;
const brig = new Brig({ baseUrl: TEST_URL, token: TEST_TOKEN });

async function withSandbox(options, work) {
  const sandbox = new BrigSandbox({ brig, ...options });
  try {
    await work(sandbox);
  } finally {
    await sandbox._destroy();
  }
}

test("a Workspace runs commands in it, each with its receipt", async () => {
  await withSandbox({ env: { WHO: "mastra" } }, async (sandbox) => {
    assert.ok(sandbox instanceof MastraSandbox);
    const workspace = new Workspace({ sandbox });
    await workspace.init();
    assert.equal(sandbox.status, "running");
    let seen = "";
    const result = await sandbox.executeCommand("echo $WHO; echo e >&2; exit 4", [], { onStdout: (text) => (seen += text) });
    assert.deepEqual([result.success, result.exitCode, result.stdout, result.stderr, seen], [false, 4, "mastra\n", "e\n", "mastra\n"]);
    const words = await sandbox.executeCommand("printf", ["%s|", "a b", "$WHO", "it's"], { cwd: "/tmp" });
    assert.equal(words.stdout, "a b|$WHO|it's|");
    const [receipt] = await brig.receipts.list({ limit: 1 });
    assert.deepEqual([receipt.kind, receipt.action, receipt.outcome.exit_code], ["outcome", "exec", 0]);
    const late = await sandbox.executeCommand("sleep 60", [], { timeout: 200 });
    assert.deepEqual([late.timedOut, late.exitCode], [true, 124]);
    sandbox.setEnv((env) => ({ ...env, WHO: "later" }));
    assert.equal((await sandbox.executeCommand("echo $WHO")).stdout, "later\n");
  });
});

test("the tools an agent gets from the Workspace work", async () => {
  await withSandbox({}, async (sandbox) => {
    const workspace = new Workspace({ sandbox });
    await workspace.init();
    const tools = await createWorkspaceTools(workspace);
    const names = WORKSPACE_TOOLS.SANDBOX;
    const run = (name, input) => tools[name].execute(input, { workspace });
    assert.match(String(await run(names.EXECUTE_COMMAND, { command: "echo from a tool" })), /from a tool/);
    const started = String(await run(names.EXECUTE_COMMAND, { command: "echo up; sleep 300", background: true }));
    const { pid } = (await sandbox.processes.list())[0];
    assert.ok(started.includes(pid));
    while (!(await sandbox.processes.get(pid)).stdout) await new Promise((resolve) => setTimeout(resolve, 20));
    assert.match(String(await run(names.GET_PROCESS_OUTPUT, { pid })), /up/);
    await run(names.KILL_PROCESS, { pid });
    // It is on its way out when it has been told.
    while ((await sandbox.box.show()).processes !== 1) await new Promise((resolve) => setTimeout(resolve, 20));
  });
});

test("processes have input, are listed, killed, and end with an abort", async () => {
  await withSandbox({}, async (sandbox) => {
    const cat = await sandbox.processes.spawn("cat");
    await cat.sendStdin("one\n");
    await cat.sendStdin("two\n");
    assert.deepEqual((await sandbox.processes.list()).map((p) => [p.command, p.running]), [["cat", true]]);
    await cat.closeStdin();
    assert.equal((await cat.wait()).stdout, "one\ntwo\n");
    await assert.rejects(cat.sendStdin("more"), /has ended/);

    const sleeper = await sandbox.processes.spawn("sleep 300");
    assert.equal(await sandbox.processes.kill(sleeper.pid), true);
    const end = await sleeper.wait();
    assert.deepEqual([end.killed, end.exitCode], [true, 137]);

    const abort = new AbortController();
    const aborted = sandbox.executeCommand("sleep 300", [], { abortSignal: abort.signal });
    setTimeout(() => abort.abort(), 100);
    assert.equal((await aborted).killed, true);
    const silent = await sandbox.processes.spawn("cat", { stdinMode: "ignore" });
    assert.equal((await silent.wait()).exitCode, 0);
    await assert.rejects(silent.sendStdin("x"));
  });
});

test("a refusal of the policy is an error with its receipt", async () => {
  const strict = new Brig({ baseUrl: TEST_URL, token: TEST_STRICT_TOKEN });
  await withSandbox({ brig: strict }, async (sandbox) => {
    const error = await sandbox.executeCommand("rm", ["x"]).catch((e) => e);
    assert.ok(error instanceof DeniedError);
    assert.equal((await strict.receipts.show(error.details.receipt_id)).rule, "no-rm");
  });
});

test("files are written in one call, with folders and modes", async () => {
  await withSandbox({}, async (sandbox) => {
    await sandbox.writeFiles([
      { path: "/sandbox/tmp/a/b/run.sh", content: "#!/bin/sh\necho ran\n", mode: 0o755 },
      { path: "/sandbox/tmp/a/data", content: Buffer.from([1, 2, 3]) },
    ]);
    assert.equal((await sandbox.executeCommand("/sandbox/tmp/a/b/run.sh")).stdout, "ran\n");
    assert.equal((await sandbox.box.files.stat("/sandbox/tmp/a/data")).size, 3);
    await assert.rejects(sandbox.writeFiles([{ path: "/sandbox/tmp/x", content: "", mode: 0o4755 }]));
  });
});

test("it stops, goes on, is found again by its id, and says how it is", async () => {
  const id = `again-${process.pid}`;
  await withSandbox({ id }, async (sandbox) => {
    await sandbox.executeCommand("echo kept >/sandbox/tmp/kept");
    await sandbox._stop();
    assert.equal((await sandbox.box.show()).state, "paused");
    const again = new BrigSandbox({ brig, id });
    assert.deepEqual(await again._start(), { outcome: "connected" });
    assert.equal((await again.executeCommand("cat /sandbox/tmp/kept")).stdout, "kept\n");
    const info = await again.getInfo();
    assert.deepEqual([info.provider, info.status, info.metadata.state], ["brig", "running", "running"]);
    assert.match(again.getInstructions(), /policy/);
  });
});

test("a checkpoint seeds a clone", async () => {
  const checkpointName = `point-${process.pid}`;
  await withSandbox({ checkpointName }, async (sandbox) => {
    await sandbox.executeCommand("echo base >/sandbox/tmp/base");
    await sandbox.snapshot();
    const clone = sandbox.clone({ env: { X: "1" } });
    try {
      assert.deepEqual(await clone._start(), { outcome: "created" });
      assert.equal((await clone.executeCommand("cat /sandbox/tmp/base; echo $X")).stdout, "base\n1\n");
      assert.notEqual(clone.id, sandbox.id);
    } finally {
      await clone._destroy();
    }
    const seeded = sandbox.clone({ checkpointName: "none-yet", seedCheckpointName: checkpointName });
    await seeded._start();
    assert.equal((await seeded.executeCommand("cat /sandbox/tmp/base")).stdout, "base\n");
    await seeded._destroy();
    await brig.snapshots.remove(checkpointName);
  });
});
