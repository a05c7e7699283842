// SPDX-License-Identifier: Apache-2.0

// A command one talks to while it runs: over a WebSocket, with input, signals and the size of its
// terminal.

import { utf8 } from "./bytes.js";
import { ConnectionError, InvalidError } from "./errors.js";
import { Execution, eventOf, parseEvent, type ExecEvent, type OutputCallbacks } from "./events.js";
import { openSocket, type Socket } from "./socket.js";
import type { Wire } from "./wire.js";
import { pause, pathOf } from "./wire.js";

const QUEUE_MAX = 256; // events nobody has looked at
const WAITING_MAX = 512 * 1024; // input the command has not taken: below what holds up orders
const PIECE_BYTES = 128 * 1024;
const POLICY = 1008;

const NUMBERS: Record<string, number> = {
  SIGHUP: 1,
  SIGINT: 2,
  SIGQUIT: 3,
  SIGKILL: 9,
  SIGUSR1: 10,
  SIGUSR2: 12,
  SIGALRM: 14,
  SIGTERM: 15,
  SIGCONT: 18,
  SIGSTOP: 19,
  SIGTSTP: 20,
  SIGWINCH: 28,
};

/** A signal by its name or number. */
export type Signal = keyof typeof NUMBERS | number;

export function signalNumber(signal: Signal): number {
  const number = typeof signal === "number" ? signal : NUMBERS[signal];
  if (number === undefined) throw new TypeError(`there is no signal ${signal}`);
  return number;
}

/* Events from the socket to whoever asks for them; the socket is held while they pile up. */
class Queue {
  private readonly items: (() => ExecEvent | undefined)[] = [];
  private wake: (() => void) | undefined;
  private isOver = false;
  socket: Socket | undefined;

  push(item: () => ExecEvent | undefined): void {
    this.items.push(item);
    if (this.items.length > QUEUE_MAX) this.socket?.hold(true);
    this.wake?.();
  }

  end(): void {
    this.isOver = true;
    this.wake?.();
  }

  async *read(): AsyncGenerator<ExecEvent> {
    try {
      for (;;) {
        const item = this.items.shift();
        if (item) {
          if (this.items.length === 0) this.socket?.hold(false);
          const event = item();
          if (event) yield event;
        } else if (this.isOver) {
          return;
        } else {
          await new Promise<void>((resolve) => (this.wake = resolve));
        }
      }
    } finally {
      this.socket?.hold(false);
      this.socket?.close();
    }
  }
}

export class Session extends Execution {
  private sent = 0;

  private constructor(
    queue: Queue,
    private readonly socket: Socket,
    private readonly input: { taken: number; isOver: boolean },
    callbacks: OutputCallbacks,
  ) {
    super(queue.read(), callbacks);
  }

  static async open(
    wire: Wire,
    segments: readonly string[],
    first: unknown,
    options: OutputCallbacks & { signal?: AbortSignal | undefined; platformSocket?: boolean | undefined },
  ): Promise<Session> {
    const queue = new Queue();
    const input = { taken: 0, isOver: false };
    let hasExit = false;
    const socket = await openSocket(
      wire.target,
      pathOf(segments),
      wire.token,
      {
        onText(text) {
          const event = parseEvent(text);
          // A request that fails before anything runs is answered without being an event.
          if (event.event === undefined) event.event = event["error"] ? "error" : "exit";
          if (event.event === "stdin") {
            input.taken = Number(event["bytes"]);
            return;
          }
          hasExit ||= event.event === "exit" || event.event === "error";
          queue.push(() => eventOf(event));
        },
        onClose(code, reason) {
          input.isOver = true;
          if (!hasExit)
            queue.push(() => {
              if (code === POLICY) throw new InvalidError(reason, { status: 400, code: "invalid" });
              throw new ConnectionError(`the WebSocket closed with ${code} before the command ended`, { code: "connection" });
            });
          queue.end();
        },
      },
      options.signal,
      options.platformSocket,
    );
    queue.socket = socket;
    options.signal?.addEventListener(
      "abort",
      () => {
        queue.push(() => {
          throw options.signal?.reason;
        });
        socket.send(JSON.stringify({ type: "cancel" })); // said, not only left: the receipt knows the difference
        socket.close();
      },
      { once: true },
    );
    socket.send(JSON.stringify(first));
    return new Session(queue, socket, input, options);
  }

  /** Input; resolves when the command has taken enough of it that there is room for more. */
  async write(data: string | Uint8Array): Promise<void> {
    const bytes = typeof data === "string" ? utf8(data) : data;
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
      const piece = bytes.subarray(at, at + PIECE_BYTES);
      this.socket.send(piece);
      this.sent += piece.length;
      while (!this.input.isOver && this.sent - this.input.taken > WAITING_MAX) await pause(2);
    }
  }

  /** No more input. */
  end(): void {
    this.socket.send(JSON.stringify({ type: "stdin_end" }));
  }

  signal(signal: Signal): void {
    this.socket.send(JSON.stringify({ type: "signal", signal: signalNumber(signal) }));
  }

  /** Of a command with a terminal. */
  resize(rows: number, cols: number): void {
    this.socket.send(JSON.stringify({ type: "resize", rows, cols }));
  }
}
