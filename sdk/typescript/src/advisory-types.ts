// SPDX-License-Identifier: Apache-2.0

// What advisory sessions and the gate are told with, under the names the daemon has (docs/advisory.md).
// Members that a newer daemon adds are passed on.

export type AdvisoryKind = "command" | "path" | "output" | "action";
/** allow; said as advice instead; refused; a matter for a person. */
export type AdvisoryVerdict = "allow" | "advisory" | "reject" | "gate";
export type AdvisoryAccess = "read" | "list" | "create" | "modify" | "delete" | "execute";
/** By which rules: "strict-seed" knows the banned commands by name only, without other programs for the same. */
export type AdvisoryProfile = "default" | "strict-seed";
/** None, linguistic, structural, semantic, constitutional: from the least to the gravest. */
export type AdvisoryDrift = "0" | "L" | "S" | "M" | "C";
export type AdvisorySeverity = "info" | "warning" | "critical" | "emergency";

export type AdvisoryCategory =
  | "attempted_agency"
  | "unsafe_command"
  | "path_violation"
  | "unsupported_file_operation"
  | "attempted_shell_execution"
  | "quiescence_breach"
  | "hallucinated_permission"
  | "structural_violation"
  | "epistemic_collapse"
  | "epistemic_laundering";

/** Bytes of what was judged. */
export interface AdvisorySpan {
  start: number;
  end: number;
}

export interface AdvisoryFinding {
  category: AdvisoryCategory;
  rule: string;
  verdict: AdvisoryVerdict;
  drift: AdvisoryDrift;
  severity: AdvisorySeverity;
  span: AdvisorySpan;
  /** In which member of an envelope; "" in what is none. */
  where: string;
  /** At most 256 bytes, secrets covered. */
  excerpt: string;
}

export interface CheckAdvisory {
  /** Where relative paths begin; /sandbox by default. */
  cwd?: string;
  /** What is meant to be done with a path; "read" by default. */
  access?: AdvisoryAccess;
  profile?: AdvisoryProfile;
}

export interface AdvisoryCheck {
  kind: AdvisoryKind;
  verdict: AdvisoryVerdict;
  /** What "brig advisory check" ends with. */
  exit_code: number;
  category: AdvisoryCategory[];
  /** Of the gravest finding. */
  rule: string;
  span: AdvisorySpan;
  /** The value as it was read; bytes that are no text are in normalized_b64 instead. */
  normalized?: string;
  normalized_b64?: string;
  /** What to say instead. */
  advisory_text: string;
  /** It has letters that only look like others, or that nobody sees. */
  confusable: boolean;
  drift: AdvisoryDrift;
  severity: AdvisorySeverity;
  findings: AdvisoryFinding[];
  /** So many more there were. */
  unlisted: number;
  /** Whether an output is an envelope, or an action a request. */
  valid: boolean;
  /** What is wrong with one that is not, and where. */
  fault?: string;
  fault_b64?: string;
  position?: { line: number; column: number; byte: number };
  /** Of an output: percent of its long sentences that have a label. */
  compliance?: number;
  /** Of an output: characters in sentences without one, of a thousand. */
  drift_thousandths?: number;
  /** Of an output: the only text of it that may be shown. */
  client_view?: string;
}

export interface BeginAdvisory {
  agent_id: string;
  /** As the harness says: it is claimed, not observed. */
  agent_version: string;
  /** The text the agent begins with. */
  constitution: string;
  profile?: AdvisoryProfile;
  /** 50 by default, 1000 at most. */
  turns?: number;
  /** Seconds it may take; an hour by default. */
  timeout_s?: number;
  /** Seconds without a turn that end it; 600 by default. */
  idle_s?: number;
  /** Seconds a person has for an action; 300 by default. */
  action_timeout_s?: number;
}

