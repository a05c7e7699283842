// SPDX-License-Identifier: Apache-2.0

export { Brig, Sandboxes, type RunOptions } from "./client.js";
export {
  Advisory,
  AdvisoryActions,
  AdvisoryList,
  advisoryPreimage,
  AdvisorySession,
  AdvisorySessions,
  Gate,
  gatePreimage,
} from "./advisory.js";
export { Images } from "./images.js";
export {
  Approvals,
  Freeze,
  Policies,
  Tokens,
  type ApprovalPage,
  type ApprovalQuery,
  type FreezeSpec,
  type Word,
} from "./people.js";
export { Detached, Sandbox, type ExecOptions, type SessionOptions } from "./sandbox.js";
export { Files } from "./files.js";
export { Receipts, type ReceiptQuery, type TailQuery } from "./receipts.js";
export { Snapshots, type SnapshotArchive } from "./snapshots.js";
export { Session, type Signal } from "./session.js";
export {
  Execution,
  OutputEvent,
  type ExecEvent,
  type ExitEvent,
  type OutputCallbacks,
  type StartEvent,
} from "./events.js";
export * from "./errors.js";
export * from "./types.js";
export type * from "./advisory-types.js";
export { canonicalize } from "./canonical.js";
export {
  receiptFault,
  verifyReceipts,
  type Fault,
  type FaultKind,
  type ReceiptSource,
  type Verification,
  type VerifyOptions,
} from "./verify.js";
export type { ByteSource } from "./bytes.js";
export type { BrigOptions, CallOptions, CreateOptions } from "./wire.js";
