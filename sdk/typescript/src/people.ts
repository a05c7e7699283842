// SPDX-License-Identifier: Apache-2.0

// What people decide: approvals, tokens, policies and the stop button.

import type { Approval, CreateToken, Frozen, PolicyInfo, PolicyVerdict, TokenInfo } from "./types.js";
import type { CallOptions, CreateOptions, Wire } from "./wire.js";

export interface ApprovalQuery {
  /** "pending" by default. */
  state?: Approval["state"] | "any";
  /** The seq of the last one seen. */
  after?: number;
  limit?: number;
}

/** A person's word. With a custodian's name it is signed by that custodian's key. */
export interface Word extends CallOptions {
  comment?: string;
  custodian?: string;
  /** Ed25519 over SHA-256 of brig/approval/1, NUL, confirm or reject, NUL, approval_id, NUL, digest; hex. */
  signature?: string;
}

/** What waits for a person: an agent asks, somebody else says yes or no. */
export class Approvals {
  constructor(private readonly wire: Wire) {}

  /** Oldest first; without the scope "approve" only one's own. */
  async list(query: ApprovalQuery = {}, options: CallOptions = {}): Promise<Approval[]> {
    const answer = await this.wire.json<{ approvals: Approval[] }>("GET", ["v1", "approvals"], {
      ...options,
      query: { ...query },
    });
    return answer.approvals;
  }

  show(id: string, options: CallOptions = {}): Promise<Approval> {
    return this.wire.json("GET", ["v1", "approvals", id], options);
  }

  /** Lets exactly that happen, once. Never by whoever asked. */
  confirm(id: string, word: Word = {}): Promise<Approval> {
    const { signal, ...json } = word;
    return this.wire.json("POST", ["v1", "approvals", id, "confirm"], { signal, json });
  }

  reject(id: string, word: Word = {}): Promise<Approval> {
    const { signal, ...json } = word;
    return this.wire.json("POST", ["v1", "approvals", id, "reject"], { signal, json });
  }
}

export class Tokens {
  constructor(private readonly wire: Wire) {}

  /** Its words are in the answer, this once. */
  create(spec: CreateToken, options: CreateOptions = {}): Promise<TokenInfo & { token: string }> {
    return this.wire.json("POST", ["v1", "tokens"], { ...options, json: spec, creates: true });
  }

  async list(options: CallOptions = {}): Promise<TokenInfo[]> {
    return (await this.wire.json<{ tokens: TokenInfo[] }>("GET", ["v1", "tokens"], options)).tokens;
  }

  revoke(id: string, options: CallOptions = {}): Promise<TokenInfo> {
    return this.wire.json("DELETE", ["v1", "tokens", id], options);
  }
}

/** Policies are read and asked here; none of this has an effect. */
export class Policies {
  constructor(private readonly wire: Wire) {}

  /** The one that new sandboxes of the tenant live under. */
  show(options: CallOptions = {}): Promise<PolicyInfo> {
    return this.wire.json("GET", ["v1", "policy"], options);
  }

  /** Reads a policy strictly; what is wrong with it is in error. */
  check(text: string, options: CallOptions = {}): Promise<PolicyInfo> {
    return this.wire.json("POST", ["v1", "policies", "check"], { ...options, json: { text } });
  }

  /** What a policy (the tenant's own by default) says to a command. */
  explain(command: readonly string[], options: CallOptions & { policy?: string } = {}): Promise<PolicyVerdict> {
    const { policy, ...call } = options;
    const json = policy === undefined ? { command } : { command, policy };
    return this.wire.json("POST", ["v1", "policies", "explain"], { ...call, json });
  }
}

/** Whom it concerns; without a tenant everybody. */
export interface FreezeSpec {
  tenant?: string;
  principal?: string;
}

/** The stop button: refuses new effects, what runs goes on. */
export class Freeze {
  constructor(private readonly wire: Wire) {}

  async list(options: CallOptions = {}): Promise<Frozen[]> {
    return (await this.wire.json<{ frozen: Frozen[] }>("GET", ["v1", "freeze"], options)).frozen;
  }

  set(spec: FreezeSpec & { reason?: string } = {}, options: CallOptions = {}): Promise<Frozen> {
    return this.wire.json("POST", ["v1", "freeze"], { ...options, json: spec });
  }

  /** Takes back exactly one. */
  lift(spec: FreezeSpec = {}, options: CallOptions = {}): Promise<Frozen> {
    return this.wire.json("DELETE", ["v1", "freeze"], { ...options, query: { ...spec } });
  }
}
