// SPDX-License-Identifier: Apache-2.0
// The daemon's description of itself: valid OpenAPI 3.1, and good enough to make a client from.

import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

import { Validator } from "@seriousme/openapi-schema-validator";
import openapiTS, { astToString } from "openapi-typescript";

const { TEST_TOKEN, TEST_URL } = process.env;
const packages = fileURLToPath(new URL("node_modules", import.meta.url));

const document = await (
  await fetch(`${TEST_URL}/v1/openapi.json`, { headers: { authorization: `Bearer ${TEST_TOKEN}` } })
).json();

test("the description is valid OpenAPI 3.1", async () => {
  const validator = new Validator();
  const result = await validator.validate(structuredClone(document));
  assert.deepEqual(result.errors ?? [], []);
  assert.equal(result.valid, true);
  assert.equal(validator.version, "3.1");
});

test("every operation has a name of its own, its parameters, an answer and errors", () => {
  const names = new Set();
  for (const [path, item] of Object.entries(document.paths))
    for (const [method, operation] of Object.entries(item)) {
      const where = `${method} ${path}`;
      assert.ok(operation.operationId && !names.has(operation.operationId), where);
      names.add(operation.operationId);
      assert.ok(operation.summary && operation.responses.default, where);
      const named = (operation.parameters ?? []).filter((p) => p.in === "path").map((p) => p.name);
      assert.deepEqual(named, [...path.matchAll(/\{(\w+)\}/g)].map((m) => m[1]), where);
    }
  assert.ok(names.size > 30);
});

// Types by openapi-typescript, requests by openapi-fetch; the compiler checks names and bodies.
const PROGRAM = `
import createClient from "openapi-fetch";
import type { paths } from "./schema.js";

const client = createClient<paths>({
  baseUrl: process.env["TEST_URL"] ?? "",
  headers: { Authorization: "Bearer " + (process.env["TEST_TOKEN"] ?? "") },
});

const made = await client.POST("/v1/sandboxes", { body: { labels: { by: "generated" }, limits: { pids: 64 } } });
if (!made.data) throw new Error(JSON.stringify(made.error));
const id = String(made.data["sandbox_id"]);
const ran = await client.POST("/v1/sandboxes/{id}/exec", {
  params: { path: { id }, header: { "Idempotency-Key": "generated-" + id } },
  body: { command: ["echo", "from a generated client"] },
});
const done = typeof ran.data === "object" && "exit_code" in ran.data ? ran.data : undefined; // else detached, or events
console.log(ran.response.status, done?.exit_code, done?.stdout);
const again = await client.POST("/v1/sandboxes/{id}/exec", {
  params: { path: { id }, header: { "Idempotency-Key": "generated-" + id } },
  body: { command: ["echo", "from a generated client"] },
});
console.log(again.response.headers.get("idempotent-replayed"));
const wrong = await client.POST("/v1/sandboxes/{id}/exec", { params: { path: { id } }, body: { command: [] } });
console.log(wrong.response.status, wrong.error?.error?.code);
const receipts = await client.GET("/v1/receipts", { params: { query: { limit: 3 } } });
console.log((receipts.data?.["receipts"] as unknown[]).length);
const ended = await client.DELETE("/v1/sandboxes/{id}", { params: { path: { id } } });
console.log(ended.data?.["done"]);
`;

const MISTAKES = `
import createClient from "openapi-fetch";
import type { paths } from "./schema.js";
const client = createClient<paths>();
await client.POST("/v1/runs", { body: { command: "not a list" } });
await client.POST("/v1/nowhere", {});
await client.GET("/v1/sandboxes/{id}", {});
`;

