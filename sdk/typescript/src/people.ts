// SPDX-License-Identifier: Apache-2.0

// What people decide: approvals, tokens, policies and the stop button.

import type { Approval, CreateToken, Frozen, PolicyInfo, PolicyVerdict, TokenInfo } from "./types.js";
import type { CallOptions, CreateOptions, Wire } from "./wire.js";

export interface ApprovalQuery {
  /** "pending" by default. */
  state?: Approval["state"] | "any";
  /** The seq of the last one seen. */
  after?: number;
  /** 100 by default, 1000 at most. */
  limit?: number;
  /** Only what this one has asked for. */
  requester?: string;
}

/** Oldest first. It may end before its limit: what requests ask for can be large. */
export interface ApprovalPage {
  approvals: Approval[];
  /** There may be others behind it: ask with after = next_after. */
  more: boolean;
  next_after: number;
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

  /** One page, oldest first; without the scope "approve" only one's own. Whether it is all there is
   * only page() tells, and all() does not need to. */
  async list(query: ApprovalQuery = {}, options: CallOptions = {}): Promise<Approval[]> {
    return (await this.page(query, options)).approvals;
  }

  page(query: ApprovalQuery = {}, options: CallOptions = {}): Promise<ApprovalPage> {
    return this.wire.json("GET", ["v1", "approvals"], { ...options, query: { ...query } });
  }

  /** All of them, oldest first, page by page: limit is that of a page. */
  async *all(query: ApprovalQuery = {}, options: CallOptions = {}): AsyncGenerator<Approval> {
    let after = query.after ?? 0;
    for (;;) {
      const page = await this.page({ ...query, after }, options);
      yield* page.approvals;
      if (!page.more || page.next_after <= after) return;
      after = page.next_after;
    }
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

  /** What a policy (the tenant's own by default) says to a command, and what else would stop it; cost, like "0.50", is the most it would cost. */
  explain(command: readonly string[], options: CallOptions & { policy?: string; cost?: string } = {}): Promise<PolicyVerdict> {
    const { policy, cost, ...call } = options;
    const json = { command, ...(policy === undefined ? {} : { policy }), ...(cost === undefined ? {} : { cost }) };
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
