// SPDX-License-Identifier: Apache-2.0

// What goes to the daemon and comes from it, under the names it has there (docs/api.md and
// /v1/openapi.json). Members that a newer daemon adds are passed on.

export type Verdict = "ALLOW" | "DENY" | "ASK";

/** What holds a limit, and who wanted it so. */
export interface Limit {
  value: number;
  means: string;
  origin: string;
}

export interface Limits {
  /** Thousandths of a processor. */
  cpu_millis?: number;
  memory_bytes?: number;
  pids?: number;
  disk_bytes?: number;
  inodes?: number;
  /** How long each command may take. */
  wall_ms?: number;
}

/** What any sandbox is made from. */
export interface SandboxSpec {
  provider?: string;
  /** An image that is there, or "host" for the machine's own system. */
  image?: string;
  env?: Record<string, string>;
  workdir?: string;
  /** SRC:DST[:ro|rw], folders of the machine; needs the scope "host". */
  mounts?: string[];
  /** DIR[:none|ro|rw|mirror]; needs the scope "host". */
  workspace?: string;
  /** "none": closed, whatever the policy says; "policy": by its rules, refused without. */
  network?: "none" | "policy";
  limits?: Limits;
}

/** What a sandbox that stays is made from. */
export interface CreateSandbox extends SandboxSpec {
  name?: string;
  labels?: Record<string, string>;
  scope?: "session" | "agent" | "shared";
  /** It ends so long after it was made or extended. */
  ttl_ms?: number;
  idle_ms?: number;
  lifetime_ms?: number;
  snapshot_id?: string;
}

export interface SandboxInfo {
  sandbox_id: string;
  name: string;
  state: string;
  provider: string;
  image: string;
  image_digest: string;
  base_snapshot_id: string;
  config_hash: string;
  policy_hash: string;
  preflight_hash: string;
  /** "none"; "policy": by its policy's rules; "lost": it has none until it is made again. */
  network: "none" | "policy" | "lost";
  created_at: string;
  expires_at: string;
  principal: string;
  /** "name=value" each. */
  labels: string[];
  scope: string;
  mounts: string[];
  workspace?: string;
  user?: string;
  pid: number;
  processes: number;
  cpu_us: number;
  memory_bytes: number;
  peak_memory_bytes: number;
  disk_bytes: number;
  disk_read_bytes: number;
  disk_written_bytes: number;
  /** Only in the answer to its making. */
  receipt_id?: string;
}

/** A sandbox was held, let go on, extended or ended. */
export interface Change {
  sandbox_id: string;
  action: string;
  done: boolean;
  failure?: string;
  receipt_id: string;
  duration_us: number;
}

export interface Posture {
  provider: string;
  provider_version: string;
  sandbox_spec_hash: string;
  image_digest: string;
  mounts_hash: string;
  egress_policy_hash: string;
  resource_limits_hash: string;
  preflight_hash: string;
  policy_hash: string;
}

/** How a command ended, and what is proven about it. */
export interface RunResult extends Posture {
  verdict: Verdict;
  reason_code: string;
  reason: string;
  /** Of its end alone, which reason_code is not for what was denied. */
  outcome_reason_code: string;
  policy_layer?: string;
  rule?: string;
  effect_class?: string;
  effect_risk?: string;
  /** Of the question a person was asked. */
  approval_id?: string;
  receipt_id: string;
  intent_receipt_id: string;
  decision_id: string;
  run_id: string;
  limits: Record<string, Limit>;
  /** null: a signal ended it. */
  exit_code: number | null;
  signal: number | null;
  timed_out: boolean;
  oom_killed: boolean;
  /** What was kept of it; empty when it was streamed. Bytes that are no text are in stdout_b64. */
  stdout: string;
  stderr: string;
  stdout_b64?: string;
  stderr_b64?: string;
  stdout_bytes: number;
  stderr_bytes: number;
  truncated: boolean;
  stdout_hash: string;
  stderr_hash: string;
  output_hash: string;
  duration_ms: number;
  cpu_us: number;
  peak_memory_bytes: number;
  disk_read_bytes: number;
  disk_written_bytes: number;
  /** What went out through the policy's network rules; lost: whoever counted ended before. */
  egress: { requests: number; refused: number; bytes_out: number; bytes_in: number; lost?: boolean; spent?: boolean };
  protected_changes?: { path: string; hash: string }[];
  protected_changes_count?: number;
  protected_complete?: boolean;
  lamport_clock: number;
  timestamp: string;
}

export interface DetachedAnswer extends Posture {
  exec_id: string;
  sandbox_id: string;
  verdict: Verdict;
  intent_receipt_id: string;
  decision_id: string;
}

