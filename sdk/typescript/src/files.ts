// SPDX-License-Identifier: Apache-2.0

// Files of a sandbox: every path is inside it, every transfer has its receipt.

import { linesOf, piecesOf, readAll, textOf, type ByteSource, type Bytes } from "./bytes.js";
import { NotFoundError } from "./errors.js";
import { parseEvent } from "./events.js";
import type { FileChange, FileInfo, FileListing, Moved } from "./types.js";
import type { CallOptions, Wire } from "./wire.js";

const CHANGE_MAX_BYTES = 64 * 1024;

export class Files {
  constructor(
    private readonly wire: Wire,
    private readonly sandbox: string,
  ) {}

  private at(...rest: string[]): string[] {
    return ["v1", "sandboxes", this.sandbox, ...rest];
  }

  /** As it comes; a stream that breaks off fails, it does not end. */
  readStream(path: string, options: CallOptions = {}): Promise<ReadableStream<Uint8Array>> {
    return this.wire.stream("GET", this.at("files"), { ...options, query: { path } });
  }

  async read(path: string, options: CallOptions = {}): Promise<Bytes> {
    return readAll(await this.readStream(path, options));
  }

  async readText(path: string, options: CallOptions = {}): Promise<string> {
    return textOf(await this.read(path, options));
  }

  /** It takes its place when it is complete: a source that fails leaves nothing. */
  write(path: string, content: ByteSource, options: CallOptions = {}): Promise<Moved> {
    return this.wire.json("PUT", this.at("files"), { ...options, query: { path }, bytes: content, long: true });
  }

  list(path: string, options: CallOptions = {}): Promise<FileListing> {
    return this.wire.json("GET", this.at("files", "list"), { ...options, query: { path } });
  }

  /** Links are not followed. */
  stat(path: string, options: CallOptions = {}): Promise<FileInfo & Moved> {
    return this.wire.json("GET", this.at("files", "stat"), { ...options, query: { path } });
  }

  async exists(path: string, options: CallOptions = {}): Promise<boolean> {
    try {
      await this.stat(path, options);
      return true;
    } catch (error) {
      if (error instanceof NotFoundError) return false;
      throw error;
    }
  }

  mkdir(path: string, options: CallOptions & { parents?: boolean } = {}): Promise<Moved> {
    const { parents, ...call } = options;
    return this.wire.json("POST", this.at("files", "mkdir"), { ...call, query: { path, parents } });
  }

  move(from: string, to: string, options: CallOptions = {}): Promise<Moved> {
    return this.wire.json("POST", this.at("files", "move"), { ...options, json: { from, to } });
  }

  remove(path: string, options: CallOptions & { recursive?: boolean } = {}): Promise<Moved> {
    const { recursive, ...call } = options;
    return this.wire.json("DELETE", this.at("files"), { ...call, query: { path, recursive } });
  }

  /** A folder with all that is in it, as a tar archive. */
  pack(path: string, options: CallOptions = {}): Promise<ReadableStream<Uint8Array>> {
    return this.wire.stream("GET", this.at("tar"), { ...options, query: { path } });
  }

  /** Puts what is in a tar archive into a folder. */
  unpack(path: string, archive: ByteSource, options: CallOptions = {}): Promise<Moved> {
    return this.wire.json("PUT", this.at("tar"), { ...options, query: { path }, bytes: archive, long: true });
  }

  /** What changes at a path, until the loop is left or the time is up. */
  async *watch(path: string, options: CallOptions & { wait_ms?: number } = {}): AsyncGenerator<FileChange> {
    const { wait_ms, ...call } = options;
    const changes = await this.wire.stream("GET", this.at("files", "watch"), { ...call, query: { path, wait_ms } });
    for await (const line of linesOf(piecesOf(changes), CHANGE_MAX_BYTES))
      yield parseEvent(textOf(line.bytes)) as unknown as FileChange;
  }
}
