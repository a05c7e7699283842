// SPDX-License-Identifier: Apache-2.0

// Snapshots: looked at, forked from, carried out and in.

import type { ByteSource } from "./bytes.js";
import { Sandbox } from "./sandbox.js";
import type { ForkAnswer, ForkSpec, SnapshotInfo, SnapshotMade, SnapshotRemoved } from "./types.js";
import type { CallOptions, CreateOptions, Wire } from "./wire.js";

/** An archive, and what was left out of it. */
export interface SnapshotArchive {
  /** A tar of an OCI layout; a stream that breaks off fails. */
  archive: ReadableStream<Uint8Array>;
  receipt_id: string;
  image_digest: string;
  /** Files that looked like credentials. */
  dropped: number;
  /** Files with parts that did. */
  replaced: number;
}

export class Snapshots {
  constructor(private readonly wire: Wire) {}

  /** All of them, oldest first. */
  async list(options: CallOptions = {}): Promise<SnapshotInfo[]> {
    return (await this.wire.json<{ snapshots: SnapshotInfo[] }>("GET", ["v1", "snapshots"], options)).snapshots;
  }

  /** By id, name or digest. */
  get(id: string, options: CallOptions = {}): Promise<SnapshotInfo> {
    return this.wire.json("GET", ["v1", "snapshots", id], options);
  }

  remove(id: string, options: CallOptions = {}): Promise<SnapshotRemoved> {
    return this.wire.json("DELETE", ["v1", "snapshots", id], options);
  }

  /** Reads everything of it again; an IntegrityError when it is not what it was. */
  verify(id: string, options: CallOptions = {}): Promise<{ snapshot_id: string; digest: string; intact: boolean }> {
    return this.wire.json("POST", ["v1", "snapshots", id, "verify"], { ...options, long: true });
  }

  /** Sandboxes that begin where it is. */
  async fork(id: string, spec: ForkSpec = {}, options: CreateOptions = {}): Promise<Sandbox[]> {
    const answer = await this.wire.json<ForkAnswer>("POST", ["v1", "snapshots", id, "fork"], {
      ...options,
      json: spec,
      creates: true,
      long: true,
    });
    return answer.sandboxes.map((info) => new Sandbox(this.wire, info.sandbox_id, info));
  }

  /** Without what looks like a credential, unless everything is wanted. */
  async export(id: string, options: CallOptions & { everything?: boolean } = {}): Promise<SnapshotArchive> {
    const { everything, ...call } = options;
    const answer = await this.wire.open("GET", ["v1", "snapshots", id, "export"], { ...call, query: { everything } });
    return {
      archive: answer.body ?? new Blob([]).stream(),
      receipt_id: answer.header("x-receipt-id") ?? "",
      image_digest: answer.header("x-image-digest") ?? "",
      dropped: Number(answer.header("x-dropped")),
      replaced: Number(answer.header("x-replaced")),
    };
  }

  /** From an archive that an export gave. */
  import(archive: ByteSource, options: CreateOptions & { name?: string } = {}): Promise<SnapshotMade> {
    const { name, ...call } = options;
    const query = { name };
    return this.wire.json("POST", ["v1", "snapshots", "import"], { ...call, query, bytes: archive, creates: true, long: true });
  }
}
