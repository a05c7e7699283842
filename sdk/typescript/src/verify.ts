// SPDX-License-Identifier: Apache-2.0

// The judge of a chain of receipts, without a daemon: docs/formats/receipt.md and nothing else. A
// chain is intact when every hash recomputes, every signature holds under the trusted key, seq counts
// up from 1 without a gap, every prev_hash is the hash before it, and lamport_clock grows. The first
// entry that is not so is named. That nothing was cut off at the end is proven only by a signed head
// that somebody else kept.

import { bytesOfHex, hexOf, linesOf, piecesOf, sha256, toBytes, utf8, type Bytes } from "./bytes.js";
import { canonicalize, JsonError, parseStrict } from "./canonical.js";
import { trustKey, type TrustedKey } from "./ed25519.js";
import { IntegrityError } from "./errors.js";
import type { Receipt, ReceiptHead } from "./types.js";

export type FaultKind =
  | "changed"
  | "missing"
  | "moved"
  | "duplicated"
  | "foreign key"
  | "torn"
  | "truncated";

export interface Fault {
  kind: FaultKind;
  /** Sequence number of the entry that is not as it was. */
  seq: number;
  receipt_id?: string;
  /** In a file: where it stands. */
  line?: number;
  text: string;
}

export interface Verification {
  /** Intact, and not shorter than the head says. */
  ok: boolean;
  integrity: "intact" | "torn" | "tampered";
  completeness: "not proven" | "proven" | "truncated";
  /** Good entries in front of the first fault. */
  entries: number;
  /** Intents without an outcome. */
  open_runs: number;
  last_seq: number;
  last_hash: string;
  key_id: string;
  fault?: Fault;
}

export interface VerifyOptions {
  /** The signer's public key, got by a way you trust: PEM of receipts.pub, hex, or 32 bytes. */
  key: string | Uint8Array;
  /** A signed head that was kept elsewhere. */
  head?: string | ReceiptHead;
  /** A piece of a chain will do: it may begin anywhere. */
  part?: boolean;
}

export type ReceiptSource =
  | string
  | Uint8Array
  | ReadableStream<Uint8Array>
  | AsyncIterable<Uint8Array | string>
  | readonly Receipt[];

const DOMAIN = utf8("brig/receipt/1\0");
const ZERO_HASH = `sha256:${"0".repeat(64)}`;
const LINE_MAX_BYTES = 128 * 1024;

interface Entry {
  json: Record<string, unknown>;
  kind: string;
  key_id: string;
  seq: number;
  lamport_clock: number;
  receipt_id: string;
  prev_hash: string;
  hash: string;
  signature: Bytes;
}

class NotAReceipt extends Error {}

/* ---- one entry ---- */

function text(json: Record<string, unknown>, name: string): string {
  const value = json[name];
  if (typeof value !== "string") throw new NotAReceipt(`member "${name}" is missing or of the wrong form`);
  return value;
}

function count(json: Record<string, unknown>, name: string): number {
  const value = json[name];
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0)
    throw new NotAReceipt(`member "${name}" is missing or of the wrong form`);
  return value;
}

function matching(json: Record<string, unknown>, name: string, form: RegExp): string {
  const value = text(json, name);
  if (!form.test(value)) throw new NotAReceipt(`member "${name}" is missing or of the wrong form`);
  return value;
}

const HASH = /^sha256:[0-9a-f]{64}$/;

function entryOf(value: unknown): Entry {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new NotAReceipt("not a JSON object");
  const json = value as Record<string, unknown>;
  if (count(json, "v") !== 1) throw new NotAReceipt('member "v" is missing or of the wrong form');
  const hash = matching(json, "hash", HASH);
  const signature = bytesOfHex(text(json, "signature"), 64);
  if (!signature) throw new NotAReceipt('member "signature" is missing or of the wrong form');
  const kind = text(json, "kind");
  const isHead = kind === "head";

  return {
    json,
    kind,
    hash,
    signature,
    key_id: text(json, "key_id"),
    seq: count(json, "seq"),
    receipt_id: isHead ? "" : matching(json, "receipt_id", /^[a-z0-9]{1,20}$/),
    lamport_clock: isHead ? 0 : count(json, "lamport_clock"),
    prev_hash: isHead ? "" : matching(json, "prev_hash", HASH),
  };
}

/* undefined: hash and signature are right. */
async function sealFault(entry: Entry, key: TrustedKey): Promise<string | undefined> {
  const body: Record<string, unknown> = Object.create(null) as Record<string, unknown>;
  for (const name of Object.keys(entry.json))
    if (name !== "hash" && name !== "signature") body[name] = entry.json[name];
  const digest = await sha256(DOMAIN, utf8(canonicalize(body)));

  if (entry.hash !== `sha256:${hexOf(digest)}`) return "its content does not match its hash";
  if (!(await key.holds(entry.signature, digest))) return "its signature does not hold";
  return undefined;
}

