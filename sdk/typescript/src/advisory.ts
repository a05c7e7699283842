// SPDX-License-Identifier: Apache-2.0

// Advisory sessions of a harness that holds the model itself, and the gate they lead to. Custodians
// sign elsewhere: a private key never comes near this library.

import { base64Of, linesOf, piecesOf, sha256, textOf, utf8, type Bytes } from "./bytes.js";
import { canonicalize } from "./canonical.js";
import { ConnectionError } from "./errors.js";
import { parseEvent } from "./events.js";
import type {
  ActionRequest,
  AdvisoryAction,
  AdvisoryActionPage,
  AdvisoryActionQuery,
  AdvisoryActionShown,
  AdvisoryBroken,
  AdvisoryCheck,
  AdvisoryChoice,
  AdvisoryEnvelope,
  AdvisoryEvent,
  AdvisoryFinding,
  AdvisoryKind,
  AdvisoryProfile,
  AdvisoryQuery,
  AdvisoryRecord,
  AdvisoryReplay,
  AdvisoryReport,
  AdvisorySessionPage,
  AdvisorySessionQuery,
  AdvisoryShown,
  AdvisoryTurn,
  BeginAdvisory,
  CheckAdvisory,
  ConfirmAction,
  CustodianWord,
  GateQuery,
  GateReport,
} from "./advisory-types.js";
import type { CallOptions, CreateOptions, Wire } from "./wire.js";

const RECORD_MAX_BYTES = 16 * 1024 * 1024; // more than a prompt and an answer with all that was found in it

/** What a custodian signs with Ed25519 to say yes or no to an action. */
export function advisoryPreimage(word: "confirm" | "reject", request_id: string, digest: string): Promise<Bytes> {
  return sha256(utf8(["brig/advisory-confirm/1", word, request_id, digest].join("\0")));
}

/** What a custodian signs with Ed25519 to release what a report is about, until expires_at (seconds since 1970, at most
 * seven days off); "brig gate sign --signature" takes it. */
export function gatePreimage(report: GateReport, custodian: string, expires_at: number): Promise<Bytes> {
  const { agent_id, agent_version, constitution_sha256, gate_report_sha256, n, window } = report;
  const said = { agent_id, agent_version, constitution_sha256, custodian, decision: "release", expires_at, gate_report_sha256, n, window };
  return sha256(utf8(`brig/gate-signoff/1\0${canonicalize(said)}`));
}

/* Page after page, until one leads no further. */
async function* pagesOf<Key extends string | number, Page extends { next_after: Key }>(
  begin: Key,
  ask: (from: { after?: Key }) => Promise<Page>,
): AsyncGenerator<Page> {
  let after = begin;
  for (;;) {
    const page = await ask(after ? { after } : {});
    yield page;
    if (!(page.next_after > after)) return;
    after = page.next_after;
  }
}

/** What a session has of one kind, oldest first. */
export class AdvisoryList<One> {
  constructor(
    private readonly wire: Wire,
    private readonly path: readonly string[],
    private readonly member: "turns" | "events",
  ) {}

  /** One page; the next one begins after next_after, and an empty one is the end. */
  async page(query: AdvisoryQuery = {}, options: CallOptions = {}): Promise<{ items: One[]; next_after: number }> {
    const page = await this.wire.json<Record<string, One[]> & { next_after: number }>("GET", this.path, {
      ...options,
      query: { ...query },
    });
    return { items: page[this.member] ?? [], next_after: page.next_after };
  }

  /** All of them, page by page: limit is that of a page. */
  async *all(query: AdvisoryQuery = {}, options: CallOptions = {}): AsyncGenerator<One> {
    const pages = pagesOf(query.after ?? 0, (from) => this.page({ ...query, ...from }, options));
    for await (const page of pages) yield* page.items;
  }
}

/** What an agent asks for, and a custodian's word on that. */
export class AdvisoryActions {
  constructor(
    private readonly wire: Wire,
    private readonly path: readonly string[],
  ) {}