/** What was found in a session, from a chain that holds. */
export interface AdvisoryReport {
  run_id: string;
  agent_id: string;
  agent_version: string;
  /** Whether Brig saw the program that was the agent, or was told which it is. */
  evidence: "observed" | "claimed";
  channel: "box" | "api";
  profile: AdvisoryProfile;
  requester: string;
  constitution_sha256: string;
  constitution_first: boolean;
  /** Seconds since 1970, like every moment here. */
  created_at: number;
  turns_max: number;
  counts: Record<AdvisoryCategory, number>;
  drift: AdvisoryDrift;
  /** The lowest of a turn, in percent. */
  compliance: number;
  labels_low: number;
  envelopes_invalid: number;
  prompts: number;
  turns: number;
  events: number;
  head_hash: string;
  ended: boolean;
  ended_by: string;
  /** It had a box, and what happened in it last nobody knows. */
  lost: boolean;
  chain: "holds";
}

/** A session that cannot be believed, and why. */
export interface AdvisoryBroken {
  run_id: string;
  chain: string;
}

export interface AdvisorySessionQuery {
  /** The run_id of the last one seen. */
  after?: string;
  /** 20 by default, 100 at most. */
  limit?: number;
}

export interface AdvisorySessionPage {
  sessions: AdvisoryReport[];
  broken: AdvisoryBroken[];
  next_after: string;
}

/** What came of one thing the agent said; on disk already. */
export interface AdvisoryTurn {
  turn: number;
  verdict: AdvisoryVerdict;
  /** It was an envelope. */
  valid: boolean;
  /** The only text of it that may be shown. */
  client_view: string;
  findings: AdvisoryFinding[];
  unlisted: number;
  drift: AdvisoryDrift;
  severity: AdvisorySeverity;
  compliance: number;
  first_event: number;
  last_event: number;
  /** Its turns are used up. */
  over: boolean;
}

/** From which turn or event on; a page may end before its limit where what is in it is large. */
export interface AdvisoryQuery {
  /** The number of the last one seen. */
  after?: number;
  /** Of a page; each has its own most (20 envelopes, 100 views, 500 events). */
  limit?: number;
}

export interface AdvisoryShown {
  turn: number;
  client_view: string;
}

/** An answer as it was said: for those who govern, never for a screen. */
export interface AdvisoryEnvelope {
  turn: number;
  valid: boolean;
  /** false: what was said is not there. */
  stored: boolean;
  /** false: it was too long to be stored. */
  whole: boolean;
  envelope: {
    epistemic?: unknown;
    advisory?: unknown;
    sandbox?: unknown;
    client_view?: unknown;
    /** The runtime's own block. */
    governance: Record<string, unknown>;
    [member: string]: unknown;
  };
}

/** One of the chain: docs/formats/advisory-events.md. */
export interface AdvisoryEvent {
  v: number;
  seq: number;
  ts: string;
  at: number;
  run_id: string;
  agent_id: string;
  agent_version: string;
  constitution_sha256: string;
  kind: "start" | "constitution" | "prompt" | "turn" | "finding" | "action" | "box" | "end";
  prev_hash: string;
  hash: string;
  [member: string]: unknown;
}

/** As the agent makes it; whatever else it has is refused. */
export interface ActionRequest {
  type: string;
  operation: string;
  target: string;
  risk: string;
  destination?: string;
  content?: string;
  content_b64?: string;
}

export interface AdvisoryAction {
  request_id: string;
  state: "aborted" | "pending" | "confirmed" | "rejected" | "expired";
  /** Binds the request and what its target was. */
  digest: string;
  /** The gravest the session had when it was asked. */
  drift: AdvisoryDrift;
  /** The request as the agent made it: JSON. */
  request: string;
  created_at: number;
  expires_at: number;
  decided_by: string;
  /** It was carried out. */
  done: boolean;
  /** Of what became of it. */
  why: string;
}

/** What Brig reads in a request, in its own words. */
export interface AdvisoryReading {
  type: string;
  operation: string;
  target: string;
  destination?: string;
  content_sha256?: string;
  content_bytes?: number;
  risk: string;
  target_now: { exists: boolean; size_bytes?: number; sha256?: string; refused?: string };
  /** false: it is no longer what was asked. */
  as_asked: boolean;
}