export interface ExecInfo {
  exec_id: string;
  state: "running" | "ended" | "killed";
  detached: boolean;
  began_at: string;
  stdout_bytes?: number;
  stderr_bytes?: number;
  exit_code?: number | null;
  signal?: number | null;
}

export interface ProcessInfo {
  pid: number;
  exec: string;
  state: string;
  cpu_us: number;
  memory_bytes: number;
  command: string;
}

export interface ExecSpec {
  env?: Record<string, string>;
  workdir?: string;
  /** Its own time; the sandbox's by default. */
  timeout_ms?: number;
  /** Give it a terminal. */
  tty?: boolean;
  /** Wait so long for a person, if one must confirm it. */
  approval_wait_ms?: number;
  /** What it leaves running stays. */
  keep_background?: boolean;
}

export interface FileInfo {
  name: string;
  name_b64?: string;
  type: "file" | "directory" | "link" | "fifo" | "socket" | "device" | "unknown";
  /** Octal. */
  mode: string;
  size: number;
  mtime: string;
  uid: number;
  gid: number;
  target?: string;
}

/** A transfer, and the receipt of it. */
export interface Moved {
  sandbox_id: string;
  verb: string;
  path: string;
  bytes: number;
  count: number;
  skipped: number;
  hash?: string;
  tree_hash?: string;
  receipt_id: string;
  duration_us: number;
}

export interface FileListing extends Moved {
  entries: FileInfo[];
  truncated: boolean;
}

export interface FileChange {
  event: string;
  /** Of what changed in a folder. */
  name?: string;
  name_b64?: string;
}

export interface SnapshotInfo {
  snapshot_id: string;
  name: string;
  /** There a moment after it was taken. */
  digest: string;
  sandbox_id: string;
  created_at: string;
  principal: string;
  image: string;
  image_digest: string;
  layers: string[];
  stack: string[];
  live: boolean;
  held_us: number;
  bytes_copied: number;
  entries_copied: number;
}

/** One was taken, gone back to, or brought in. */
export interface SnapshotMade {
  sandbox_id: string;
  snapshot_id: string;
  live: boolean;
  /** For how long the sandbox was held still. */
  held_us: number;
  bytes_copied: number;
  entries_copied: number;
  action: string;
  done: boolean;
  failure?: string;
  receipt_id: string;
  duration_us: number;
}

export interface SnapshotRemoved {
  snapshot_id: string;
  /** false: something still stands on it. */
  freed: boolean;
  action: string;
  done: boolean;
  failure?: string;
  receipt_id: string;
  duration_us: number;
}

export interface ForkSpec {
  /** One by default. All of them are made, or none stays. */
  count?: number;
  /** NAME-1, NAME-2, … when there are several. */
  name?: string;
  labels?: Record<string, string>;
  ttl_ms?: number;
  idle_ms?: number;
  lifetime_ms?: number;
}

export interface ForkAnswer {
  snapshot_id: string;
  sandboxes: SandboxInfo[];
}

/** Whose new effects are refused; "" is everybody. */
export interface Frozen {
  tenant: string;
  principal: string;
  reason: string;
  receipt_id?: string;
  [member: string]: unknown;
}

export interface Receipt {
  v: number;
  kind: string;
  key_id: string;
  seq: number;
  prev_hash: string;
  lamport_clock: number;
  receipt_id: string;
  timestamp: string;
  run_id: string;
  tenant: string;
  principal: string;
  status: "APPROVED" | "DENIED" | "PENDING";
  verdict: Verdict;
  reason_code: string;
  hash: string;
  signature: string;
  [member: string]: unknown;
}

export interface ReceiptHead {
  v: number;
  kind: "head";
  key_id: string;
  seq: number;
  count: number;
  head_hash: string;
  timestamp: string;
  hash: string;
  signature: string;
}

/** What somebody said to it. */
export interface ApprovalWord {
  by: string;
  confirms: boolean;
  at: string;
  comment?: string;
  comment_b64?: string;
}

export interface Approval {
  approval_id: string;
  seq: number;
  state: "pending" | "confirmed" | "rejected" | "used" | "expired";
  requester: string;
  /** Binds all that would happen. */
  digest: string;
  asked_at: string;
  expires_at: string;
  decided_at?: string;
  decided_by?: string;
  comment?: string;
  /** Of people, one of whom may confirm it. */
  group?: string;
  may_confirm?: string[];
  /** Lists of other layers, each of which must name him, too. */
  may_confirm_also?: string[][];
  /** So many have to confirm it, and have. */
  quorum: number;
  confirmations: number;
  /** Without a comment it is no word. */
  reason_required: boolean;
  words?: ApprovalWord[];
  /** What would happen. */
  subject: Record<string, unknown>;
  /** Of the word that was just given. */
  receipt_id?: string;
}

