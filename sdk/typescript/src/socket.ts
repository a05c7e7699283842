// SPDX-License-Identifier: Apache-2.0

// WebSockets, as far as the daemon needs them. In Node a small client of RFC 6455 over node:http:
// Node 20 has none without a flag, and none of the platform's reaches a unix socket. Elsewhere the
// platform's own, which cannot send headers: the token goes as a subprotocol next to the one that is
// chosen, brig.v1.

import { concat, textOf, utf8 } from "./bytes.js";
import { ConnectionError, errorOf } from "./errors.js";
import { connectionError, isNode, nodeAddress, nodeModule, type Target } from "./transport.js";

export interface SocketEvents {
  onText(text: string): void;
  /** Once, and nothing after it. */
  onClose(code: number, reason: string): void;
}

export interface Socket {
  send(data: string | Uint8Array): void;
  /** Bytes that have not left yet. */
  readonly waiting: number;
  /** Whether messages may come. */
  hold(held: boolean): void;
  close(code?: number): void;
}

const PROTOCOL = "brig.v1";
const BEARER = "brig.bearer.";
const NO_STATUS = 1005;
const ABNORMAL = 1006;

/* ---- the platform's ---- */

function openPlatform(target: Target, path: string, token: string | undefined, events: SocketEvents): Promise<Socket> {
  const protocols = token ? [PROTOCOL, BEARER + token] : [PROTOCOL];
  const ws = new WebSocket(target.baseUrl.replace(/^http/, "ws") + path, protocols);
  let isOpen = false;

  return new Promise((resolve, reject) => {
    ws.addEventListener("open", () => {
      isOpen = true;
      resolve({
        send: (data) => ws.send(data as string),
        get waiting() {
          return ws.bufferedAmount;
        },
        hold: () => undefined, // the platform's reads on
        close: (code) => ws.close(code),
      });
    });
    ws.addEventListener("message", (message: MessageEvent) => {
      if (typeof message.data === "string") events.onText(message.data);
    });
    ws.addEventListener("close", (end: CloseEvent) => {
      if (isOpen) events.onClose(end.code, end.reason);
      else reject(new ConnectionError("the WebSocket was refused", { code: "connection" }));
    });
  });
}

/* ---- ours ---- */

type NodeSocket = import("node:stream").Duplex;

const FRAME_MAX_BYTES = 64 * 1024 * 1024;

enum Op {
  More = 0,
  Text = 1,
  Binary = 2,
  Close = 8,
  Ping = 9,
  Pong = 10,
}

function frameOf(op: Op, payload: Uint8Array): Uint8Array {
  const n = payload.length;
  const head = new Uint8Array(n < 126 ? 6 : n < 65536 ? 8 : 14);
  const view = new DataView(head.buffer);
  const mask = crypto.getRandomValues(new Uint8Array(4));
  const body = new Uint8Array(n);

  head[0] = 0x80 | op;
  head[1] = 0x80 | (n < 126 ? n : n < 65536 ? 126 : 127);
  if (head.length === 8) view.setUint16(2, n);
  if (head.length === 14) view.setBigUint64(2, BigInt(n));
  head.set(mask, head.length - 4);
  for (let i = 0; i < n; i++) body[i] = (payload[i] ?? 0) ^ (mask[i & 3] ?? 0);
  return concat([head, body]);
}

class NodeClient implements Socket {
  private got: Uint8Array = new Uint8Array();
  private fragments: Uint8Array[] = [];
  private isOver = false;
  private said: { code: number; reason: string } | undefined;

  constructor(
    private readonly socket: NodeSocket,
    private readonly events: SocketEvents,
  ) {
    socket.on("data", (bytes: Uint8Array) => this.take(bytes));
    socket.on("error", () => this.end());
    socket.on("close", () => this.end());
  }

  get waiting(): number {
    return this.socket.writableLength;
  }

  hold(held: boolean): void {
    if (held) this.socket.pause();
    else this.socket.resume();
  }

  send(data: string | Uint8Array): void {
    if (this.said || this.isOver) return;
    if (typeof data === "string") this.socket.write(frameOf(Op.Text, utf8(data)));
    else this.socket.write(frameOf(Op.Binary, data));
  }

  close(code = 1000): void {
    if (this.isOver) return;
    this.socket.write(frameOf(Op.Close, new Uint8Array([code >> 8, code & 255])));
    this.socket.end();
  }

