// SPDX-License-Identifier: Apache-2.0
// Runs its arguments in a sandbox, streams what they say, ends as they end.
//
//     node examples/stream.mjs sh -c 'for i in 1 2 3; do echo $i; sleep 1; done'

import { Brig, DeniedError } from "@brig/sdk";

const command = process.argv.slice(2);
const brig = new Brig();

try {
  const result = await brig.run(command.length ? command : ["echo", "Hello from a sandbox"], {
    onStdout: (event) => process.stdout.write(event.bytes),
    onStderr: (event) => process.stderr.write(event.bytes),
  });
  process.exitCode = result.exit_code ?? 128 + (result.signal ?? 0);
} catch (error) {
  if (!(error instanceof DeniedError)) throw error;
  console.error(`${error.message} (${error.reason_code}, receipt ${error.details.receipt_id})`);
  process.exitCode = 77;
}