export interface PolicyInfo {
  valid?: boolean;
  policy_hash?: string;
  /** What is wrong with one that is none. */
  error?: { line: number; column: number; message: string };
  [member: string]: unknown;
}

/** A simple command that rules see in a command. */
export interface SeenCommand {
  /** Bytes of the command's words with one blank between them. */
  start: number;
  end: number;
  known: "literal" | "partly known" | "opaque";
  /** It also, or only, runs something that cannot be seen. */
  hides: boolean;
  /** The first of them; a word that is no text is its bytes. */
  words: (string | { bytes_b64: string })[];
  words_count: number;
  within?: string;
  within_b64?: string;
}

export interface PolicyVerdict {
  verdict: Verdict;
  reason_code: string;
  reason: string;
  policy_layer?: string;
  rule?: string;
  line?: number;
  effect_class?: string;
  effect_risk?: string;
  policy_hash: string;
  not_enforceable?: string;
  requires_release?: string;
  release_runs?: number;
  /** What rules see in it: the first 64 commands. */
  seen: SeenCommand[];
  seen_count: number;
  /** Whatever else would stop the run now, in the order in which it meets it. */
  would_be_refused: Hindrance[];
}

/** A bundle that does not count, a freeze, a missing release, a budget. */
export interface Hindrance {
  reason_code: string;
  reason: string;
  policy_layer?: string;
}

export interface ImageInfo {
  names: string[];
  image_digest: string;
  config_digest: string;
  architecture: string;
  added: string;
  bytes: number;
  receipt_id?: string;
  [member: string]: unknown;
}

export interface PullImage {
  /** A name as docker knows it, or NAME@sha256:HEX. */
  image: string;
  username?: string;
  password?: string;
  insecure_http?: boolean;
  skip_devices?: boolean;
  timeout_ms?: number;
  stall_ms?: number;
}

/** An address that a browser can open without a token. */
export interface Preview {
  sandbox_id: string;
  port: number;
  path: string;
  url: string;
  expires_at: string;
  receipt_id: string;
}

/** What a principal used on a day: sums over the ledger. */
export interface Usage {
  day: string;
  /** Bytes that are no text are in principal_b64 instead. */
  principal?: string;
  principal_b64?: string;
  commands: number;
  sandboxes: number;
  denied: number;
  duration_us: number;
  cpu_us: number;
  output_bytes: number;
  disk_written_bytes: number;
}

export interface UsageQuery {
  /** A day, 2026-11-16: only from it on. */
  since?: string;
  principal?: string;
  /** 1000 by default, 10000 at most. */
  limit?: number;
}

/** Commands, microseconds (wall, cpu), bytes, millionths of a currency. */
export interface BudgetAmount {
  kind: "runs" | "wall" | "cpu" | "egress" | "cost";
  limit: number;
  used: number;
  reserved: number;
}

/** A limit, and how it stands for one that it holds for. */
export interface Budget {
  per: "principal" | "tenant" | "session";
  /** For whom; missing where it holds for each and nobody has used anything of it. Bytes that are no text are in
   * name_b64 instead. */
  name?: string;
  name_b64?: string;
  /** 0: as long as a session lasts. */
  within_s: number;
  set_by: "policy" | "operator";
  /** Of the policy. */
  line?: number;
  /** What one run may have of it at once. */
  egress_run?: number;
  began_at?: string;
  renews_at?: string;
  amounts: BudgetAmount[];
}

export interface Budgets {
  budgets: Budget[];
  /** Millionths of a currency. */
  prices: { run: number; vcpu_second: number; gib_second: number };
}

export interface BudgetsQuery {
  /** Only what is for this one. */
  principal?: string;
}

export type Scope =
  | "read"
  | "run"
  | "host"
  | "images"
  | "receipts"
  | "policy"
  | "approve"
  | "metrics"
  | "admin"
  | "vault";

export interface CreateToken {
  scopes: Scope[];
  tenant?: string;
  principal?: string;
  expires_in_s?: number;
  requests_per_second?: number;
  requests_at_once?: number;
}

export interface TokenInfo {
  token_id: string;
  tenant: string;
  principal: string;
  scopes: Scope[];
  requests_per_second: number;
  requests_at_once: number;
  created_at: string;
  expires_at: string;
  used_at: string;
  revoked_at: string;
  /** The principal whose token made it; "" when nobody knows. */
  made_by: string;
  receipt_id?: string;
}

export interface WhoAmI {
  tenant: string;
  principal: string;
  /** Separated by commas. */
  scopes: string;
}
