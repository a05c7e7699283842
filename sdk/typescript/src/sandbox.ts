// SPDX-License-Identifier: Apache-2.0

// A sandbox that stays, and its commands.

import { base64Of } from "./bytes.js";
import { ConnectionError } from "./errors.js";
import { Execution, eventsOfAnswer, resultOf, type ExecEvent, type OutputCallbacks } from "./events.js";
import { Files } from "./files.js";
import { Session, signalNumber, type Signal } from "./session.js";
import type {
  Change,
  DetachedAnswer,
  ExecInfo,
  ExecSpec,
  ForkAnswer,
  ForkSpec,
  Preview,
  ProcessInfo,
  RunResult,
  SandboxInfo,
  SnapshotInfo,
  SnapshotMade,
} from "./types.js";
import { pause, retryDelay, type CallOptions, type CreateOptions, type Wire } from "./wire.js";

const NDJSON = "application/x-ndjson";
const FOLLOW_RETRIES = 8; // in a row, without anything new

export interface ExecOptions extends ExecSpec, OutputCallbacks, CreateOptions {
  /** What the command reads; nothing by default. */
  stdin?: string | Uint8Array;
}

export interface SessionOptions extends ExecSpec, OutputCallbacks, CallOptions {
  /** Use the platform's WebSocket even where there is ours; it cannot reach a unix socket. */
  platformSocket?: boolean;
}

/* The members of the body, and what is ours. */
export function splitExec(command: readonly string[], options: ExecOptions) {
  const { onStdout, onStderr, signal, idempotencyKey, stdin, ...spec } = options;
  const body: Record<string, unknown> = { command, ...spec };
  if (typeof stdin === "string") body["stdin"] = stdin;
  else if (stdin) body["stdin_b64"] = base64Of(stdin);
  const callbacks: OutputCallbacks = {};
  if (onStdout) callbacks.onStdout = onStdout;
  if (onStderr) callbacks.onStderr = onStderr;
  return { body, callbacks, call: { signal, idempotencyKey } };
}

/** Runs a command whole, or as it speaks when somebody listens. */
export async function execWhole(
  wire: Wire,
  segments: readonly string[],
  body: unknown,
  callbacks: OutputCallbacks,
  call: CreateOptions,
): Promise<RunResult> {
  if (callbacks.onStdout || callbacks.onStderr)
    return (await execStream(wire, segments, body, callbacks, call)).wait();
  const answer = await wire.json<Record<string, unknown>>("POST", segments, { ...call, json: body, creates: true, long: true });
  return resultOf<RunResult>(answer);
}

export async function execStream(
  wire: Wire,
  segments: readonly string[],
  body: unknown,
  callbacks: OutputCallbacks,
  call: CreateOptions,
): Promise<Execution> {
  const answer = await wire.open("POST", segments, { ...call, json: body, creates: true, long: true, accept: NDJSON });
  return new Execution(eventsOfAnswer<RunResult>(answer), callbacks);
}

/** A command that goes on without its caller. */
export class Detached {
  readonly exec_id: string;
  private readonly path: readonly string[];

  constructor(
    private readonly wire: Wire,
    readonly sandbox_id: string,
    exec_id: string,
    /** The answer to its start; missing when it was found by its id. */
    readonly started?: DetachedAnswer,
  ) {
    this.exec_id = exec_id;
    this.path = ["v1", "sandboxes", sandbox_id, "execs", exec_id];
  }

  info(options: CallOptions = {}): Promise<ExecInfo> {
    return this.wire.json("GET", this.path, options);
  }

  send(signal: Signal, options: CallOptions = {}): Promise<ExecInfo> {
    return this.wire.json("POST", [...this.path, "signal"], { ...options, json: { signal: signalNumber(signal) } });
  }

  /** Its output from an event on (from the beginning by default) until it ends. A connection that
   * breaks is made again, and goes on where it was. */
  follow(options: CallOptions & OutputCallbacks & { from?: string } = {}): Execution<ExecInfo> {
    return new Execution<ExecInfo>(this.events(options.from ?? "0.0", options.signal), options);
  }

  private async *events(from: string, signal: AbortSignal | undefined): AsyncGenerator<ExecEvent<ExecInfo>> {
    let at = from;
    for (let attempt = 0; ; attempt++) {
      try {
        const answer = await this.wire.open("GET", [...this.path, "stream"], {
          signal,
          long: true,
          accept: NDJSON,
          headers: { "last-event-id": at },
        });
        for await (const event of eventsOfAnswer<ExecInfo>(answer)) {
          at = event.id;
          attempt = 0;
          yield event;
          if (event.event === "exit") return;
        }
        throw new ConnectionError("the stream ended before the command did", { code: "connection" });
      } catch (error) {
        if (!(error instanceof ConnectionError) || attempt >= FOLLOW_RETRIES) throw error;
      }
      await pause(retryDelay(attempt), signal);
    }
  }

  async wait(options: CallOptions & OutputCallbacks & { from?: string } = {}): Promise<ExecInfo> {
    return this.follow(options).wait();
  }
}

