// SPDX-License-Identifier: Apache-2.0

// Ed25519 by WebCrypto, and what docs/formats/receipt.md asks beyond RFC 8032: S is reduced, R and
// the key are canonical, neither is of small order. Platforms differ in these; receipts do not.

import { bytesOfBase64, bytesOfHex, hexOf, sha256, type Bytes } from "./bytes.js";

const P = 2n ** 255n - 19n;
const L = 2n ** 252n + 27742317777372353535851937790883648493n;

/* The y of the eight points whose order divides 8. */
const SMALL_ORDER = new Set([
  0n,
  1n,
  P - 1n,
  0x7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7n,
  0x05fc536d880238b13933c6d305acdfd5f098eff289f4c345b027b2c28f95e826n,
]);

function littleEndian(bytes: Uint8Array): bigint {
  let value = 0n;
  for (let i = bytes.length - 1; i >= 0; i--) value = (value << 8n) | BigInt(bytes[i] ?? 0);
  return value;
}

/* A point as 32 bytes: y, and in the top bit the sign of x. */
function isGoodPoint(bytes: Uint8Array): boolean {
  const y = littleEndian(bytes) & ((1n << 255n) - 1n);
  return y < P && !SMALL_ORDER.has(y);
}

/** A key whose signatures count, and its name. */
export interface TrustedKey {
  readonly key_id: string;
  holds(signature: Uint8Array, message: Uint8Array): Promise<boolean>;
}

/* SubjectPublicKeyInfo of an Ed25519 key is this and 32 bytes. */
const SPKI = "302a300506032b6570032100";

function bytesOfKey(key: string | Uint8Array): Bytes | undefined {
  if (typeof key !== "string") return key.length === 32 ? (key as Bytes) : undefined;
  const pem = /-----BEGIN PUBLIC KEY-----([A-Za-z0-9+/=\s]+)-----END PUBLIC KEY-----/.exec(key);
  if (!pem?.[1]) return bytesOfHex(key.trim(), 32);
  const der = bytesOfBase64(pem[1].replace(/\s/g, ""));
  const isEd25519 = der.length === 44 && hexOf(der.subarray(0, 12)) === SPKI;
  return isEd25519 ? der.slice(12) : undefined;
}

/** From receipts.pub (PEM), 64 hex digits, or 32 bytes. A TypeError: it is none of these. */
export async function trustKey(key: string | Uint8Array): Promise<TrustedKey> {
  const raw = bytesOfKey(key);
  if (!raw || !isGoodPoint(raw))
    throw new TypeError("not an Ed25519 public key: give receipts.pub (PEM), 64 hex digits or 32 bytes");
  const imported = await crypto.subtle.importKey("raw", raw, "Ed25519", false, ["verify"]);

  return {
    key_id: `ed25519:${hexOf(await sha256(raw)).slice(0, 16)}`,
    async holds(signature, message) {
      if (signature.length !== 64 || !isGoodPoint(signature.subarray(0, 32))) return false;
      if (littleEndian(signature.subarray(32)) >= L) return false;
      return crypto.subtle.verify("Ed25519", imported, signature as Bytes, message as Bytes);
    },
  };
}
