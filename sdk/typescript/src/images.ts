// SPDX-License-Identifier: Apache-2.0

// Images of the tenant: listed, pulled, carried in and out.

import type { ByteSource } from "./bytes.js";
import type { ImageInfo, PullImage } from "./types.js";
import type { CallOptions, CreateOptions, Wire } from "./wire.js";

export class Images {
  constructor(private readonly wire: Wire) {}

  async list(options: CallOptions = {}): Promise<ImageInfo[]> {
    return (await this.wire.json<{ images: ImageInfo[] }>("GET", ["v1", "images"], options)).images;
  }

  /** By name, digest, or the beginning of one. */
  show(image: string, options: CallOptions = {}): Promise<ImageInfo> {
    return this.wire.json("GET", ["v1", "images", "show"], { ...options, query: { image } });
  }

  /** From a registry; it goes on when the caller leaves. */
  pull(spec: PullImage, options: CreateOptions = {}): Promise<ImageInfo> {
    return this.wire.json("POST", ["v1", "images", "pull"], { ...options, json: spec, creates: true, long: true });
  }

  /** From an archive; it is taken when it is there as a whole. */
  import(archive: ByteSource, options: CreateOptions & { name?: string; skip_devices?: boolean } = {}): Promise<ImageInfo> {
    const { name, skip_devices, ...call } = options;
    const query = { name, skip_devices };
    return this.wire.json("POST", ["v1", "images", "import"], { ...call, query, bytes: archive, creates: true, long: true });
  }

  export(image: string, options: CallOptions = {}): Promise<ReadableStream<Uint8Array>> {
    return this.wire.stream("GET", ["v1", "images", "export"], { ...options, query: { image } });
  }

  verify(image: string, options: CallOptions = {}): Promise<{ image_digest: string; intact: boolean }> {
    return this.wire.json("POST", ["v1", "images", "verify"], { ...options, query: { image }, long: true });
  }

  remove(image: string, options: CallOptions = {}): Promise<Record<string, unknown>> {
    return this.wire.json("DELETE", ["v1", "images"], { ...options, query: { image } });
  }
}