/* ---- the chain ---- */

interface Head {
  seq: number;
  hash: string;
  timestamp: string;
}

class Verifier {
  line = 0;
  private fault: Fault | undefined;
  private searching = false;
  private last = { seq: 0, lamport_clock: 0, hash: ZERO_HASH };
  private headSeen = false;
  private entries = 0;
  private intents = 0;
  private endings = 0;

  constructor(
    private readonly key: TrustedKey,
    private readonly head: Head | undefined,
    private readonly part: boolean,
  ) {}

  /** False: the first fault is known, and nothing that follows can say more about it. */
  wantsMore(): boolean {
    return !this.fault || this.searching;
  }

  private name(seq: number, id: string): string {
    const where = [id, this.line ? `line ${this.line}` : ""].filter(Boolean).join(", ");
    return `entry ${seq}${where ? ` (${where})` : ""}`;
  }

  private found(kind: FaultKind, seq: number, id: string, sentence: string, line = this.line): void {
    this.fault = { kind, seq, text: sentence };
    if (id) this.fault.receipt_id = id;
    if (line) this.fault.line = line;
  }

  /** Of the entry that should stand here. */
  refuse(kind: FaultKind, id: string, what: string): void {
    const seq = this.last.seq + 1;
    if (!this.fault) this.found(kind, seq, id, `${this.name(seq, id)} is ${kind}: ${what}`);
  }

  async add(entry: Entry): Promise<void> {
    if (this.searching) {
      if (entry.seq === this.fault?.seq) this.foundElsewhere(entry, this.fault);
      return;
    }
    if (this.fault) return;
    if (entry.key_id !== this.key.key_id) {
      this.refuse("foreign key", entry.receipt_id, "another key than the trusted one signed it");
      return;
    }
    const broken = await sealFault(entry, this.key);
    if (broken) {
      this.refuse("changed", entry.receipt_id, broken);
      return;
    }
    if (this.part && this.entries === 0 && entry.seq > 0)
      this.last = { seq: entry.seq - 1, lamport_clock: entry.lamport_clock - 1, hash: entry.prev_hash };
    if (entry.seq !== this.last.seq + 1) {
      this.outOfPlace(entry);
      return;
    }
    const unlinked = this.linkFault(entry);
    if (unlinked) this.refuse("changed", entry.receipt_id, unlinked);
    else this.accept(entry);
  }

  private outOfPlace(entry: Entry): void {
    const wanted = this.last.seq + 1;
    const name = this.name(entry.seq, entry.receipt_id);

    if (entry.seq < wanted) {
      const again = `it was there already and stands again behind entry ${this.last.seq}`;
      this.found("duplicated", entry.seq, entry.receipt_id, `${name} is duplicated: ${again}`);
      return;
    }
    this.searching = true;
    this.found("missing", wanted, "", `entry ${wanted} is missing: ${name} stands in its place`);
  }

  private foundElsewhere(entry: Entry, gap: Fault): void {
    const name = this.name(entry.seq, entry.receipt_id);
    const text = `${name} is moved: it does not stand behind entry ${entry.seq - 1}, where it belongs`;

    this.searching = false;
    this.found("moved", entry.seq, entry.receipt_id, text, gap.line ?? 0);
  }

  private linkFault(entry: Entry): string | undefined {
    if (entry.kind === "head") return "it is a signed head, not a receipt";
    if (entry.prev_hash !== this.last.hash) return "its prev_hash is not the hash of the entry before it";
    if (entry.lamport_clock <= this.last.lamport_clock) return "its lamport_clock does not grow";
    if (this.head?.seq === entry.seq && this.head.hash !== entry.hash)
      return "the signed head names another entry with this number";
    return undefined;
  }

  private accept(entry: Entry): void {
    this.last = { seq: entry.seq, lamport_clock: entry.lamport_clock, hash: entry.hash };
    this.entries++;
    if (this.head?.seq === entry.seq) this.headSeen = true;
    if (entry.kind === "intent") this.intents++;
    else if (entry.json["intent_id"] !== undefined) this.endings++;
  }

