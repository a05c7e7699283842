// SPDX-License-Identifier: Apache-2.0

// A sandbox adapter with the shape HELM's has for Mastra: the same names, options and receipts, so that
// code written for it runs against Brig with another import. Each command is judged first
// (/v1/chat/completions, model helm-governance), then run (/sandbox/…); one that is refused never
// reaches a sandbox. It is also a sandbox for a Workspace of @mastra/core, of which it needs only types.
//
// What is different here, always to the closed side: an answer that refuses is a refusal, also without
// failClosed; only a judge who cannot be asked is passed over, and that is marked. Every status that is
// not an approval is a refusal. A backend that is not Brig's own gets its words quoted for a shell.

import type {
  CommandResult,
  ExecuteCommandOptions,
  ProviderStatus,
  SandboxFileInput,
  SandboxInfo as MastraSandboxInfo,
  WorkspaceSandbox,
  WriteFilesOptions,
} from "@mastra/core/workspace";

import { hexOf, sha256, utf8, type Bytes } from "./bytes.js";
import { canonicalize } from "./canonical.js";

export interface HelmMastraSandboxConfig {
  /** Of the daemon that judges. */
  baseUrl: string;
  /** A token for it. */
  apiKey?: string;
  /** A token for the sandboxes; apiKey by default. */
  daytonaApiKey?: string;
  /** Of the daemon with the sandboxes; the one that judges by default. */
  daytonaUrl?: string;
  /** Run nothing that could not be judged. True unless it is false. */
  failClosed?: boolean;
  /** "python3" by default. */
  defaultLanguage?: string;
  /** Milliseconds for each command; 30 000 by default. */
  execTimeout?: number;
  /** Keep receipts for getReceipts(). True by default. */
  collectReceipts?: boolean;
  /** After each command that ran. */
  onReceipt?: (receipt: SandboxReceipt) => void;
  /** For each command that was refused. */
  onDeny?: (denial: SandboxDenial) => void;
  /** Instead of the platform's. */
  fetch?: typeof fetch;
}

/** The twelve members of a HELM receipt. */
export interface HelmReceipt {
  receipt_id: string;
  decision_id: string;
  effect_id: string;
  status: "APPROVED" | "DENIED" | "PENDING";
  reason_code: string;
  output_hash: string;
  blob_hash: string;
  prev_hash: string;
  lamport_clock: number;
  signature: string;
  timestamp: string;
  principal: string;
}

export interface SandboxReceipt {
  command: string[];
  receipt: HelmReceipt;
  requestHash: string;
  outputHash: string;
  exitCode: number;
  durationMs: number;
}

export interface SandboxDenial {
  command: string[];
  reasonCode: string;
  message: string;
}

export interface ExecRequest {
  command: string[];
  env?: Record<string, string>;
  workDir?: string;
  /** Milliseconds. */
  timeout?: number;
}

export interface ExecResult {
  exitCode: number;
  stdout: string;
  stderr: string;
  durationMs: number;
  timedOut: boolean;
  receipt: SandboxReceipt;
}

/** A command was refused; it did not run. */
export class HelmSandboxDenyError extends Error {
  readonly denial: SandboxDenial;

  constructor(denial: SandboxDenial) {
    super(`${denial.command[0] ?? ""} was refused (${denial.reasonCode}): ${denial.message}`);
    this.name = "HelmSandboxDenyError";
    this.denial = denial;
  }
}

/* What the judge said in its headers; all empty when it could not be asked. */
interface Judgement {
  isJudged: boolean;
  receiptId: string;
  decisionId: string;
  node: string;
  reasonCode: string;
  outputHash: string;
  signature: string;
  lamportClock: number;
}

const POLICY_VIOLATION = "DENY_POLICY_VIOLATION";
const NO_JUDGE = "ERROR_INTERNAL";

const TOOL = {
  type: "function",
  function: {
    name: "sandbox_exec",
    description: "Runs a command in a sandbox",
    parameters: { type: "object", properties: { command: { type: "array", items: { type: "string" } } } },
  },
};

interface Completion {
  choices?: {
    finish_reason?: string;
    message?: { content?: string | null; tool_calls?: unknown[] };
  }[];
}

interface ErrorBody {
  error?: { message?: string; reason_code?: string };
}

async function bodyOf<T>(answer: Response): Promise<T | undefined> {
  try {
    return JSON.parse(await answer.text()) as T;
  } catch {
    return undefined;
  }
}

