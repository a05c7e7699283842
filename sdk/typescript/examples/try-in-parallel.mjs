// SPDX-License-Identifier: Apache-2.0
// Prepares a sandbox once, tries several things in copies of it at the same time, and keeps the best.

import { Brig } from "@brig/sdk";

const brig = new Brig();
const tries = ["sort", "sort -r", "sort -n"];

const base = await brig.sandboxes.create();
await base.exec(["sh", "-c", "seq 20 | shuf --random-source=/etc/hostname >/sandbox/tmp/numbers"]);
const forks = await base.fork({ count: tries.length });
try {
  const results = await Promise.all(
    forks.map(async (sandbox, i) => {
      const { stdout } = await sandbox.exec(["sh", "-c", `${tries[i]} /sandbox/tmp/numbers | head -n 2 | xargs`]);
      return [tries[i], stdout.trim()];
    }),
  );
  for (const [name, output] of results) console.log(`${name}: ${output}`);
} finally {
  await Promise.all([base, ...forks].map((sandbox) => sandbox.destroy()));
}