  private completeness(tampered: boolean): Verification["completeness"] {
    if (!this.head || tampered) return "not proven";
    if (this.headSeen || this.head.seq === 0) return "proven";
    if (!this.fault) {
      const seq = this.last.seq + 1;
      const end = `the chain ends with entry ${this.last.seq}`;
      const said = `the head signed at ${this.head.timestamp} names entry ${this.head.seq}`;
      this.found("truncated", seq, "", `entry ${seq} is missing: ${end}, but ${said}`, 0);
    }
    return "truncated";
  }

  end(): Verification {
    const integrity = !this.fault ? "intact" : this.fault.kind === "torn" ? "torn" : "tampered";
    const completeness = this.completeness(integrity === "tampered");
    const result: Verification = {
      ok: integrity === "intact" && completeness !== "truncated",
      integrity,
      completeness,
      entries: this.entries,
      open_runs: Math.max(0, this.intents - this.endings),
      last_seq: this.entries ? this.last.seq : 0,
      last_hash: this.entries ? this.last.hash : "",
      key_id: this.key.key_id,
    };
    if (this.fault) result.fault = this.fault;
    return result;
  }
}

/* ---- what people call ---- */

async function readHead(given: string | ReceiptHead, key: TrustedKey): Promise<Head> {
  let entry: Entry;
  try {
    entry = entryOf(typeof given === "string" ? parseStrict(utf8(given)) : given);
  } catch (error) {
    throw new IntegrityError(`the head: ${(error as Error).message}`, { code: "integrity" });
  }
  const fault =
    entry.kind !== "head"
      ? "it is a receipt"
      : entry.key_id !== key.key_id
        ? `it is signed by ${entry.key_id}, not by the trusted key ${key.key_id}`
        : await sealFault(entry, key);
  const { head_hash, timestamp, count } = entry.json;

  if (fault) throw new IntegrityError(`not a genuine head: ${fault}`, { code: "integrity" });
  if (typeof head_hash !== "string" || !HASH.test(head_hash) || count !== entry.seq)
    throw new IntegrityError("the head does not say what a head says", { code: "integrity" });
  return { seq: entry.seq, hash: head_hash, timestamp: String(timestamp) };
}

async function readLine(
  verifier: Verifier,
  line: { bytes: Bytes; ended: boolean; tooLong: boolean },
): Promise<void> {
  verifier.line++;
  if (line.tooLong) {
    verifier.refuse("changed", "", "the line is longer than any receipt");
    return;
  }
  let entry: Entry;
  try {
    entry = entryOf(parseStrict(line.bytes));
  } catch (error) {
    if (!line.ended && error instanceof JsonError && error.incomplete)
      verifier.refuse("torn", "", "the last line is incomplete; what stands before it is untouched");
    else verifier.refuse("changed", "", (error as Error).message);
    return;
  }
  await verifier.add(entry);
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes;
}

function piecesOfSource(source: Exclude<ReceiptSource, readonly Receipt[]>): AsyncIterable<Uint8Array | string> {
  if (typeof source === "string" || source instanceof Uint8Array) return once(toBytes(source));
  return source instanceof ReadableStream ? piecesOf(source) : source;
}

/** Checks a chain: an export as text, bytes or a stream, or receipts in the order of seq. */
export async function verifyReceipts(source: ReceiptSource, options: VerifyOptions): Promise<Verification> {
  const key = await trustKey(options.key);
  const head = options.head === undefined ? undefined : await readHead(options.head, key);
  const verifier = new Verifier(key, head, options.part ?? false);

  if (Array.isArray(source)) {
    for (const receipt of source as readonly Receipt[]) {
      if (!verifier.wantsMore()) break;
      // The text of what the caller holds: what was lost on the way to an object shows in the hash.
      await readLine(verifier, { bytes: utf8(JSON.stringify(receipt)), ended: true, tooLong: false });
    }
    return verifier.end();
  }
  for await (const line of linesOf(piecesOfSource(source as Exclude<ReceiptSource, readonly Receipt[]>), LINE_MAX_BYTES)) {
    await readLine(verifier, line);
    if (!verifier.wantsMore()) break;
  }
  return verifier.end();
}

/** Whether one receipt by itself is what the key signed; undefined: it is, otherwise what is wrong. */
export async function receiptFault(
  receipt: Receipt | ReceiptHead | string,
  key: string | Uint8Array,
): Promise<string | undefined> {
  const trusted = await trustKey(key);
  try {
    const bytes = utf8(typeof receipt === "string" ? receipt : JSON.stringify(receipt));
    const entry = entryOf(parseStrict(bytes));
    if (entry.key_id !== trusted.key_id) return "another key than the trusted one signed it";
    return await sealFault(entry, trusted);
  } catch (error) {
    if (error instanceof NotAReceipt || error instanceof JsonError) return error.message;
    throw error;
  }
}

