// SPDX-License-Identifier: Apache-2.0

// One request: its address, its identity, its answer or its error. What creates something carries an
// Idempotency-Key and is sent again when no answer came; nothing else is ever sent twice.

import { readAll, textOf, type ByteSource, toBytes, piecesOf } from "./bytes.js";
import { ConnectionError, errorOf, LimitError, TimeoutError, UnavailableError } from "./errors.js";
import {
  fetchTransport,
  isNode,
  nodeTransport,
  type Target,
  type Transport,
  type WireAnswer,
  type WireRequest,
} from "./transport.js";

/** Without an address: BRIG_URL, or BRIG_SOCKET, with BRIG_TOKEN, of the environment. */
export interface BrigOptions {
  /** http://127.0.0.1:8080 by default. */
  baseUrl?: string;
  /** Instead: the unix socket of the daemon; its owner needs no token. Node only. */
  socketPath?: string;
  token?: string;
  /** Instead of what the platform has. */
  fetch?: typeof fetch;
  /** How often what may be sent again is sent again; 3 by default. */
  retries?: number;
  /** How long a request that runs no command may take; a minute by default. */
  timeoutMs?: number;
}

/** Every call takes these. */
export interface CallOptions {
  signal?: AbortSignal | undefined;
}

/** Calls that create something take these as well. */
export interface CreateOptions extends CallOptions {
  /** One is made up when there is none: the same key never does anything twice. */
  idempotencyKey?: string | undefined;
}

export type Query = Record<string, string | number | boolean | undefined>;

export interface Ask extends CreateOptions {
  query?: Query | undefined;
  json?: unknown;
  bytes?: ByteSource | undefined;
  accept?: string | undefined;
  headers?: Record<string, string> | undefined;
  /** It carries a key and may be sent again. */
  creates?: boolean;
  /** It takes as long as a command: only its signal ends it. */
  long?: boolean;
}

const ANSWER_TYPE = "application/json";
const ANSWER_MAX_BYTES = 64 * 1024 * 1024; // a daemon's own ceiling; files and exports are streams
const TIMEOUT_MS = 60_000;
const RETRIES = 3;
const RETRY_FIRST_MS = 100;
const RETRY_MAX_MS = 2_000;
const RETRY_CALLS_MAX = 10;

export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    if (signal?.aborted) {
      reject(signal.reason as Error);
      return;
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", stop);
      resolve();
    }, ms);
    const stop = () => {
      clearTimeout(timer);
      reject(signal?.reason as Error);
    };
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** Somewhere between nothing and a bound that doubles: many clients do not come back at once. */
export function retryDelay(attempt: number, random = Math.random): number {
  return random() * Math.min(RETRY_MAX_MS, RETRY_FIRST_MS * 2 ** attempt);
}

/* No answer, or one that says that nothing was done. */
function mayTryAgain(error: unknown): boolean {
  return error instanceof ConnectionError || error instanceof LimitError || error instanceof UnavailableError;
}

async function* piecesOfSource(source: Exclude<ByteSource, string | Uint8Array>): AsyncGenerator<Uint8Array> {
  if (source instanceof Blob) yield* piecesOf(source.stream());
  else if (source instanceof ReadableStream) yield* piecesOf(source);
  else for await (const piece of source) yield toBytes(piece);
}

function bodyOf(ask: Ask): WireRequest["body"] {
  if (ask.json !== undefined) return JSON.stringify(ask.json);
  if (ask.bytes === undefined) return undefined;
  return typeof ask.bytes === "string" || ask.bytes instanceof Uint8Array ? ask.bytes : piecesOfSource(ask.bytes);
}

export function pathOf(segments: readonly string[], query: Query = {}): string {
  const pairs = Object.entries(query)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => `${encodeURIComponent(name)}=${encodeURIComponent(String(value))}`);
  return `/${segments.map(encodeURIComponent).join("/")}${pairs.length ? `?${pairs.join("&")}` : ""}`;
}

/* A signal that also ends when the time is up; done() lets go of the timer. */
function withTimeout(signal: AbortSignal | undefined, ms: number): { signal: AbortSignal; done(): void } {
  const controller = new AbortController();
  const follow = () => controller.abort(signal?.reason);
  const timer = setTimeout(
    () => controller.abort(new TimeoutError(`no answer within ${ms} ms`, { code: "timeout" })),
    ms,
  );
  if (signal?.aborted) follow();
  signal?.addEventListener("abort", follow, { once: true });
  return {
    signal: controller.signal,
    done() {
      clearTimeout(timer);
      signal?.removeEventListener("abort", follow);
    },
  };
}

