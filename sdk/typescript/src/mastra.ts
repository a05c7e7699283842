// SPDX-License-Identifier: Apache-2.0

// A sandbox for a Workspace of @mastra/core on Brig's native API: commands with streams, processes
// with input, files, and checkpoints that are snapshots. Its id is the sandbox's name: started again
// with the same id it finds the same sandbox.

import {
  MastraSandbox,
  ProcessHandle,
  SandboxProcessManager,
  validateSandboxFileMode,
  type CommandResult,
  type MastraSandboxOptions,
  type ProcessInfo,
  type ProviderStatus,
  type SandboxCloneOptions,
  type SandboxFileInput,
  type SandboxInfo as MastraSandboxInfo,
  type SpawnProcessOptions,
  type WriteFilesOptions,
} from "@mastra/core/workspace";

import { Brig } from "./client.js";
import { DeniedError, NotFoundError } from "./errors.js";
import type { ExecEvent } from "./events.js";
import type { Sandbox } from "./sandbox.js";
import type { Session } from "./session.js";
import type { CreateSandbox, RunResult } from "./types.js";
import type { BrigOptions } from "./wire.js";

const WALL_MS = 3_600_000; // a development server is a command, too
const TIMED_OUT = 124; // as a shell says it
const KILLED = 137;
const PLAIN_WORD = /^[A-Za-z0-9_./+-]+$/;

export interface BrigSandboxOptions extends Omit<MastraSandboxOptions, "processes"> {
  /** The daemon, or how to reach it. */
  brig?: Brig | BrigOptions;
  /** Also the sandbox's name; one is made up when there is none. */
  id?: string;
  /** What the sandbox is made from. Commands may take an hour unless limits.wall_ms says otherwise. */
  sandbox?: Omit<CreateSandbox, "name" | "env">;
  /** Snapshots are taken under this name, and the sandbox begins where the newest of them is. */
  checkpointName?: string;
  /** Where it begins when there is none of that name yet. */
  seedCheckpointName?: string;
}

/* ---- processes ---- */

class BrigProcess extends ProcessHandle {
  readonly pid: string;
  exitCode: number | undefined;
  private readonly end: Promise<CommandResult>;
  private wasKilled = false;

  constructor(
    pid: string,
    private readonly session: Session,
    events: AsyncIterator<ExecEvent>,
    private readonly began: number,
    private readonly hasInput: boolean,
    options: SpawnProcessOptions,
  ) {
    super(options);
    this.pid = pid;
    this.end = this.pump(events);
    this.end.catch(() => undefined); // wait() tells whoever asks
  }

  private async pump(events: AsyncIterator<ExecEvent>): Promise<CommandResult> {
    try {
      for (let next = await events.next(); !next.done; next = await events.next()) {
        const event = next.value;
        if (event.event === "stdout") this.emitStdout(event.text);
        if (event.event === "stderr") this.emitStderr(event.text);
        if (event.event === "exit") return this.resultOf(event.result);
      }
      throw new Error("the stream ended before the command did");
    } catch (error) {
      // Killed before it began: it is as dead as one that was killed later.
      if (this.wasKilled && error instanceof DeniedError) return this.ended(KILLED, false, true);
      this.exitCode ??= 1;
      throw error;
    }
  }

  private resultOf(result: RunResult): CommandResult {
    const exitCode = result.timed_out ? TIMED_OUT : (result.exit_code ?? 128 + (result.signal ?? 0));
    return this.ended(exitCode, result.timed_out, this.wasKilled || result.signal !== null);
  }

  private ended(exitCode: number, timedOut: boolean, killed: boolean): CommandResult {
    this.exitCode = exitCode;
    return {
      success: exitCode === 0,
      exitCode,
      stdout: this.stdout,
      stderr: this.stderr,
      executionTimeMs: Date.now() - this.began,
      timedOut,
      killed,
    };
  }

  override async wait(): Promise<CommandResult> {
    return this.end;
  }

  async kill(): Promise<boolean> {
    if (this.exitCode !== undefined) return false;
    this.wasKilled = true;
    this.session.signal("SIGKILL");
    return true;
  }

  private checkInput(): void {
    if (this.exitCode !== undefined) throw new Error(`process ${this.pid} has ended with ${this.exitCode}`);
    if (!this.hasInput) throw new Error(`process ${this.pid} was started without input`);
  }

  async sendStdin(data: string): Promise<void> {
    this.checkInput();
    await this.session.write(data);
  }

  override async closeStdin(): Promise<void> {
    this.checkInput();
    this.session.end();
  }
}

/* A program and its words need no shell; anything else is text for one. */
function wordsOf(command: string, options: SpawnProcessOptions): string[] {
  const given = options.originalInvocation;
  return given && PLAIN_WORD.test(given.command) ? [given.command, ...given.args] : ["sh", "-c", command];
}

class BrigProcesses extends SandboxProcessManager<BrigSandbox> {
  override async spawn(command: string, options: SpawnProcessOptions = {}): Promise<ProcessHandle> {
    const began = Date.now();
    const env = Object.entries({ ...this.env, ...options.env }).filter((pair): pair is [string, string] => pair[1] !== undefined);
    const cwd = options.cwd ?? this.sandbox.workingDirectory;
    const session = await this.sandbox.box.open(wordsOf(command, options), {
      env: Object.fromEntries(env),
      ...(cwd ? { workdir: cwd } : {}),
      ...(options.timeout ? { timeout_ms: options.timeout } : {}),
    });
    if (options.stdinMode === "ignore") session.end();
    const events = session[Symbol.asyncIterator]();
    const first = await events.next(); // a refusal shows here, or in wait()
    const pid = !first.done && first.value.event === "start" ? first.value.run_id : crypto.randomUUID();
    const handle = new BrigProcess(pid, session, events, began, options.stdinMode !== "ignore", options);
    this._tracked.set(pid, handle);
    return handle;
  }

