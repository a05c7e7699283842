// SPDX-License-Identifier: Apache-2.0
// What the library's readme and examples show is what happens.

import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { test } from "node:test";

const sdk = fileURLToPath(new URL("../../sdk/typescript", import.meta.url));
const { BRIG_HOME, TEST_STRICT_TOKEN, TEST_TOKEN, TEST_URL } = process.env;
const env = {
  ...process.env,
  BRIG_URL: TEST_URL,
  BRIG_TOKEN: TEST_TOKEN,
  STRICT_TOKEN: TEST_STRICT_TOKEN,
  RECEIPTS_PUB: `${BRIG_HOME}/receipts.pub`,
};

/* As somebody has it who installed the library beside @mastra/core. */
mkdirSync("user/node_modules/@brig", { recursive: true });
symlinkSync(sdk, "user/node_modules/@brig/sdk");
symlinkSync(`${sdk}/node_modules/@mastra`, "user/node_modules/@mastra");

const run = (file, ...args) => spawnSync(process.execPath, [file, ...args], { cwd: "user", encoding: "utf8", env, timeout: 60_000 });
/* "…" stands for any text. */
const pattern = (text) => new RegExp(`^${text.split("…").map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join(".*")}$`);

const readme = readFileSync(`${sdk}/README.md`, "utf8");
const blocks = [...readme.matchAll(/^## (.*)$|^```js\n([\s\S]*?)^```\n\n```text\n([\s\S]*?)^```$/gm)];
let title = "";
let count = 0;

for (const [, heading, code, wanted] of blocks) {
  title = heading ?? title;
  if (code === undefined) continue;
  const name = `block-${++count}.mjs`;
  test(`README: ${title} (${count})`, () => {
    writeFileSync(`user/${name}`, code);
    const done = run(name);
    assert.equal(done.status, 0, done.stderr);
    assert.match(done.stdout, pattern(wanted), done.stdout);
  });
}

test("every block of the README is run", () => {
  assert.equal(count, readme.match(/^```js$/gm).length);
});

const examples = {
  "stream.mjs": [[], /^Hello from a sandbox\n$/],
  "try-in-parallel.mjs": [[], /^sort: 1 10\nsort -r: 9 8\nsort -n: 1 2\n$/],
  "follow-receipts.mjs": [["3"], /^1 \w+ \S+ ALLOW genuine\n2 .* genuine\n3 .* genuine\n$/],
};

test("every example runs", () => {
  assert.deepEqual(readdirSync(`${sdk}/examples`).sort(), Object.keys(examples).sort());
  for (const [name, [args, wanted]] of Object.entries(examples)) {
    const done = run(`node_modules/@brig/sdk/examples/${name}`, ...args);
    assert.equal(done.status, 0, `${name}: ${done.stderr}`);
    assert.match(done.stdout, wanted, name);
  }
  const failing = run("node_modules/@brig/sdk/examples/stream.mjs", "sh", "-c", "echo e >&2; exit 6");
  assert.deepEqual([failing.status, failing.stderr], [6, "e\n"]);
});