export class Sandbox {
  readonly id: string;
  readonly files: Files;
  private readonly path: readonly string[];

  /** By id or name; nothing is asked. */
  constructor(
    protected readonly wire: Wire,
    id: string,
    /** As it was when it was made or shown. */
    readonly info?: SandboxInfo,
  ) {
    this.id = id;
    this.path = ["v1", "sandboxes", id];
    this.files = new Files(wire, id);
  }

  show(options: CallOptions = {}): Promise<SandboxInfo> {
    return this.wire.json("GET", this.path, options);
  }

  destroy(options: CallOptions = {}): Promise<Change> {
    return this.wire.json("DELETE", this.path, options);
  }

  /** Holds everything in it still. */
  pause(options: CallOptions = {}): Promise<Change> {
    return this.wire.json("POST", [...this.path, "pause"], options);
  }

  resume(options: CallOptions = {}): Promise<Change> {
    return this.wire.json("POST", [...this.path, "resume"], options);
  }

  /** From now on; an hour by default. */
  extend(ttl_ms?: number, options: CallOptions = {}): Promise<Change> {
    return this.wire.json("POST", [...this.path, "extend"], { ...options, json: ttl_ms ? { ttl_ms } : {} });
  }

  /** Runs a command to its end. With callbacks its output goes there as it comes and is not kept. */
  exec(command: readonly string[], options: ExecOptions = {}): Promise<RunResult> {
    const { body, callbacks, call } = splitExec(command, options);
    return execWhole(this.wire, [...this.path, "exec"], body, callbacks, call);
  }

  /** The same as events. */
  stream(command: readonly string[], options: ExecOptions = {}): Promise<Execution> {
    const { body, callbacks, call } = splitExec(command, options);
    return execStream(this.wire, [...this.path, "exec"], body, callbacks, call);
  }

  /** A command one talks to while it runs. */
  open(command: readonly string[], options: SessionOptions = {}): Promise<Session> {
    const { onStdout, onStderr, signal, platformSocket, ...spec } = options;
    const talk: Parameters<typeof Session.open>[3] = { signal, platformSocket };
    if (onStdout) talk.onStdout = onStdout;
    if (onStderr) talk.onStderr = onStderr;
    return Session.open(this.wire, [...this.path, "exec"], { command, ...spec }, talk);
  }

  /** Starts a command that goes on without us. */
  async detach(command: readonly string[], options: Omit<ExecOptions, keyof OutputCallbacks> = {}): Promise<Detached> {
    const { body, call } = splitExec(command, options);
    const answer = await this.wire.json<DetachedAnswer>("POST", [...this.path, "exec"], {
      ...call,
      json: { ...body, detach: true },
      creates: true,
      long: true,
    });
    return new Detached(this.wire, this.id, answer.exec_id, answer);
  }

  /** A detached command by its id. */
  detached(exec_id: string): Detached {
    return new Detached(this.wire, this.id, exec_id);
  }

  /** Puts aside what it has written; it goes on. The newest of a name is the one meant by it. */
  snapshot(name?: string, options: CreateOptions = {}): Promise<SnapshotMade> {
    const json = name === undefined ? {} : { name };
    return this.wire.json("POST", [...this.path, "snapshots"], { ...options, json, creates: true, long: true });
  }

  async snapshots(options: CallOptions = {}): Promise<SnapshotInfo[]> {
    const answer = await this.wire.json<{ snapshots: SnapshotInfo[] }>("GET", [...this.path, "snapshots"], options);
    return answer.snapshots;
  }

  /** Back to a snapshot (id, name or digest); whatever runs in it ends. */
  restore(snapshot_id: string, options: CallOptions = {}): Promise<SnapshotMade> {
    return this.wire.json("POST", [...this.path, "restore"], { ...options, json: { snapshot_id }, long: true });
  }

  /** Sandboxes that begin where this one is. */
  async fork(spec: ForkSpec = {}, options: CreateOptions = {}): Promise<Sandbox[]> {
    const answer = await this.wire.json<ForkAnswer>("POST", [...this.path, "fork"], {
      ...options,
      json: spec,
      creates: true,
      long: true,
    });
    return answer.sandboxes.map((info) => new Sandbox(this.wire, info.sandbox_id, info));
  }

  /** An address of a port inside, for a browser: 15 minutes, or ttl_ms. */
  preview(port: number, ttl_ms?: number, options: CreateOptions = {}): Promise<Preview> {
    const json = ttl_ms === undefined ? {} : { ttl_ms };
    return this.wire.json("POST", [...this.path, "ports", String(port), "preview"], { ...options, json, creates: true });
  }

  /** What the sandbox is and why. */
  explain(options: CallOptions = {}): Promise<Record<string, unknown>> {
    return this.wire.json("GET", [...this.path, "explain"], options);
  }

  execs(options: CallOptions = {}): Promise<{ execs: ExecInfo[]; processes: ProcessInfo[] }> {
    return this.wire.json("GET", [...this.path, "execs"], options);
  }
}