/* What the environment says goes together: its token is for its address and for no other. */
function withEnvironment(options: BrigOptions): BrigOptions {
  const env = typeof process === "undefined" ? {} : (process.env ?? {});
  const found: BrigOptions = {};

  if (options.baseUrl ?? options.socketPath) return options;
  if (env["BRIG_URL"]) found.baseUrl = env["BRIG_URL"];
  else if (env["BRIG_SOCKET"] && env["BRIG_SOCKET"] !== "off" && !options.fetch) found.socketPath = env["BRIG_SOCKET"];
  if (env["BRIG_TOKEN"]) found.token = env["BRIG_TOKEN"];
  return { ...found, ...options };
}

export class Wire {
  readonly target: Target;
  readonly token: string | undefined;
  private readonly transport: Transport;
  private readonly retries: number;
  private readonly timeoutMs: number;

  constructor(given: BrigOptions) {
    const options = withEnvironment(given);
    const baseUrl = (options.baseUrl ?? "http://127.0.0.1:8080").replace(/\/+$/, "");

    if (!/^https?:\/\//.test(baseUrl)) throw new TypeError(`not an http address: ${baseUrl}`);
    if (options.socketPath && (options.fetch || !isNode))
      throw new TypeError("a unix socket is reached by Node's own HTTP client only");
    this.target = { baseUrl, socketPath: options.socketPath };
    this.token = options.token;
    this.retries = Math.min(options.retries ?? RETRIES, RETRY_CALLS_MAX);
    this.timeoutMs = options.timeoutMs ?? TIMEOUT_MS;
    this.transport =
      options.fetch || !isNode
        ? fetchTransport(this.target, options.fetch ?? fetch)
        : nodeTransport(this.target);
  }

  private request(method: string, path: string, ask: Ask): WireRequest {
    const headers: Record<string, string> = { accept: ask.accept ?? ANSWER_TYPE, ...ask.headers };

    if (this.token) headers["authorization"] = `Bearer ${this.token}`;
    if (ask.json !== undefined) headers["content-type"] = ANSWER_TYPE;
    else if (ask.bytes !== undefined) headers["content-type"] = "application/octet-stream";
    if (ask.creates) headers["idempotency-key"] = ask.idempotencyKey ?? crypto.randomUUID();
    return { method, path, headers, body: bodyOf(ask), signal: ask.signal };
  }

  /* Throws what the daemon refused. */
  private async sendOnce(request: WireRequest): Promise<WireAnswer> {
    const answer = await this.transport(request);
    if (answer.status >= 200 && answer.status < 300) return answer;
    const text = textOf(await readAll(answer.body, ANSWER_MAX_BYTES).catch(() => new Uint8Array()));
    let body: unknown;
    try {
      body = JSON.parse(text);
    } catch {
      body = undefined;
    }
    throw errorOf(answer.status, body, answer.header("x-request-id"));
  }

  /** The answer, as soon as it begins. */
  async open(method: string, segments: readonly string[], ask: Ask = {}): Promise<WireAnswer> {
    const request = this.request(method, pathOf(segments, ask.query), ask);
    const isWhole = request.body === undefined || typeof request.body === "string" || request.body instanceof Uint8Array;
    const retries = ask.creates && isWhole ? this.retries : 0;

    for (let attempt = 0; ; attempt++) {
      try {
        return await this.sendOnce(request);
      } catch (error) {
        if (attempt >= retries || !mayTryAgain(error)) throw error;
      }
      await pause(retryDelay(attempt), ask.signal);
    }
  }

  private async within<T>(ask: Ask, work: (ask: Ask) => Promise<T>): Promise<T> {
    if (ask.long || !this.timeoutMs) return work(ask);
    const limit = withTimeout(ask.signal, this.timeoutMs);
    try {
      return await work({ ...ask, signal: limit.signal });
    } finally {
      limit.done();
    }
  }

  /** The whole answer as JSON. */
  async json<T>(method: string, segments: readonly string[], ask: Ask = {}): Promise<T> {
    return this.within(ask, async (timed) => {
      const answer = await this.open(method, segments, timed);
      const text = textOf(await readAll(answer.body, ANSWER_MAX_BYTES));
      try {
        return JSON.parse(text) as T;
      } catch (error) {
        throw new ConnectionError("the answer is not JSON: is this a Brig daemon?", { status: answer.status, cause: error });
      }
    });
  }

  async text(method: string, segments: readonly string[], ask: Ask = {}): Promise<string> {
    return this.within(ask, async (timed) => {
      const answer = await this.open(method, segments, timed);
      return textOf(await readAll(answer.body, ANSWER_MAX_BYTES));
    });
  }

  /** The answer's bytes as they come. */
  async stream(method: string, segments: readonly string[], ask: Ask = {}): Promise<ReadableStream<Uint8Array>> {
    const answer = await this.open(method, segments, { ...ask, long: true });
    return answer.body ?? new Blob([]).stream();
  }
}