  take(bytes: Uint8Array): void {
    this.got = this.got.length ? concat([this.got, bytes]) : bytes;
    while (this.takeFrame());
  }

  private end(): void {
    if (this.isOver) return;
    this.isOver = true;
    this.socket.destroy();
    this.events.onClose(this.said?.code ?? ABNORMAL, this.said?.reason ?? "");
  }

  /* Whether there was a whole one. */
  private takeFrame(): boolean {
    const view = new DataView(this.got.buffer, this.got.byteOffset, this.got.length);
    if (this.isOver || view.byteLength < 2) return false;
    const short = view.getUint8(1) & 127;
    const at = short < 126 ? 2 : short === 126 ? 4 : 10;
    if (view.byteLength < at) return false;
    const size = short < 126 ? short : short === 126 ? view.getUint16(2) : Number(view.getBigUint64(2));
    if (size > FRAME_MAX_BYTES || view.getUint8(1) & 128) {
      this.end(); // a server does not mask, and sends nothing this large
      return false;
    }
    if (view.byteLength < at + size) return false;
    const payload = this.got.subarray(at, at + size);
    const first = view.getUint8(0);
    this.got = this.got.subarray(at + size);
    this.onFrame(first & 15, (first & 128) !== 0, payload);
    return true;
  }

  private onFrame(op: Op, isLast: boolean, payload: Uint8Array): void {
    if (op === Op.Ping) this.socket.write(frameOf(Op.Pong, payload));
    if (op === Op.Close) {
      const code = payload.length >= 2 ? ((payload[0] ?? 0) << 8) | (payload[1] ?? 0) : NO_STATUS;
      this.said = { code, reason: textOf(payload.subarray(2)) };
      this.socket.write(frameOf(Op.Close, payload.subarray(0, 2)));
      this.socket.end();
      this.end();
    }
    if (op > Op.Binary) return;
    this.fragments.push(payload);
    if (!isLast) return;
    const whole = concat(this.fragments);
    this.fragments = [];
    this.events.onText(textOf(whole));
  }
}

async function openNode(
  target: Target,
  path: string,
  token: string | undefined,
  events: SocketEvents,
  signal: AbortSignal | undefined,
): Promise<Socket> {
  const isTls = target.baseUrl.startsWith("https:") && !target.socketPath;
  const http = await nodeModule<typeof import("node:http")>(isTls ? "https" : "http");
  const { createHash, randomBytes } = await nodeModule<typeof import("node:crypto")>("crypto");
  const key = randomBytes(16).toString("base64");
  const wanted = createHash("sha1").update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest("base64");
  const headers: Record<string, string> = {
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": key,
  };
  if (token) headers["authorization"] = `Bearer ${token}`;
  if (target.socketPath) headers["host"] = "localhost";

  return new Promise((resolve, reject) => {
    const outgoing = http.request({
      ...nodeAddress(target, path),
      headers,
      agent: false,
      ...(signal ? { signal } : {}),
    });
    outgoing.on("error", (error) => reject(connectionError(error, signal, "the daemon does not answer")));
    outgoing.on("upgrade", (answer, socket, rest) => {
      if (answer.headers["sec-websocket-accept"] !== wanted) {
        socket.destroy();
        reject(new ConnectionError("the answer to the WebSocket is not one", { code: "connection" }));
        return;
      }
      const client = new NodeClient(socket, events);
      resolve(client);
      // Frames may have come along; whoever waits for the socket hears of them first.
      if (rest.length) queueMicrotask(() => client.take(rest));
    });
    outgoing.on("response", (answer) => {
      const pieces: Uint8Array[] = [];
      answer.on("data", (piece: Uint8Array) => pieces.push(piece));
      answer.on("end", () => {
        let body: unknown;
        try {
          body = JSON.parse(textOf(concat(pieces)));
        } catch {
          body = undefined;
        }
        reject(errorOf(answer.statusCode ?? 0, body));
      });
      answer.on("error", (error) => reject(connectionError(error, signal, "the answer broke off")));
    });
    outgoing.end();
  });
}

export function openSocket(
  target: Target,
  path: string,
  token: string | undefined,
  events: SocketEvents,
  signal?: AbortSignal,
  platform = !isNode,
): Promise<Socket> {
  return platform ? openPlatform(target, path, token, events) : openNode(target, path, token, events, signal);
}
