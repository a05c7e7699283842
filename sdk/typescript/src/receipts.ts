// SPDX-License-Identifier: Apache-2.0

// The ledger of the caller's tenant: read over the API, judged here.

import { linesOf, piecesOf, textOf } from "./bytes.js";
import { ConnectionError } from "./errors.js";
import { parseEvent } from "./events.js";
import { verifyReceipts, type Verification, type VerifyOptions } from "./verify.js";
import type { Receipt, ReceiptHead } from "./types.js";
import { pause, retryDelay, type CallOptions, type Wire } from "./wire.js";

export interface ReceiptQuery {
  /** 50 by default, 1000 at most. */
  limit?: number;
  /** Only earlier ones: the next page. */
  before_seq?: number;
  run_id?: string;
}

export interface TailQuery {
  after?: number;
  /** It ends after so many. */
  limit?: number;
  /** It ends after this long. */
  wait_ms?: number;
}

const PAGE = 200;
const TAIL_RETRIES = 8; // in a row, without anything new
const RECEIPT_MAX_BYTES = 128 * 1024;

function remaining(left: number, ends: number): TailQuery {
  const query: TailQuery = {};
  if (left !== Infinity) query.limit = left;
  if (ends !== Infinity) query.wait_ms = Math.max(1, ends - Date.now());
  return query;
}

export class Receipts {
  constructor(private readonly wire: Wire) {}

  /** A page, newest first. */
  async list(query: ReceiptQuery = {}, options: CallOptions = {}): Promise<Receipt[]> {
    const answer = await this.wire.json<{ receipts: Receipt[] }>("GET", ["v1", "receipts"], {
      ...options,
      query: { ...query },
    });
    return answer.receipts;
  }

  /** All of them, newest first, page by page. */
  async *all(query: Omit<ReceiptQuery, "before_seq"> = {}, options: CallOptions = {}): AsyncGenerator<Receipt> {
    let before_seq: number | undefined;
    for (;;) {
      const page = await this.list({ limit: PAGE, ...query, ...(before_seq ? { before_seq } : {}) }, options);
      yield* page;
      before_seq = page.at(-1)?.seq;
      if (before_seq === undefined || before_seq <= 1) return;
    }
  }

  /** One, by id, the beginning of one, or sequence number. */
  show(id: string | number, options: CallOptions = {}): Promise<Receipt> {
    return this.wire.json("GET", ["v1", "receipts", String(id)], options);
  }

  /** A signed head, to be kept elsewhere: later it proves that nothing up to it was cut off. */
  head(options: CallOptions = {}): Promise<ReceiptHead> {
    return this.wire.json("GET", ["v1", "receipts", "head"], options);
  }

  /** All receipts, oldest first, a line each: what "brig verify" reads. */
  export(options: CallOptions = {}): Promise<ReadableStream<Uint8Array>> {
    return this.wire.stream("GET", ["v1", "receipts", "export"], options);
  }

  /** Receipts as they are made, each once and in order: from the next one on, or behind the number
   * given (0: from the first). A connection that breaks is made again, and nothing is missed. */
  async *tail(query: TailQuery = {}, options: CallOptions = {}): AsyncGenerator<Receipt> {
    const ends = query.wait_ms === undefined ? Infinity : Date.now() + query.wait_ms;
    let left = query.limit ?? Infinity;
    // The number of the last one there is: what comes back after a break must begin behind it.
    let after = query.after ?? (await this.list({ limit: 1 }, options))[0]?.seq ?? 0;
    for (let attempt = 0; ; attempt++) {
      try {
        for await (const receipt of this.tailOnce({ ...query, after, ...remaining(left, ends) }, options)) {
          after = receipt.seq;
          attempt = 0;
          yield receipt;
          if (--left <= 0) return;
        }
      } catch (error) {
        if (!(error instanceof ConnectionError) || attempt >= TAIL_RETRIES) throw error;
      }
      if (Date.now() >= ends) return;
      // The daemon was told to stop, or the connection broke.
      if (attempt >= TAIL_RETRIES) throw new ConnectionError("the daemon ends what is followed", { code: "connection" });
      await pause(retryDelay(attempt), options.signal);
    }
  }

  private async *tailOnce(query: TailQuery, options: CallOptions): AsyncGenerator<Receipt> {
    const lines = await this.wire.stream("GET", ["v1", "receipts", "tail"], { ...options, query: { ...query } });
    for await (const line of linesOf(piecesOf(lines), RECEIPT_MAX_BYTES)) {
      if (!line.ended || line.tooLong) throw new ConnectionError("a receipt broke off", { code: "connection" });
      yield parseEvent(textOf(line.bytes)) as unknown as Receipt;
    }
  }

  /** Fetches all of them and judges them here: the daemon is asked for bytes, not for its word. */
  async verify(options: VerifyOptions & CallOptions): Promise<Verification> {
    return verifyReceipts(piecesOf(await this.export(options)), options);
  }

  /** The daemon's own word on its ledger. */
  verifyThere(head?: ReceiptHead, options: CallOptions = {}): Promise<Verification> {
    return this.wire.json("POST", ["v1", "receipts", "verify"], {
      ...options,
      json: head ? { head: JSON.stringify(head) } : {},
      long: true,
    });
  }
}
