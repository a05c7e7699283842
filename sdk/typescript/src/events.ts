// SPDX-License-Identifier: Apache-2.0

// The events of a command, and whoever listens to them.

import { bytesOfBase64, linesOf, piecesOf, textOf, utf8, type Bytes } from "./bytes.js";
import { ConnectionError, errorOf } from "./errors.js";
import type { RunResult } from "./types.js";
import type { WireAnswer } from "./transport.js";

const LINE_MAX_BYTES = 64 * 1024 * 1024;

export interface StartEvent {
  event: "start";
  id: string;
  run_id: string;
}

interface WireOutput {
  event: "stdout" | "stderr";
  id: string;
  data?: string;
  data_b64?: string;
}

/** A piece of output. */
export class OutputEvent {
  readonly event: "stdout" | "stderr";
  /** Bytes of both streams so far: where to go on from. */
  readonly id: string;
  private readonly data: string | undefined;
  private readonly data_b64: string | undefined;

  constructor(wire: WireOutput) {
    this.event = wire.event;
    this.id = wire.id;
    this.data = wire.data;
    this.data_b64 = wire.data_b64;
  }

  /** Bytes that are no text show as replacement characters. */
  get text(): string {
    return this.data ?? textOf(this.bytes);
  }

  get bytes(): Bytes {
    return this.data_b64 === undefined ? utf8(this.data ?? "") : bytesOfBase64(this.data_b64);
  }
}

/** The end of a command; of a detached one it says only how it ended. */
export interface ExitEvent<Result = RunResult> {
  event: "exit";
  id: string;
  result: Result;
}

export type ExecEvent<Result = RunResult> = StartEvent | OutputEvent | ExitEvent<Result>;

/** Called as output comes. */
export interface OutputCallbacks {
  onStdout?: (event: OutputEvent) => void;
  onStderr?: (event: OutputEvent) => void;
}

interface WireEvent {
  event: string;
  id: string;
  [member: string]: unknown;
}

/** What was kept of both streams is text, and the bytes too when they are none. */
export function resultOf<Result>(wire: Record<string, unknown>): Result {
  for (const name of ["stdout", "stderr"]) {
    const encoded = wire[`${name}_b64`];
    if (typeof encoded === "string") wire[name] = textOf(bytesOfBase64(encoded));
  }
  return wire as Result;
}

/** One event of the wire as one of ours; an error is thrown, what a newer daemon tells is left out. */
export function eventOf<Result>(wire: WireEvent): ExecEvent<Result> | undefined {
  switch (wire.event) {
    case "start":
      return wire as unknown as StartEvent;
    case "stdout":
    case "stderr":
      return new OutputEvent(wire as unknown as WireOutput);
    case "exit": {
      const { event, id, ...rest } = wire;
      return { event: "exit", id, result: resultOf<Result>(rest) };
    }
    case "error":
      throw errorOf(statusOf(wire), wire);
    default:
      return undefined;
  }
}

/* An error inside a stream comes behind a 200. */
function statusOf(wire: WireEvent): number {
  const code = (wire["error"] as { code?: string } | undefined)?.code;
  return { invalid: 400, forbidden: 403, not_found: 404, conflict: 409, limit: 429, storage: 507, unavailable: 503, keeper: 503, timeout: 504, frozen: 403 }[code ?? ""] ?? 500;
}

export function parseEvent(text: string): WireEvent {
  try {
    return JSON.parse(text) as WireEvent;
  } catch (error) {
    throw new ConnectionError("an event is not JSON", { code: "connection", cause: error });
  }
}

function known<Event>(event: Event | undefined): Event[] {
  return event === undefined ? [] : [event];
}

/** Events of an answer in lines. A request that was answered before has its whole answer instead. */
export async function* eventsOfAnswer<Result>(answer: WireAnswer): AsyncGenerator<ExecEvent<Result>> {
  const isStream = (answer.header("content-type") ?? "").startsWith("application/x-ndjson");
  let text = "";
  if (!answer.body) throw new ConnectionError("the answer is empty", { code: "connection" });
  for await (const line of linesOf(piecesOf(answer.body), LINE_MAX_BYTES)) {
    if (line.tooLong) throw new ConnectionError("an event is too long", { code: "connection" });
    if (!isStream) text += textOf(line.bytes);
    else yield* known(eventOf<Result>(parseEvent(textOf(line.bytes))));
  }
  if (!isStream) yield* known(eventOf<Result>({ ...parseEvent(text), event: "exit", id: "" }));
}

/** A command under way: its events, once, in a loop or by callbacks; and its end. */
export class Execution<Result = RunResult> implements AsyncIterable<ExecEvent<Result>> {
  private readonly events: AsyncGenerator<ExecEvent<Result>>;
  private readonly callbacks: OutputCallbacks;
  private ended: Result | undefined;
  /** Of the last event that came; what a detached command is followed from. */
  lastEventId = "0.0";

  constructor(events: AsyncGenerator<ExecEvent<Result>>, callbacks: OutputCallbacks = {}) {
    this.events = events;
    this.callbacks = callbacks;
  }

  /** Leaving the loop early lets go of the command: one that is not detached ends. */
  async *[Symbol.asyncIterator](): AsyncGenerator<ExecEvent<Result>> {
    for await (const event of this.events) {
      if (event.id) this.lastEventId = event.id;
      if (event.event === "stdout") this.callbacks.onStdout?.(event);
      if (event.event === "stderr") this.callbacks.onStderr?.(event);
      if (event.event === "exit") this.ended = event.result;
      yield event;
    }
  }

  /** How it ended. Whatever nobody has looked at until then goes to the callbacks. */
  async wait(): Promise<Result> {
    for await (const _ of this) void _;
    if (this.ended === undefined)
      throw new ConnectionError("the stream ended before the command did", { code: "connection" });
    return this.ended;
  }

  /** Lets go of it now. */
  async cancel(): Promise<void> {
    await this.events.return(undefined);
  }
}
