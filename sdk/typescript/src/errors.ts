// SPDX-License-Identifier: Apache-2.0

// What the daemon answers when it refuses or fails, one class per code, so that callers can tell
// them apart with instanceof. Nothing here is thrown for a command that ran and failed: how a
// command ended is a result.

/** What a refusal says beside its sentence. A denial names its receipt. */
export interface ErrorDetails {
  receipt_id?: string;
  verdict?: string;
  /** What waits for a person's word; see brig.approvals. */
  approval_id?: string;
  [name: string]: unknown;
}

export interface ErrorFacts {
  status?: number;
  type?: string;
  code?: string;
  reason_code?: string | undefined;
  details?: ErrorDetails | undefined;
  request_id?: string | undefined;
  cause?: unknown;
}

/** Every error of this library that is not a mistake in its use. */
export class BrigError extends Error {
  /** HTTP status; 0 when there was no answer. */
  readonly status: number;
  readonly type: string;
  readonly code: string;
  readonly reason_code: string | undefined;
  readonly details: ErrorDetails;
  /** Names the request in the daemon's log. */
  readonly request_id: string | undefined;

  constructor(message: string, facts: ErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.name = new.target.name;
    this.status = facts.status ?? 0;
    this.type = facts.type ?? "internal_error";
    this.code = facts.code ?? "internal";
    this.reason_code = facts.reason_code;
    this.details = facts.details ?? {};
    this.request_id = facts.request_id;
  }
}

/** 400: not well-formed; the message names the member. */
export class InvalidError extends BrigError {}
/** 401: no token, or none that is valid. */
export class UnauthenticatedError extends BrigError {}
/** 403: a scope is missing, or a name is not the daemon's. */
export class ForbiddenError extends BrigError {}
/** 403: the policy said no, or a person has to say yes; details.receipt_id is the proof. */
export class DeniedError extends ForbiddenError {}
/** 403: new effects of this principal, its tenant or everybody are frozen. */
export class FrozenError extends DeniedError {}
/** 404: it does not exist, or is not yours. */
export class NotFoundError extends BrigError {}
/** 409: it cannot be done in this state, or its Idempotency-Key is taken. */
export class ConflictError extends BrigError {}
/** 429: a share is used up, or too many wait. */
export class LimitError extends BrigError {}
/** 507: a disk or a quota of the daemon's machine, or of the sandbox, is full. */
export class StorageError extends BrigError {}
/** 504: it took too long. */
export class TimeoutError extends BrigError {}
/** 503: it cannot be done here now. */
export class UnavailableError extends BrigError {}
/** 500: what is kept is not what was kept. */
export class IntegrityError extends BrigError {}
/** 500: the daemon or its machine failed. */
export class InternalError extends BrigError {}
/** No answer, or one that broke off: whether the request took effect is not known. */
export class ConnectionError extends BrigError {}

const byCode: Record<string, typeof BrigError> = {
  invalid: InvalidError,
  forbidden: ForbiddenError,
  frozen: FrozenError,
  not_found: NotFoundError,
  conflict: ConflictError,
  limit: LimitError,
  storage: StorageError,
  timeout: TimeoutError,
  unavailable: UnavailableError,
  keeper: UnavailableError,
  integrity: IntegrityError,
  internal: InternalError,
  os: InternalError,
};

/* For answers that are not ours: a proxy's page, a body that broke off. */
const codeOfStatus: Record<number, string> = {
  400: "invalid",
  401: "forbidden",
  403: "forbidden",
  404: "not_found",
  405: "not_found",
  409: "conflict",
  413: "limit",
  429: "limit",
  503: "unavailable",
  504: "timeout",
  507: "storage",
};

function asRecord(value: unknown): Record<string, unknown> {
  return typeof value === "object" && value !== null ? (value as Record<string, unknown>) : {};
}

function asText(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}

/** The error an answer stands for; body is whatever JSON it had. */
export function errorOf(status: number, body: unknown, requestId?: string | null): BrigError {
  const error = asRecord(asRecord(body)["error"]);
  const code = asText(error["code"]) ?? codeOfStatus[status] ?? "internal";
  const details = asRecord(error["details"]) as ErrorDetails;
  const facts: ErrorFacts = {
    status,
    code,
    type: asText(error["type"]) ?? "internal_error",
    reason_code: asText(error["reason_code"]),
    details,
    request_id: requestId ?? undefined,
  };
  const message = asText(error["message"]) ?? `the daemon answered ${status}`;

  if (status === 401) return new UnauthenticatedError(message, facts);
  if (facts.reason_code === "SYSTEM_FROZEN") return new FrozenError(message, facts);
  if (code === "forbidden" && details.verdict !== undefined) return new DeniedError(message, facts);
  return new (byCode[code] ?? InternalError)(message, facts);
}
