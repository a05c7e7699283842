// SPDX-License-Identifier: Apache-2.0

import { Advisory, Gate } from "./advisory.js";
import { ConnectionError, TimeoutError } from "./errors.js";
import type { Execution } from "./events.js";
import { Images } from "./images.js";
import { Approvals, Freeze, Policies, Tokens } from "./people.js";
import { Receipts } from "./receipts.js";
import { execStream, execWhole, Sandbox, splitExec, type ExecOptions } from "./sandbox.js";
import type {
  Budgets,
  BudgetsQuery,
  CreateSandbox,
  RunResult,
  SandboxInfo,
  SandboxSpec,
  Usage,
  UsageQuery,
  WhoAmI,
} from "./types.js";
import { Snapshots } from "./snapshots.js";
import { Wire, type BrigOptions, type CallOptions, type CreateOptions } from "./wire.js";

export interface SandboxQuery {
  /** At most so many on a page; 1000 by default, and at most. */
  limit?: number;
  /** Only those behind this id. */
  after?: string;
}

export interface SandboxPage {
  sandboxes: SandboxInfo[];
  next_after?: string;
}

export class Sandboxes {
  constructor(private readonly wire: Wire) {}

  async create(spec: CreateSandbox = {}, options: CreateOptions = {}): Promise<Sandbox> {
    const info = await this.wire.json<SandboxInfo>("POST", ["v1", "sandboxes"], {
      ...options,
      json: spec,
      creates: true,
      long: true,
    });
    return new Sandbox(this.wire, info.sandbox_id, info);
  }

  /** All of them, by id. */
  async list(options: CallOptions = {}): Promise<SandboxInfo[]> {
    const all: SandboxInfo[] = [];
    for await (const one of this.all({}, options)) all.push(one);
    return all;
  }

  /** All of them, by id, page by page. */
  async *all(query: SandboxQuery = {}, options: CallOptions = {}): AsyncGenerator<SandboxInfo> {
    let after = query.after;
    do {
      const page = await this.page({ ...query, ...(after === undefined ? {} : { after }) }, options);
      yield* page.sandboxes;
      after = page.next_after;
    } while (after !== undefined);
  }

  /** One page of them; next_after is there when there are more: the `after` of the next page. */
  page(query: SandboxQuery = {}, options: CallOptions = {}): Promise<SandboxPage> {
    return this.wire.json("GET", ["v1", "sandboxes"], { ...options, query: { ...query } });
  }

  /** By id or name; a NotFoundError when there is none. */
  async get(id: string, options: CallOptions = {}): Promise<Sandbox> {
    const info = await this.wire.json<SandboxInfo>("GET", ["v1", "sandboxes", id], options);
    return new Sandbox(this.wire, info.sandbox_id, info);
  }

  /** By id or name, without asking whether there is one. */
  of(id: string): Sandbox {
    return new Sandbox(this.wire, id);
  }
}

export interface RunOptions
  extends Pick<ExecOptions, "stdin" | "approval_wait_ms" | "onStdout" | "onStderr" | "signal" | "idempotencyKey"> {
  /** What its sandbox is made from. */
  sandbox?: SandboxSpec;
}

/** A daemon, and whom it takes us for. */
export class Brig {
  readonly sandboxes: Sandboxes;
  readonly receipts: Receipts;
  readonly snapshots: Snapshots;
  readonly tokens: Tokens;
  readonly approvals: Approvals;
  readonly policies: Policies;
  readonly images: Images;
  readonly freeze: Freeze;
  readonly advisory: Advisory;
  readonly gate: Gate;
  protected readonly wire: Wire;

  constructor(options: BrigOptions = {}) {
    this.wire = new Wire(options);
    this.sandboxes = new Sandboxes(this.wire);
    this.receipts = new Receipts(this.wire);
    this.snapshots = new Snapshots(this.wire);
    this.approvals = new Approvals(this.wire);
    this.policies = new Policies(this.wire);
    this.images = new Images(this.wire);
    this.freeze = new Freeze(this.wire);
    this.advisory = new Advisory(this.wire);
    this.gate = new Gate(this.wire);
    this.tokens = new Tokens(this.wire);
  }

  /** Runs one command in a sandbox of its own, which ends with it. */
  run(command: readonly string[], options: RunOptions = {}): Promise<RunResult> {
    const { body, callbacks, call } = splitExec(command, options);
    return execWhole(this.wire, ["v1", "runs"], body, callbacks, call);
  }

  /** The same as events. */
  runStream(command: readonly string[], options: RunOptions = {}): Promise<Execution> {
    const { body, callbacks, call } = splitExec(command, options);
    return execStream(this.wire, ["v1", "runs"], body, callbacks, call);
  }

  whoami(options: CallOptions = {}): Promise<WhoAmI> {
    return this.wire.json("GET", ["v1", "whoami"], options);
  }

  version(options: CallOptions = {}): Promise<{ version: string; [member: string]: unknown }> {
    return this.wire.json("GET", ["version"], options);
  }

  /** Whether the daemon answers; needs no token. */
  async healthy(options: CallOptions = {}): Promise<boolean> {
    try {
      await this.wire.text("GET", ["healthz"], options);
      return true;
    } catch (error) {
      if (error instanceof ConnectionError || error instanceof TimeoutError) return false;
      throw error;
    }
  }

  /** What was used, by day and principal. */
  async usage(query: UsageQuery = {}, options: CallOptions = {}): Promise<Usage[]> {
    const answer = await this.wire.json<{ usage: Usage[] }>("GET", ["v1", "usage"], { ...options, query: { ...query } });
    return answer.usage;
  }

  /** What may be used together, and what is left of it. */
  budgets(query: BudgetsQuery = {}, options: CallOptions = {}): Promise<Budgets> {
    return this.wire.json("GET", ["v1", "budgets"], { ...options, query: { ...query } });
  }

  /** What the machine offers, and what is missing. */
  doctor(options: CallOptions = {}): Promise<Record<string, unknown>> {
    return this.wire.json("GET", ["v1", "doctor"], { ...options, long: true });
  }

  /** Counters in the text format of Prometheus. */
  metrics(options: CallOptions = {}): Promise<string> {
    return this.wire.text("GET", ["metrics"], options);
  }

  /** The description of the API, OpenAPI 3.1. */
  openapi(options: CallOptions = {}): Promise<Record<string, unknown>> {
    return this.wire.json("GET", ["v1", "openapi.json"], options);
  }
}
