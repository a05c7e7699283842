// SPDX-License-Identifier: Apache-2.0
// Tells what is decided, as it is decided, and checks each receipt on the way.
//
//     RECEIPTS_PUB=receipts.pub node examples/follow-receipts.mjs [HOW-MANY]

import { readFile } from "node:fs/promises";
import { Brig, receiptFault } from "@brig/sdk";

const key = await readFile(process.env.RECEIPTS_PUB ?? "receipts.pub", "utf8");
const limit = Number(process.argv[2] ?? 0);

for await (const receipt of new Brig().receipts.tail({ after: 0, ...(limit ? { limit } : {}) })) {
  const fault = await receiptFault(receipt, key);
  console.log(receipt.seq, receipt.kind, receipt.action ?? "run", receipt.verdict, fault ?? "genuine");
}
