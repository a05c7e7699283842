// SPDX-License-Identifier: Apache-2.0

// Bytes and their texts, with what every platform has.

import { ConnectionError } from "./errors.js";

/** A platform's own view of bytes: never shared memory, so that crypto and fetch take them. */
export type Bytes = Uint8Array<ArrayBuffer>;

const encoder = new TextEncoder();
const decoder = new TextDecoder();

export function utf8(text: string): Bytes {
  return encoder.encode(text) as Bytes;
}

/** Bytes that are no text show as replacement characters. */
export function textOf(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

export function toBytes(data: string | Uint8Array): Bytes {
  return typeof data === "string" ? utf8(data) : (data as Bytes);
}

export function hexOf(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += byte.toString(16).padStart(2, "0");
  return text;
}

/** undefined: not that many lower-case digits. */
export function bytesOfHex(text: string, count: number): Bytes | undefined {
  if (text.length !== 2 * count || !/^[0-9a-f]*$/.test(text)) return undefined;
  const bytes = new Uint8Array(count);
  for (let i = 0; i < count; i++) bytes[i] = Number.parseInt(text.slice(2 * i, 2 * i + 2), 16);
  return bytes;
}

const PIECE = 0x8000; // what fits on the stack as arguments

export function base64Of(bytes: Uint8Array): string {
  let text = "";
  for (let i = 0; i < bytes.length; i += PIECE)
    text += String.fromCharCode(...bytes.subarray(i, i + PIECE));
  return btoa(text);
}

export function bytesOfBase64(text: string): Bytes {
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

export function concat(pieces: readonly Uint8Array[]): Bytes {
  let size = 0;
  for (const piece of pieces) size += piece.length;
  const all = new Uint8Array(size);
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return all;
}

export async function sha256(...pieces: Uint8Array[]): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", concat(pieces)));
}

export type ByteSource =
  | string
  | Uint8Array
  | Blob
  | ReadableStream<Uint8Array>
  | AsyncIterable<Uint8Array | string>;

/** Pieces of a stream; leaving the loop early cancels it. */
export async function* piecesOf(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = stream.getReader();
  let done = false;
  try {
    for (;;) {
      const piece = await reader.read();
      done = piece.done;
      if (piece.done) return;
      yield piece.value;
    }
  } catch (error) {
    done = true;
    throw error;
  } finally {
    if (!done) await reader.cancel().catch(() => undefined);
    reader.releaseLock();
  }
}

/** At most max bytes; a stream with more is left, and is a ConnectionError. */
export async function readAll(stream: ReadableStream<Uint8Array> | null, max = Infinity): Promise<Bytes> {
  const pieces: Uint8Array[] = [];
  let size = 0;
  if (stream)
    for await (const piece of piecesOf(stream)) {
      size += piece.length;
      if (size > max) throw new ConnectionError(`the answer has more than ${max} bytes: is this a Brig daemon?`, { code: "connection" });
      pieces.push(piece);
    }
  return concat(pieces);
}

/** Lines without their ends; the last one is told apart when nothing ended it. */
export async function* linesOf(
  pieces: AsyncIterable<Uint8Array | string>,
  max: number,
): AsyncGenerator<{ bytes: Bytes; ended: boolean; tooLong: boolean }> {
  let waiting: Uint8Array[] = [];
  let size = 0;
  let tooLong = false;
  const take = (ended: boolean) => {
    const line = { bytes: concat(waiting), ended, tooLong };
    waiting = [];
    size = 0;
    tooLong = false;
    return line;
  };
  const add = (piece: Uint8Array) => {
    if (tooLong || size + piece.length > max) {
      tooLong = true;
      return;
    }
    size += piece.length;
    waiting.push(piece);
  };

  for await (const given of pieces) {
    let piece: Uint8Array = toBytes(given);
    for (let end = piece.indexOf(10); end >= 0; end = piece.indexOf(10)) {
      add(piece.subarray(0, end));
      yield take(true);
      piece = piece.subarray(end + 1);
    }
    if (piece.length) add(piece);
  }
  if (size || tooLong) yield take(false);
}