async function hashOf(bytes: Bytes): Promise<string> {
  return `sha256:${hexOf(await sha256(bytes))}`;
}

/* One word for a POSIX shell. */
function quoted(word: string): string {
  return /^[A-Za-z0-9_./:=@%+,-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}

function withoutSlash(url: string): string {
  return url.replace(/\/+$/, "");
}

export class HelmMastraSandbox implements WorkspaceSandbox {
  readonly id = `helm-${crypto.randomUUID()}`;
  readonly name = "HelmMastraSandbox";
  readonly provider = "brig";
  status: ProviderStatus = "pending";

  private readonly config: HelmMastraSandboxConfig;
  private readonly baseUrl: string;
  private readonly sandboxUrl: string;
  private readonly failClosed: boolean;
  private readonly execTimeout: number;
  private readonly receipts: SandboxReceipt[] = [];
  private readonly createdAt = new Date();
  private sandboxId: string | undefined;
  private making: Promise<void> | undefined;
  private lastClock = -1;

  constructor(config: HelmMastraSandboxConfig) {
    this.config = config;
    this.baseUrl = withoutSlash(config.baseUrl);
    this.sandboxUrl = withoutSlash(config.daytonaUrl ?? config.baseUrl);
    this.failClosed = config.failClosed ?? true;
    this.execTimeout = config.execTimeout ?? 30_000;
  }

  /* ---- requests ---- */

  private fetch(url: string, init: RequestInit): Promise<Response> {
    return (this.config.fetch ?? globalThis.fetch)(url, init);
  }

  private headers(type?: string): Record<string, string> {
    const key = this.config.daytonaApiKey ?? this.config.apiKey;
    const headers: Record<string, string> = {};
    if (key) headers["Authorization"] = `Bearer ${key}`;
    if (type) headers["Content-Type"] = type;
    return headers;
  }

  private at(...rest: string[]): string {
    return [this.sandboxUrl, "sandbox", ...[this.sandboxId ?? "", ...rest].map(encodeURIComponent)].join("/");
  }

  private seconds(ms: number | undefined): number {
    return Math.max(1, Math.floor((ms ?? this.execTimeout) / 1000));
  }

  /* ---- the sandbox ---- */

  /** Makes the sandbox. The first command does so by itself; many at once make one. */
  async init(): Promise<void> {
    this.making ??= this.make().finally(() => (this.making = undefined));
    await this.making;
  }

  private async make(): Promise<void> {
    this.status = "starting";
    const answer = await this.fetch(`${this.sandboxUrl}/sandbox`, {
      method: "POST",
      headers: this.headers("application/json"),
      body: JSON.stringify({ language: this.config.defaultLanguage ?? "python3", timeout: this.seconds(undefined) }),
    });
    const made = answer.ok ? await bodyOf<{ sandboxId?: string }>(answer) : undefined;
    if (!made?.sandboxId) {
      this.status = "error";
      throw new Error(`no sandbox was made: the daemon answered ${answer.status}`);
    }
    this.sandboxId = made.sandboxId;
    this.status = "running";
  }

  private async ready(): Promise<void> {
    if (this.sandboxId === undefined) await this.init();
  }

  /** Ends it; nothing happens when there is none. */
  async destroy(): Promise<void> {
    if (this.sandboxId === undefined) return;
    const answer = await this.fetch(this.at(), { method: "DELETE", headers: this.headers() });
    if (!answer.ok && answer.status !== 404)
      throw new Error(`the sandbox was not ended: the daemon answered ${answer.status}`);
    this.sandboxId = undefined;
    this.status = "destroyed";
  }

  /* ---- judging ---- */

  private refuse(command: string[], reasonCode: string | undefined, message: string | null | undefined): HelmSandboxDenyError {
    const denial = {
      command,
      reasonCode: reasonCode || POLICY_VIOLATION,
      message: message || "the policy does not allow it",
    };
    this.config.onDeny?.(denial);
    return new HelmSandboxDenyError(denial);
  }

  private async ask(request: ExecRequest): Promise<Response> {
    const intent = {
      type: "sandbox_exec_intent",
      provider: "daytona",
      sandbox_id: this.sandboxId,
      command: request.command,
      env: request.env,
    };
    return this.fetch(`${this.baseUrl}/v1/chat/completions`, {
      method: "POST",
      headers: {
        "Content-Type": "application/json",
        ...(this.config.apiKey ? { Authorization: `Bearer ${this.config.apiKey}` } : {}),
      },
      body: JSON.stringify({
        model: "helm-governance",
        messages: [{ role: "user", content: JSON.stringify(intent) }],
        tools: [TOOL],
      }),
    });
  }

  /* Throws a refusal; undefined: the judge could not judge. */
  private async judge(request: ExecRequest): Promise<Judgement | Error> {
    let answer: Response;
    try {
      answer = await this.ask(request);
    } catch (error) {
      return error as Error;
    }
    if (!answer.ok) {
      const { error } = (await bodyOf<ErrorBody>(answer)) ?? {};
      const refusal = this.refuse(request.command, error?.reason_code || NO_JUDGE, error?.message || `the judge answered ${answer.status}`);
      if (answer.status < 500) throw refusal;
      return refusal;
    }
    return this.judgementOf(request, answer, await bodyOf<Completion>(answer));
  }

  private judgementOf(request: ExecRequest, answer: Response, body: Completion | undefined): Judgement {
    const header = (name: string) => answer.headers.get(`X-Helm-${name}`) ?? "";
    const choice = body?.choices?.[0];
    const isApproved = ["", "APPROVED"].includes(header("Status"));
    const isCalled = choice?.finish_reason !== "stop" && Boolean(choice?.message?.tool_calls?.length);

    if (!isApproved || !isCalled) throw this.refuse(request.command, header("Reason-Code"), choice?.message?.content);
    return {
      isJudged: true,
      receiptId: header("Receipt-ID"),
      decisionId: header("Decision-ID"),
      node: header("ProofGraph-Node"),
      reasonCode: header("Reason-Code"),
      outputHash: header("Output-Hash"),
      signature: header("Signature"),
      lamportClock: Number(header("Lamport-Clock")) || 0,
    };
  }

  private unjudged(error: Error): Judgement {
    const reasonCode = error instanceof HelmSandboxDenyError ? error.denial.reasonCode : NO_JUDGE;
    return { isJudged: false, receiptId: "", decisionId: "", node: "", reasonCode, outputHash: "", signature: "", lamportClock: 0 };
  }

  /* ---- running ---- */

  /** Runs a command, when it may run. A refusal is a HelmSandboxDenyError. */
  async exec(request: ExecRequest): Promise<ExecResult> {
    return this.run(request, undefined);
  }

  private async run(request: ExecRequest, signal: AbortSignal | undefined): Promise<ExecResult> {
    const began = Date.now();

    await this.ready();
    let judgement = await this.judge(request);
    if (judgement instanceof Error) {
      if (this.failClosed) throw judgement;
      judgement = this.unjudged(judgement);
    }
    const result = await this.execute(request, signal);
    const receipt = await this.receiptOf(request, judgement, result, Date.now() - began);
    if (this.config.collectReceipts ?? true) this.receipts.push(receipt);
    this.config.onReceipt?.(receipt);
    return {
      exitCode: result.exitCode,
      stdout: result.output,
      stderr: result.errors,
      durationMs: result.durationMs,
      timedOut: result.timedOut,
      receipt,
    };
  }

  private async execute(request: ExecRequest, signal: AbortSignal | undefined) {
    // Brig runs the approved vector whatever this says, but compares; a shell would read it.
    const isBrig = this.sandboxUrl === this.baseUrl;
    const command = (isBrig ? request.command : request.command.map(quoted)).join(" ");
    const answer = await this.fetch(this.at("process", "execute"), {
      method: "POST",
      headers: this.headers("application/json"),
      body: JSON.stringify({ command, env: request.env, cwd: request.workDir, timeout: this.seconds(request.timeout) }),
      ...(signal ? { signal } : {}),
    });
    if (answer.status === 403) {
      const { error } = (await bodyOf<ErrorBody>(answer)) ?? {};
      throw this.refuse(request.command, error?.reason_code, error?.message);
    }
    const body = answer.ok
      ? await bodyOf<{ output?: string; errors?: string; exitCode: number; timedOut?: boolean; durationMs?: number }>(answer)
      : undefined;
    if (!body) throw new Error(`the command was not run: the daemon answered ${answer.status}`);
    return {
      output: body.output ?? "",
      errors: body.errors ?? "",
      exitCode: body.exitCode,
      timedOut: body.timedOut ?? false,
      durationMs: body.durationMs ?? 0,
    };
  }

  /* The judge's clock when it is ahead of ours; otherwise one more than the last. */
  private tick(clock: number): number {
    this.lastClock = clock > this.lastClock ? clock : this.lastClock + 1;
    return this.lastClock;
  }

  private async receiptOf(
    request: ExecRequest,
    judgement: Judgement,
    result: { output: string; exitCode: number },
    durationMs: number,
  ): Promise<SandboxReceipt> {
    const requestHash = await hashOf(utf8(canonicalize(JSON.parse(JSON.stringify(request)))));
    const outputHash = await hashOf(utf8(result.output));
    const clock = this.tick(judgement.lamportClock);
    const token = `${requestHash.slice(7, 19)}-${clock}`;

    return {
      command: request.command,
      receipt: {
        receipt_id: judgement.receiptId || `local-${token}`,
        decision_id: judgement.decisionId || `decision-${token}`,
        effect_id: judgement.node || `exec-${token}`,
        status: judgement.isJudged ? "APPROVED" : "PENDING",
        reason_code: judgement.reasonCode || (judgement.isJudged ? "ALLOW" : NO_JUDGE),
        output_hash: judgement.outputHash || outputHash,
        blob_hash: "",
        prev_hash: "",
        lamport_clock: clock,
        signature: judgement.signature,
        timestamp: new Date().toISOString(),
        principal: judgement.isJudged ? "helm-kernel" : "helm-fail-open",
      },
      requestHash,
      outputHash,
      exitCode: result.exitCode,
      durationMs,
    };
  }

  /** Of the commands that ran, oldest first. */
  getReceipts(): readonly SandboxReceipt[] {
    return this.receipts;
  }

  clearReceipts(): void {
    this.receipts.length = 0;
  }

  /* ---- files ---- */

  async writeFile(path: string, content: string | Uint8Array): Promise<void> {
    await this.ready();
    const answer = await this.fetch(`${this.at("filesystem")}?path=${encodeURIComponent(path)}`, {
      method: "PUT",
      headers: this.headers("application/octet-stream"),
      body: content as string,
    });
    if (!answer.ok) throw new Error(`${path} was not written: the daemon answered ${answer.status}`);
  }

  async readFile(path: string): Promise<string> {
    await this.ready();
    const answer = await this.fetch(`${this.at("filesystem")}?path=${encodeURIComponent(path)}`, {
      method: "GET",
      headers: this.headers(),
    });
    if (!answer.ok) throw new Error(`${path} was not read: the daemon answered ${answer.status}`);
    return answer.text();
  }

  /* ---- what a Workspace of @mastra/core asks for ---- */

  async start(): Promise<void> {
    await this.ready();
  }

  async snapshot(): Promise<void> {
    // These routes have none.
  }

  getInfo(): MastraSandboxInfo {
    return {
      id: this.id,
      name: this.name,
      provider: this.provider,
      status: this.status,
      createdAt: this.createdAt,
      metadata: { sandboxId: this.sandboxId, receipts: this.receipts.length },
    };
  }

  getInstructions(): string {
    return (
      "Commands run in a sandbox, one by one, after a policy has allowed each; a refusal says why. " +
      "Files under /sandbox/tmp, /sandbox/output and /tmp can be written."
    );
  }

  /** A text alone is one for a shell, and judged as such; with args it is a program and its words. */
  async executeCommand(command: string, args: string[] = [], options: ExecuteCommandOptions = {}): Promise<CommandResult> {
    const words = args.length ? [command, ...args] : ["sh", "-c", command];
    const request: ExecRequest = { command: words };
    const env = Object.entries(options.env ?? {}).filter((pair): pair is [string, string] => pair[1] !== undefined);

    if (env.length) request.env = Object.fromEntries(env);
    if (options.cwd) request.workDir = options.cwd;
    if (options.timeout) request.timeout = options.timeout;
    const result = await this.run(request, options.abortSignal);
    if (result.stdout) options.onStdout?.(result.stdout);
    if (result.stderr) options.onStderr?.(result.stderr);
    return {
      command,
      args,
      success: result.exitCode === 0,
      exitCode: result.exitCode,
      stdout: result.stdout,
      stderr: result.stderr,
      executionTimeMs: result.durationMs,
      timedOut: result.timedOut,
    };
  }

  async writeFiles(files: SandboxFileInput[], options: WriteFilesOptions = {}): Promise<void> {
    const wanted = files.find((file) => file.mode !== undefined);
    if (wanted) throw new Error(`${wanted.path}: these routes cannot set a mode`);
    for (const file of files) {
      options.abortSignal?.throwIfAborted();
      await this.writeFile(file.path, file.content);
    }
  }
}

export default HelmMastraSandbox;