  /** Asks for what only a person can let happen: pending, or rejected at once. */
  request(action_request: ActionRequest, options: CreateOptions = {}): Promise<AdvisoryAction & { findings: AdvisoryFinding[] }> {
    return this.wire.json("POST", this.path, { ...options, json: { action_request }, creates: true });
  }

  /** One page in the order of ids; the next one begins after next_after, and an empty one is the end. */
  page(query: AdvisoryActionQuery = {}, options: CallOptions = {}): Promise<AdvisoryActionPage> {
    return this.wire.json("GET", this.path, { ...options, query: { ...query } });
  }

  /** All of them, page by page: limit is that of a page. */
  async *all(query: AdvisoryActionQuery = {}, options: CallOptions = {}): AsyncGenerator<AdvisoryActionShown> {
    const pages = pagesOf(query.after ?? "", (from) => this.page({ ...query, ...from }, options));
    for await (const page of pages) yield* page.actions;
  }

  show(id: string, options: CallOptions = {}): Promise<AdvisoryActionShown> {
    return this.wire.json("GET", [...this.path, id], options);
  }

  /** Lets exactly that happen, once, or aborts it. Never by whoever began the session. */
  confirm(id: string, word: ConfirmAction, options: CallOptions = {}): Promise<AdvisoryAction & { receipt_id: string }> {
    return this.wire.json("POST", [...this.path, id, "confirm"], { ...options, json: word });
  }

  reject(id: string, word: CustodianWord, options: CallOptions = {}): Promise<AdvisoryAction & { receipt_id: string }> {
    return this.wire.json("POST", [...this.path, id, "reject"], { ...options, json: word });
  }
}

export class AdvisorySession {
  readonly id: string;
  /** What people may be shown of it. */
  readonly view: AdvisoryList<AdvisoryShown>;
  /** What the agent said, whole: for those who govern (scope "receipts"), never for a screen. */
  readonly envelopes: AdvisoryList<AdvisoryEnvelope>;
  /** Its chain (scope "receipts"). */
  readonly events: AdvisoryList<AdvisoryEvent>;
  readonly actions: AdvisoryActions;
  private readonly path: readonly string[];

  /** By its run_id; nothing is asked. */
  constructor(
    private readonly wire: Wire,
    id: string,
    /** As it was when it began or was shown. */
    readonly info?: AdvisoryReport,
  ) {
    this.id = id;
    this.path = ["v1", "advisory", "sessions", id];
    this.view = new AdvisoryList(wire, [...this.path, "view"], "turns");
    this.envelopes = new AdvisoryList(wire, [...this.path, "envelopes"], "turns");
    this.events = new AdvisoryList(wire, [...this.path, "events"], "events");
    this.actions = new AdvisoryActions(wire, [...this.path, "actions"]);
  }

  /** What was found in it; an IntegrityError when its chain does not hold. */
  report(options: CallOptions = {}): Promise<AdvisoryReport> {
    return this.wire.json("GET", this.path, options);
  }

  /** What the agent was asked, and what it said: a text or the object, whole and as it said it. */
  turn(text: string, output: string | object, options: CreateOptions = {}): Promise<AdvisoryTurn> {
    return this.wire.json("POST", [...this.path, "turns"], { ...options, json: { text, output }, creates: true });
  }

  /** No more turns; its end goes to the ledger. Twice is once. */
  end(options: CallOptions = {}): Promise<AdvisoryReport> {
    return this.wire.json("POST", [...this.path, "end"], options);
  }
}

export class AdvisorySessions {
  constructor(private readonly wire: Wire) {}

  /** One of an agent whose harness tells what was asked and what it said. */
  async begin(spec: BeginAdvisory, options: CreateOptions = {}): Promise<AdvisorySession> {
    const info = await this.wire.json<AdvisoryReport>("POST", ["v1", "advisory", "sessions"], {
      ...options,
      json: spec,
      creates: true,
    });
    return new AdvisorySession(this.wire, info.run_id, info);
  }

