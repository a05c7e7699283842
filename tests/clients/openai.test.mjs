// SPDX-License-Identifier: Apache-2.0
// The openai package against /v1/chat/completions: commands and tool calls are judged and recorded.

import assert from "node:assert/strict";
import { test } from "node:test";

import OpenAI from "openai";

import { Brig } from "../../sdk/typescript/dist/index.js";

const { TEST_STRICT_TOKEN, TEST_URL } = process.env;
const openai = new OpenAI({ baseURL: `${TEST_URL}/v1`, apiKey: TEST_STRICT_TOKEN, maxRetries: 0 });
const brig = new Brig({ baseUrl: TEST_URL, token: TEST_STRICT_TOKEN });
const tools = [{ type: "function", function: { name: "sandbox_exec", parameters: { type: "object" } } }];

const ask = (intent) =>
  openai.chat.completions
    .create({ model: "helm-governance", messages: [{ role: "user", content: JSON.stringify(intent) }], tools })
    .withResponse();
const exec = (...command) => ask({ type: "sandbox_exec_intent", provider: "daytona", sandbox_id: "elsewhere", command });

test("an allowed command is a tool call with the words that were judged", async () => {
  const { data, response } = await exec("echo", "hi");
  assert.equal(data.model, "helm-governance");
  assert.equal(data.choices[0].finish_reason, "tool_calls");
  assert.equal(data.choices[0].message.tool_calls[0].function.name, "sandbox_exec");
  assert.deepEqual(JSON.parse(data.choices[0].message.tool_calls[0].function.arguments).command, ["echo", "hi"]);
  assert.equal(response.headers.get("x-helm-status"), "APPROVED");
  const receipt = await brig.receipts.show(response.headers.get("x-helm-receipt-id"));
  assert.equal(receipt.verdict, "ALLOW");
  assert.equal(receipt.signature, response.headers.get("x-helm-signature"));
  assert.equal(String(receipt.lamport_clock), response.headers.get("x-helm-lamport-clock"));
});

test("a refused one is an answer without a call, and a denial in the ledger", async () => {
  const { data, response } = await exec("rm", "-rf", "/");
  assert.equal(data.choices[0].finish_reason, "stop");
  assert.equal(data.choices[0].message.tool_calls, undefined);
  assert.equal(response.headers.get("x-helm-status"), "DENIED");
  const receipt = await brig.receipts.show(response.headers.get("x-helm-receipt-id"));
  assert.deepEqual([receipt.verdict, receipt.rule], ["DENY", "no-rm"]);
});

test("what a person has to confirm is refused as well", async () => {
  const { response } = await exec("git", "push");
  assert.equal(response.headers.get("x-helm-status"), "DENIED");
  assert.equal(response.headers.get("x-helm-reason-code"), "DENY_APPROVAL_REQUIRED");
});

test("a tool call of any name is judged", async () => {
  const { response } = await ask({ type: "tool_call_intent", tool: "search", arguments: { q: "x" } });
  assert.ok(["APPROVED", "DENIED"].includes(response.headers.get("x-helm-status")));
  assert.ok(await brig.receipts.show(response.headers.get("x-helm-receipt-id")));
});

test("refusals of the request itself are the package's own errors", async () => {
  await assert.rejects(ask({ type: "no_such_intent" }), OpenAI.BadRequestError);
  const nobody = new OpenAI({ baseURL: `${TEST_URL}/v1`, apiKey: "wrong", maxRetries: 0 });
  await assert.rejects(nobody.chat.completions.create({ model: "helm-governance", messages: [] }), OpenAI.AuthenticationError);
});
