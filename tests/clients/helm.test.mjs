// SPDX-License-Identifier: Apache-2.0
// The adapter with HELM's shape against the daemon, and inside a Workspace of @mastra/core.

import assert from "node:assert/strict";
import { test } from "node:test";

import { Workspace } from "@mastra/core/workspace";

import { Brig, receiptFault } from "../../sdk/typescript/dist/index.js";
import { HelmMastraSandbox, HelmSandboxDenyError } from "../../sdk/typescript/dist/helm.js";
import { readFileSync } from "node:fs";

const { BRIG_HOME, TEST_STRICT_TOKEN, TEST_TOKEN, TEST_URL } = process.env;
const brig = new Brig({ baseUrl: TEST_URL, token: TEST_TOKEN });

async function withSandbox(config, work) {
  const sandbox = new HelmMastraSandbox({ baseUrl: TEST_URL, apiKey: TEST_TOKEN, daytonaApiKey: TEST_TOKEN, ...config });
  try {
    await work(sandbox);
  } finally {
    await sandbox.destroy();
  }
}

test("a command is approved, run without a shell, and has receipts of the ledger", async () => {
  await withSandbox({}, async (sandbox) => {
    const result = await sandbox.exec({ command: ["printf", "%s|", "a; echo INJECTED", 'print("x")'] });
    assert.deepEqual([result.stdout, result.exitCode, result.timedOut], ['a; echo INJECTED|print("x")|', 0, false]);
    const receipt = await brig.receipts.show(result.receipt.receipt.receipt_id);
    assert.equal(receipt.signature, result.receipt.receipt.signature);
    assert.equal(await receiptFault(receipt, readFileSync(`${BRIG_HOME}/receipts.pub`, "utf8")), undefined);
    assert.equal(result.receipt.receipt.status, "APPROVED");
    const next = await sandbox.exec({ command: ["sh", "-c", "echo $A >&2; pwd; exit 3"], env: { A: "env" } });
    assert.deepEqual([next.stderr, next.exitCode], ["env\n", 3]);
    assert.ok(next.receipt.receipt.lamport_clock > result.receipt.receipt.lamport_clock);
    assert.notEqual(next.receipt.requestHash, result.receipt.requestHash);
  });
});

test("files go in and out", async () => {
  await withSandbox({}, async (sandbox) => {
    await sandbox.writeFile("/sandbox/tmp/a b.txt", "content\n");
    assert.equal(await sandbox.readFile("/sandbox/tmp/a b.txt"), "content\n");
    assert.equal((await sandbox.exec({ command: ["cat", "/sandbox/tmp/a b.txt"] })).stdout, "content\n");
    await assert.rejects(sandbox.readFile("/sandbox/tmp/missing"), /404/);
  });
});

test("what the policy refuses never runs, and says by which reason", async () => {
  const told = [];
  await withSandbox({ apiKey: TEST_STRICT_TOKEN, daytonaApiKey: TEST_STRICT_TOKEN, failClosed: false, onDeny: (d) => told.push(d) }, async (sandbox) => {
    const error = await sandbox.exec({ command: ["rm", "x"] }).catch((e) => e);
    assert.ok(error instanceof HelmSandboxDenyError);
    assert.deepEqual([error.denial.reasonCode, told.length], ["DENY_POLICY_VIOLATION", 1]);
    assert.equal(sandbox.getReceipts().length, 0);
  });
});

test("what nobody approved does not run, whoever asks", async () => {
  await withSandbox({}, async (sandbox) => {
    await sandbox.init();
    const { sandboxId } = sandbox.getInfo().metadata;
    const answer = await fetch(`${TEST_URL}/sandbox/${sandboxId}/process/execute`, {
      method: "POST",
      headers: { authorization: `Bearer ${TEST_TOKEN}`, "content-type": "application/json" },
      body: JSON.stringify({ command: "echo never approved", timeout: 5 }),
    });
    assert.equal(answer.status, 403);
    assert.ok((await answer.json()).error.reason_code);
  });
});

test("without a judge nothing runs here, not even when the adapter would let it", async () => {
  const nobody = "http://127.0.0.1:1";
  await withSandbox({ baseUrl: nobody, daytonaUrl: TEST_URL, failClosed: false }, async (sandbox) => {
    await assert.rejects(sandbox.exec({ command: ["echo", "x"] }), HelmSandboxDenyError);
  });
  await withSandbox({ baseUrl: nobody, daytonaUrl: TEST_URL }, async (sandbox) => {
    await assert.rejects(sandbox.exec({ command: ["echo", "x"] }), (error) => !(error instanceof HelmSandboxDenyError));
  });
});

test("it is a sandbox for a Workspace", async () => {
  await withSandbox({}, async (sandbox) => {
    const workspace = new Workspace({ sandbox });
    await workspace.init();
    assert.equal(sandbox.status, "running");
    const result = await workspace.sandbox.executeCommand("echo one; echo two >&2", [], { timeout: 10_000 });
    assert.deepEqual([result.success, result.stdout, result.stderr], [true, "one\n", "two\n"]);
    await workspace.sandbox.writeFiles([{ path: "/sandbox/tmp/f", content: "x" }]);
    assert.equal((await workspace.sandbox.executeCommand("cat", ["/sandbox/tmp/f"])).stdout, "x");
    assert.equal(sandbox.getReceipts().length, 2);
  });
});