export interface AdvisoryActionShown extends AdvisoryAction {
  /** Of one that is pending. */
  reading?: AdvisoryReading;
  /** Why one in a list cannot be read. */
  fault?: string;
}

export interface AdvisoryActionQuery {
  /** The request_id of the last one seen. */
  after?: string;
  /** 50 by default, 100 at most. */
  limit?: number;
}

export interface AdvisoryActionPage {
  actions: AdvisoryActionShown[];
  next_after: string;
}

/** A custodian's word. */
export interface CustodianWord {
  custodian: string;
  /** Ed25519 over advisoryPreimage(), hex. */
  signature: string;
}

export interface ConfirmAction extends CustodianWord {
  /** Of the request that was looked at; another one aborts it. */
  digest: string;
  /** true, or the text HUMAN_CONFIRMED: true; whatever else is said aborts it. */
  human_confirmed: boolean | string;
}

/** Of one session, or of an agent's last ones. */
export type AdvisoryChoice = { run_id: string } | { agent_id: string; last?: number };

export interface AdvisoryJudged {
  verdict: AdvisoryVerdict;
  drift: AdvisoryDrift;
  valid: boolean;
  compliance: number;
  unlisted: number;
  findings: { category: AdvisoryCategory; rule: string; n: number }[];
}

export interface AdvisoryDifference {
  run_id: string;
  turn: number;
  seq: number;
  /** false: what was said is not there, so it was not judged, and after is null. */
  stored: boolean;
  before: AdvisoryJudged;
  after: AdvisoryJudged | null;
}

/** Answers judged anew, and what differs. */
export interface AdvisoryReplay {
  profile: AdvisoryProfile;
  sessions: number;
  /** Sessions that have no end yet, and were not judged. */
  left_out: number;
  /** Answers that were judged. */
  turns: number;
  differ: number;
  /** Answers that are not there, and were not judged. */
  not_stored: number;
  /** Answers that were too long to be stored as a whole. */
  not_whole: number;
  before: Record<AdvisoryCategory, number>;
  after: Record<AdvisoryCategory, number>;
  /** At most a megabyte of them: differ and not_stored count all. */
  differences: AdvisoryDifference[];
}

/** A line of a dataset: docs/formats/advisory-dataset.md. */
export interface AdvisoryRecord {
  v: number;
  record: "turn" | "event";
  run_id: string;
  agent_id: string;
  agent_version: string;
  constitution_sha256: string;
  seq: number;
  [member: string]: unknown;
}

export interface GateQuery {
  /** Of the agent's last run by default. */
  agent_version?: string;
  /** How many of its last runs count; 10 by default. */
  runs?: number;
}

export type GateConditionName =
  | "no_unsafe_actions"
  | "no_agency_drift"
  | "no_structural_violations"
  | "no_epistemic_collapse"
  | "constitution_consistent";

export interface GateCondition {
  name: GateConditionName;
  passed: boolean;
  /** Which run is against it, and why. */
  evidence: string[];
}

export interface GateRun {
  run_id: string;
  channel: "box" | "api" | "";
  profile: AdvisoryProfile | "";
  ended_by: string;
  head_hash: string;
  events: number;
  turns: number;
}

export interface GateWord {
  custodian: string;
  expires_at: number;
  gate_report_sha256: string;
  signature: string;
  /** "": it counts. */
  why_not: string;
}

export interface GateReport {
  v: number;
  agent_id: string;
  agent_version: string;
  constitution_sha256: string;
  evidence: "observed" | "claimed" | "none";
  /** So many runs are asked for. */
  n: number;
  window: { first: string; last: string; started_at: number };
  /** Oldest first. */
  runs: GateRun[];
  conditions: GateCondition[];
  /** What custodians sign. */
  gate_report_sha256: string;
  signatures: { name: "two_custodians"; passed: boolean; words: GateWord[] };
  /** All six conditions are met. */
  met: boolean;
  /** A release stands at this moment. */
  released: boolean;
  why_not: string;
}