test("a generated client makes, uses and ends a sandbox, and its types know the mistakes", async () => {
  mkdirSync("generated");
  symlinkSync(packages, "generated/node_modules");
  writeFileSync("generated/package.json", '{"type":"module"}');
  writeFileSync("generated/schema.d.ts", astToString(await openapiTS(document)));
  writeFileSync("generated/client.ts", PROGRAM);
  writeFileSync("generated/mistakes.ts", MISTAKES);
  const tsc = spawnSync(process.execPath, [`${packages}/typescript/bin/tsc`, "--strict", "--target", "es2022", "--module", "nodenext",
    "--skipLibCheck", "--types", "node", "client.ts", "mistakes.ts"], { cwd: "generated", encoding: "utf8" });
  const places = [...tsc.stdout.matchAll(/^(\w+)\.ts\((\d+),/gm)].map(([, file, line]) => `${file} ${line}`);
  assert.deepEqual([...new Set(places)], ["mistakes 5", "mistakes 6", "mistakes 7"], tsc.stdout);
  const out = execFileSync(process.execPath, ["generated/client.js"], { encoding: "utf8" });
  assert.equal(out, "200 0 from a generated client\n\ntrue\n400 invalid\n3\ntrue\n");
});

// What the library calls a shape of the document. Whoever adds a member there adds it here.
const SHAPES = {
  AdvisoryCheck: "AdvisoryCheck",
  AdvisoryFinding: "AdvisoryFinding",
  AdvisoryCounts: 'AdvisoryReport["counts"]',
  AdvisorySession: "AdvisoryReport",
  AdvisoryBroken: "AdvisoryBroken",
  AdvisorySessions: "AdvisorySessionPage",
  AdvisoryTurn: "AdvisoryTurn",
  AdvisoryShown: "AdvisoryShown",
  AdvisoryEnvelope: "AdvisoryEnvelope",
  AdvisoryAction: "AdvisoryAction",
  AdvisoryReading: "AdvisoryReading",
  AdvisoryTarget: 'AdvisoryReading["target_now"]',
  AdvisoryActionShown: "AdvisoryActionShown",
  AdvisoryActions: "AdvisoryActionPage",
  AdvisoryJudged: "AdvisoryJudged",
  AdvisoryDifference: "AdvisoryDifference",
  AdvisoryReplay: "AdvisoryReplay",
  Gate: "GateReport",
  GateCondition: "GateCondition",
  GateRun: "GateRun",
  GateWord: "GateWord",
  GateSignatures: 'GateReport["signatures"]',
  GateWindow: 'GateReport["window"]',
  Budget: "Budget",
  BudgetAmount: "BudgetAmount",
  Budgets: "Budgets",
  Usage: "Usage",
};

// Older types, which say less: a text that may come as NAME_b64 is a text to them. No other member is missing.
const LOOSE = {
  Approval: "Approval",
  Change: "Change",
  Decision: "PolicyVerdict",
  Detached: "DetachedAnswer",
  Exec: "ExecInfo",
  FileEntry: "FileInfo",
  Moved: "Moved",
  Preview: "Preview",
  Process: "ProcessInfo",
  Run: "RunResult",
  Sandbox: "SandboxInfo",
  SeenCommand: "SeenCommand",
  Snapshot: "SnapshotInfo",
  SnapshotMade: "SnapshotMade",
  SnapshotRemoved: "SnapshotRemoved",
  Token: "TokenInfo",
};

test("the library's types have the members of the document, and no others", async () => {
  mkdirSync("shapes");
  symlinkSync(packages, "shapes/node_modules");
  writeFileSync("shapes/package.json", '{"type":"module"}');
  writeFileSync("shapes/schema.d.ts", astToString(await openapiTS(document)));
  const library = fileURLToPath(new URL("../../sdk/typescript/dist/index.js", import.meta.url));
  const head = [
    'import type { components } from "./schema.js";',
    `import type * as sdk from ${JSON.stringify(library)};`,
    'type Theirs = components["schemas"];',
    "type Optional<T> = { [K in keyof T]-?: {} extends Pick<T, K> ? K : never }[keyof T];",
    "type Equal<A, B> = [Exclude<A, B>, Exclude<B, A>] extends [never, never] ? true : never;",
    "type Same<A, B> = Equal<keyof A, keyof B> & Equal<Optional<A>, Optional<B>>;",
    "type Has<A, B> = [Exclude<Exclude<keyof A, keyof B>, `${string}_b64`>] extends [never] ? true : never;",
  ];
  // A line each, so that what does not compile names the shape.
  const lines = Object.entries(SHAPES).map(([theirs, ours]) =>
    `export const ${theirs}: [Theirs["${theirs}"], Same<Theirs["${theirs}"], sdk.${ours}>] = [null as unknown as sdk.${ours}, true];`);
  for (const [theirs, ours] of Object.entries(LOOSE)) lines.push(`export const ${theirs}: Has<Theirs["${theirs}"], sdk.${ours}> = true;`);
  const names = [...Object.keys(SHAPES), ...Object.keys(LOOSE)];
  writeFileSync("shapes/shapes.ts", [...head, ...lines, ""].join("\n"));
  const tsc = spawnSync(process.execPath, [`${packages}/typescript/bin/tsc`, "--strict", "--noEmit", "--target", "es2022", "--module", "nodenext",
    "--exactOptionalPropertyTypes", "--skipLibCheck", "--types", "node", "shapes.ts"], { cwd: "shapes", encoding: "utf8" });
  const wrong = [...tsc.stdout.matchAll(/^shapes\.ts\((\d+),/gm)].map(([, line]) => names[line - 1 - head.length]);
  assert.deepEqual([...new Set(wrong)], [], tsc.stdout);
  assert.equal(tsc.status, 0, tsc.stdout);
});
