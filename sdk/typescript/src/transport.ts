// SPDX-License-Identifier: Apache-2.0

// How requests get to the daemon. In Node they go by node:http: it knows unix sockets, and does not
// give up on a command that is silent for five minutes, as Node's fetch does. Elsewhere, and when the
// caller hands one in, they go by fetch.

import { toBytes, type Bytes } from "./bytes.js";
import { ConnectionError } from "./errors.js";

export interface WireRequest {
  method: string;
  /** With its query. */
  path: string;
  headers: Record<string, string>;
  body?: string | Uint8Array | AsyncIterable<Uint8Array> | undefined;
  signal?: AbortSignal | undefined;
}

export interface WireAnswer {
  status: number;
  header(name: string): string | null;
  body: ReadableStream<Uint8Array> | null;
}

export type Transport = (request: WireRequest) => Promise<WireAnswer>;

export interface Target {
  /** Without a slash at its end. */
  baseUrl: string;
  socketPath?: string | undefined;
}

/** An abort is the caller's own doing and stays what it is. */
export function connectionError(error: unknown, signal: AbortSignal | undefined, what: string): unknown {
  if (signal?.aborted) return signal.reason;
  if (error instanceof ConnectionError) return error;
  const reason = (error as { cause?: unknown }).cause ?? error;
  return new ConnectionError(`${what}: ${(reason as Error).message}`, { code: "connection", cause: error });
}

/**
 * The same stream, its failures told as ours. It is locked from the beginning: fetch cancels a body that nobody reads
 * when its Response is collected, and one that is cancelled looks like one that has ended.
 */
export function guarded(
  body: ReadableStream<Uint8Array>,
  signal: AbortSignal | undefined,
): ReadableStream<Uint8Array> {
  const reader = body.getReader();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const piece = await reader.read();
          if (piece.done) controller.close();
          else controller.enqueue(piece.value);
        } catch (error) {
          controller.error(connectionError(error, signal, "the answer broke off"));
        }
      },
      async cancel() {
        await reader.cancel().catch(() => undefined);
      },
    },
    { highWaterMark: 0 },
  );
}

export function streamOf(pieces: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const iterator = pieces[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        const piece = await iterator.next();
        if (piece.done) controller.close();
        else controller.enqueue(piece.value);
      },
      async cancel() {
        await iterator.return?.();
      },
    },
    { highWaterMark: 0 },
  );
}

export function fetchTransport(target: Target, by: typeof fetch): Transport {
  return async (request) => {
    const init: RequestInit & { duplex?: "half" } = {
      method: request.method,
      headers: request.headers,
      redirect: "error", // a daemon does not redirect; a token does not travel further
      credentials: "omit",
    };
    if (request.signal) init.signal = request.signal;
    if (typeof request.body === "string") init.body = request.body;
    else if (request.body instanceof Uint8Array) init.body = request.body as Bytes;
    else if (request.body) {
      init.body = streamOf(request.body);
      init.duplex = "half";
    }
    try {
      const answer = await by(target.baseUrl + request.path, init);
      return {
        status: answer.status,
        header: (name) => answer.headers.get(name),
        body: answer.body ? guarded(answer.body, request.signal) : null,
      };
    } catch (error) {
      throw connectionError(error, request.signal, "the daemon does not answer");
    }
  };
}

export const isNode =
  typeof process !== "undefined" && typeof process.versions === "object" && Boolean(process.versions.node);

/* Bundlers for browsers leave a name alone that they cannot read. */
export async function nodeModule<T>(name: string): Promise<T> {
  return (await import(/* @vite-ignore */ /* webpackIgnore: true */ `node:${name}`)) as T;
}

type Http = typeof import("node:http");

async function openAgent(target: Target): Promise<{ http: Http; agent: import("node:http").Agent }> {
  const isTls = target.baseUrl.startsWith("https:") && !target.socketPath;
  const http = await nodeModule<Http>(isTls ? "https" : "http");
  return { http, agent: new http.Agent({ keepAlive: true, maxFreeSockets: 16 }) };
}

/** Host, port and path of a target, as node:http wants them. */
export function nodeAddress(target: Target, path: string): Record<string, unknown> {
  if (target.socketPath) return { socketPath: target.socketPath, path, headers: {} };
  const url = new URL(target.baseUrl + path);
  return { hostname: url.hostname.replace(/^\[|\]$/g, ""), port: url.port, path: url.pathname + url.search };
}

export function nodeTransport(target: Target): Transport {
  let opened: ReturnType<typeof openAgent> | undefined;

  return async (request) => {
    request.signal?.throwIfAborted();
    opened ??= openAgent(target);
    const { http, agent } = await opened;
    return new Promise<WireAnswer>((resolve, reject) => {
      const fail = (error: unknown) =>
        reject(connectionError(error, request.signal, "the daemon does not answer"));
      const headers: Record<string, string> = { ...request.headers };
      if (target.socketPath) headers["host"] = "localhost";
      if (typeof request.body === "string" || request.body instanceof Uint8Array)
        headers["content-length"] = String(toBytes(request.body).length);
      const outgoing = http.request({
        ...nodeAddress(target, request.path),
        method: request.method,
        headers,
        agent,
        ...(request.signal ? { signal: request.signal } : {}),
      });
      outgoing.on("error", fail);
      outgoing.on("response", (incoming) => {
        resolve({
          status: incoming.statusCode ?? 0,
          header: (name) => {
            const value = incoming.headers[name.toLowerCase()];
            return Array.isArray(value) ? value.join(", ") : (value ?? null);
          },
          body: guarded(streamOf(incoming as AsyncIterable<Uint8Array>), request.signal),
        });
      });
      sendBody(outgoing, request.body).catch((error: unknown) => {
        outgoing.destroy(error as Error); // an upload that breaks off must not look complete
        fail(error);
      });
    });
  };
}

async function sendBody(outgoing: import("node:http").ClientRequest, body: WireRequest["body"]): Promise<void> {
  if (body === undefined || typeof body === "string" || body instanceof Uint8Array) {
    outgoing.end(body);
    return;
  }
  for await (const piece of body) {
    if (outgoing.destroyed) return;
    if (!outgoing.write(piece))
      await new Promise<void>((resolve) => {
        outgoing.once("drain", resolve);
        outgoing.once("close", resolve);
      });
  }
  outgoing.end();
}
