/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private to flow/record: names in a bundle, in the order in which they stand there. */

#define BUNDLE_INDEX "00_INDEX.json"
#define BUNDLE_SCORE "01_SCORE.json"
#define BUNDLE_RECEIPTS "02_PROOFGRAPH/receipts.jsonl"
#define BUNDLE_KEY "07_ATTESTATIONS/receipts.pub"

#define BUNDLE_FORMAT "3.0.0"
#define BUNDLE_PROFILE "brig"
#define BUNDLE_ALL "ledger" /* instead of a session: all there is */