  /** By its run_id; a NotFoundError when there is none. */
  async get(id: string, options: CallOptions = {}): Promise<AdvisorySession> {
    const info = await this.wire.json<AdvisoryReport>("GET", ["v1", "advisory", "sessions", id], options);
    return new AdvisorySession(this.wire, info.run_id, info);
  }

  /** By its run_id, without asking whether there is one. */
  of(id: string): AdvisorySession {
    return new AdvisorySession(this.wire, id);
  }

  /** One page in the order of ids; the next one begins after next_after, and an empty one is the end. */
  page(query: AdvisorySessionQuery = {}, options: CallOptions = {}): Promise<AdvisorySessionPage> {
    return this.wire.json("GET", ["v1", "advisory", "sessions"], { ...options, query: { ...query } });
  }

  /** All of them, page by page. One that cannot be believed is among them: its chain says why. */
  async *all(query: AdvisorySessionQuery = {}, options: CallOptions = {}): AsyncGenerator<AdvisoryReport | AdvisoryBroken> {
    const pages = pagesOf(query.after ?? "", (from) => this.page({ ...query, ...from }, options));
    for await (const page of pages) {
      yield* page.sessions;
      yield* page.broken;
    }
  }
}

/** What an agent says that may only advise: judged, kept, and shown. */
export class Advisory {
  readonly sessions: AdvisorySessions;

  constructor(private readonly wire: Wire) {
    this.sessions = new AdvisorySessions(wire);
  }

  /** What is made of a command, a path, an output or an action request. Nothing is run or recorded. */
  check(kind: AdvisoryKind, value: string | Uint8Array, options: CheckAdvisory & CallOptions = {}): Promise<AdvisoryCheck> {
    const { signal, ...spec } = options;
    const asked = typeof value === "string" ? { value } : { value_b64: base64Of(value) };
    return this.wire.json("POST", ["v1", "advisory", "check"], { signal, json: { kind, ...asked, ...spec } });
  }

  /** Judges stored answers anew, by the rules there are now or by strict-seed. Nothing is changed. */
  replay(of: AdvisoryChoice, options: CallOptions & { profile?: AdvisoryProfile } = {}): Promise<AdvisoryReplay> {
    const { signal, ...spec } = options;
    return this.wire.json("POST", ["v1", "advisory", "replay"], { signal, json: { ...of, ...spec }, long: true });
  }

  /** Sessions that have an end as a dataset, oldest first, a line of JSON each; without a choice all there are. */
  export(of: AdvisoryChoice | { last?: number } = {}, options: CallOptions = {}): Promise<ReadableStream<Uint8Array>> {
    return this.wire.stream("GET", ["v1", "advisory", "export"], { ...options, query: { ...of } });
  }

  /** The same, line by line. */
  async *dataset(of: AdvisoryChoice | { last?: number } = {}, options: CallOptions = {}): AsyncGenerator<AdvisoryRecord> {
    for await (const line of linesOf(piecesOf(await this.export(of, options)), RECORD_MAX_BYTES)) {
      if (!line.ended || line.tooLong) throw new ConnectionError("a line of the dataset broke off", { code: "connection" });
      yield parseEvent(textOf(line.bytes)) as unknown as AdvisoryRecord;
    }
  }
}

/** Whether an agent may do more than advise. Signing, releasing and revoking is the command line's. */
export class Gate {
  constructor(private readonly wire: Wire) {}

  /** The report over its last runs, who signed it, and whether a release stands; a NotFoundError when it has no run. */
  show(agent: string, query: GateQuery = {}, options: CallOptions = {}): Promise<GateReport> {
    return this.wire.json("GET", ["v1", "gate", agent], { ...options, query: { ...query }, long: true });
  }
}