  override async list(): Promise<ProcessInfo[]> {
    return [...this._tracked.values()].map((handle) => ({
      pid: handle.pid,
      running: handle.exitCode === undefined,
      ...(handle.command === undefined ? {} : { command: handle.command }),
      ...(handle.exitCode === undefined ? {} : { exitCode: handle.exitCode }),
    }));
  }
}

/* ---- the sandbox ---- */

export class BrigSandbox extends MastraSandbox<Sandbox> {
  readonly id: string;
  readonly name = "BrigSandbox";
  readonly provider = "brig";
  override readonly supportsCheckpoints = true;
  status: ProviderStatus = "pending";
  declare readonly processes: SandboxProcessManager;

  /** The daemon, for what a Workspace does not ask for: receipts, above all. */
  readonly brig: Brig;
  private readonly options: BrigSandboxOptions;
  private standing: Sandbox | undefined;

  constructor(options: BrigSandboxOptions = {}) {
    super({ ...options, name: "BrigSandbox", processes: new BrigProcesses() });
    this.options = options;
    this.id = options.id ?? `mastra-${crypto.randomUUID()}`;
    this.brig = options.brig instanceof Brig ? options.brig : new Brig(options.brig);
  }

  /** The sandbox itself, once it is started. */
  get box(): Sandbox {
    if (!this.standing) throw new Error("the sandbox is not started");
    return this.standing;
  }

  protected override async find(): Promise<Sandbox | undefined> {
    try {
      return await this.brig.sandboxes.get(this.id);
    } catch (error) {
      if (error instanceof NotFoundError) return undefined;
      throw error;
    }
  }

  protected override async connect(found: Sandbox): Promise<void> {
    if ((await found.show()).state === "paused") await found.resume();
    this.standing = found;
  }

  protected override async create(): Promise<void> {
    const { sandbox = {}, checkpointName, seedCheckpointName } = this.options;
    const spec: CreateSandbox = { ...sandbox, name: this.id, limits: { wall_ms: WALL_MS, ...sandbox.limits } };
    const base = (await this.snapshotId(checkpointName)) ?? (await this.snapshotId(seedCheckpointName));

    if (base) spec.snapshot_id = base;
    this.standing = await this.brig.sandboxes.create(spec);
  }

  private async snapshotId(name: string | undefined): Promise<string | undefined> {
    if (name === undefined) return undefined;
    try {
      return (await this.brig.snapshots.get(name)).snapshot_id;
    } catch (error) {
      if (error instanceof NotFoundError) return undefined;
      throw error;
    }
  }

  /** Holds everything in it still; start() lets it go on. */
  override async stop(): Promise<void> {
    await this.standing?.pause();
  }

  override async destroy(): Promise<void> {
    const box = this.standing ?? (await this.find());
    this.standing = undefined;
    await box?.destroy();
  }

  override async snapshot(): Promise<void> {
    await this.ensureRunning();
    await this.box.snapshot(this.options.checkpointName ?? this.id);
  }

  clone(options: SandboxCloneOptions = {}): BrigSandbox {
    const clone: BrigSandboxOptions = { ...this.options, brig: this.brig };
    const id = options.sandboxId ?? options.id;

    delete clone.id;
    if (id !== undefined) clone.id = id;
    clone.env = { ...this.getEnv(), ...options.env };
    if (options.workingDirectory !== undefined) clone.workingDirectory = options.workingDirectory;
    if (options.idleTimeoutMinutes !== undefined)
      clone.sandbox = { ...this.options.sandbox, idle_ms: options.idleTimeoutMinutes * 60_000 };
    if (options.checkpointName !== undefined) clone.checkpointName = options.checkpointName;
    if (options.seedCheckpointName !== undefined) clone.seedCheckpointName = options.seedCheckpointName;
    return new BrigSandbox(clone);
  }

  override async writeFiles(files: SandboxFileInput[], options: WriteFilesOptions = {}): Promise<void> {
    for (const { mode } of files) if (mode !== undefined) validateSandboxFileMode(mode);
    await this.ensureRunning();
    const call = { signal: options.abortSignal };
    for (const { path, content, mode } of files) {
      const folder = path.slice(0, path.lastIndexOf("/"));
      if (folder && !(await this.box.files.exists(folder, call))) await this.box.files.mkdir(folder, { ...call, parents: true });
      await this.box.files.write(path, content, call);
      if (mode === undefined) continue;
      const done = await this.box.exec(["chmod", mode.toString(8), "--", path], call);
      if (done.exit_code !== 0) throw new Error(`${path}: ${done.stderr.trim()}`);
    }
  }

  override async getInfo(): Promise<MastraSandboxInfo> {
    const now = this.standing ? await this.standing.show() : undefined;
    const info: MastraSandboxInfo = {
      id: this.id,
      name: this.name,
      provider: this.provider,
      status: this.status,
      createdAt: now ? new Date(now.created_at) : new Date(),
    };
    if (!now) return info;
    if (now.expires_at) info.timeoutAt = new Date(now.expires_at);
    info.resources = { memoryUsedMB: now.memory_bytes / 2 ** 20, diskUsedMB: now.disk_bytes / 2 ** 20 };
    info.metadata = { sandbox_id: now.sandbox_id, state: now.state, policy_hash: now.policy_hash, preflight_hash: now.preflight_hash };
    return info;
  }

  override getInstructions(): string {
    return (
      "Commands run in a sandbox under a policy; a refusal says why. There is no network unless the policy opens " +
      "one. Files under /sandbox/tmp, /sandbox/output, /tmp and /home/sandbox can be written and stay between commands."
    );
  }
}

export default BrigSandbox;
