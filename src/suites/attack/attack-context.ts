import { randomUUID } from "node:crypto";
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Ended } from "../../contract/outcome.ts";
import { type Capabilities, SandboxConfig, type SandboxConfigInput } from "../../contract/sandbox/sandbox.ts";
import { ABSENT, ifErrno, ignore, succeeds } from "../../lib/failures.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { OwnedSandbox, Process, Sandbox, SpawnOptions } from "../../sandbox/sandbox.ts";

export interface Attempt {
  stdout: string;
  stderr: string;
  ended: Ended;
}

type RunOptions = Omit<SpawnOptions, "argv">;

/**
 * A host folder that contains a secret. Nothing inside may ever learn the secret, and nothing may ever appear in the
 * folder.
 */
export interface Canary {
  folder: string;
  secret: string;
  /** Returns the names of files that were added to the folder, and whether the secret was changed. */
  touched(): Promise<string[]>;
}

export interface AttackContext {
  readonly runtime: Runtime;
  readonly capabilities: Capabilities;
  readonly patienceMs: number;
  readonly stateDir: string;
  /** Returns the sandbox that is shared by the claims that leave it alive. */
  sandbox(): Promise<OwnedSandbox>;
  /** Like `sandbox`, with root allowed inside. Null if the runtime does not support root. */
  rootSandbox(): Promise<OwnedSandbox | null>;
  create(config?: SandboxConfigInput): Promise<OwnedSandbox>;
  configOf(input?: SandboxConfigInput): SandboxConfig;
  shell(sandbox: Sandbox, script: string, args?: string[], options?: RunOptions): Promise<Attempt>;
  startShell(sandbox: Sandbox, script: string, args?: string[], options?: RunOptions): Promise<Process>;
  /**
   * Runs the probe program inside and returns each line of its output, split at spaces. Null if the probe is not built.
   */
  probe(sandbox: Sandbox, args: string[], options?: RunOptions): Promise<string[][] | null>;
  startProbe(sandbox: Sandbox, args: string[], options?: RunOptions): Promise<Process | null>;
  canary(): Promise<Canary>;
  within<T>(what: string, promise: Promise<T>, ms?: number): Promise<T>;
}

export interface AttackContextOptions {
  stateDir: string;
  /** The path of the static probe; see probe.c. Without it, claims that need it are unverifiable. */
  probePath: string;
  /** The base of every config. It gives a runtime without the `host` template its image. */
  spec?: SandboxConfigInput;
  patienceMs?: number;
}

export const probeMissing = "the probe is not built; run `make -C guest probe`";

const PATIENCE_MS = 30_000;
const OUTPUT_BYTES_MAX = 1024 * 1024;
/** The probe's path inside, relative to the workspace because not every runtime has a real `/workspace`. */
const PROBE_NAME = "caisson-probe";

export async function openAttackContext(runtime: Runtime, options: AttackContextOptions): Promise<AttackContext & AsyncDisposable> {
  const capabilities = await runtime.capabilities();
  const patienceMs = options.patienceMs ?? PATIENCE_MS;
  const probeBytes = await ifErrno(readFile(options.probePath), ABSENT, null);
  const configOf = (input: SandboxConfigInput = {}) => SandboxConfig.parse({ ...options.spec, ...input });
  const sandboxes = new Set<OwnedSandbox>();
  const folders: string[] = [];
  const probed = new WeakSet<Sandbox>();
  let shared: OwnedSandbox | null = null;
  let sharedRoot: OwnedSandbox | null = null;

  const withinPatience = <T>(what: string, promise: Promise<T>, ms = patienceMs) => within(what, promise, ms);
  const create = async (input?: SandboxConfigInput) => {
    const sandbox = await withinPatience("creating a sandbox", runtime.create(configOf(input)));
    sandboxes.add(sandbox);
    return sandbox;
  };
  const alive = async (sandbox: OwnedSandbox | null) =>
    sandbox !== null && (await succeeds(withinPatience("ping", sandbox.ping(), 3_000), "the check reports a dead sandbox"));
  const startShell: AttackContext["startShell"] = (sandbox, script, args = [], run = {}) =>
    sandbox.spawn({ argv: ["sh", "-c", script, "attack", ...args], outputBytesMax: OUTPUT_BYTES_MAX, timeoutMs: patienceMs, ...run });
  const startProbe: AttackContext["startProbe"] = async (sandbox, args, run = {}) => {
    if (probeBytes === null) return null;
    if (!probed.has(sandbox)) {
      await withinPatience("copying the probe in", sandbox.writeFile(`/workspace/${PROBE_NAME}`, probeBytes, { mode: 0o755 }));
      probed.add(sandbox);
    }
    return startShell(sandbox, `exec ./${PROBE_NAME} "$@"`, args, run);
  };
  const context: AttackContext = {
    runtime,
    capabilities,
    patienceMs,
    stateDir: options.stateDir,
    configOf,
    create,
    within: withinPatience,
    startShell,
    startProbe,
    async sandbox() {
      if (!(await alive(shared))) shared = await create();
      return shared as OwnedSandbox;
    },
    async rootSandbox() {
      if (!capabilities.rootUser) return null;
      if (!(await alive(sharedRoot))) sharedRoot = await create({ allowRoot: true });
      return sharedRoot;
    },
    async shell(sandbox, script, args, run) {
      return withinPatience("a command", finishAttempt(await withinPatience("starting a command", startShell(sandbox, script, args, run))));
    },
    async probe(sandbox, args, run) {
      const running = await startProbe(sandbox, args, run);
      if (running === null) return null;
      const { stdout } = await withinPatience("the probe", finishAttempt(running));
      return stdout
        .split("\n")
        .filter((line) => line !== "")
        .map((line) => line.split(" "));
    },
    async canary() {
      const canary = await makeCanary();
      folders.push(canary.folder);
      return canary;
    },
  };
  return Object.assign(context, {
    async [Symbol.asyncDispose]() {
      for (const sandbox of sandboxes) await ignore(sandbox.destroy(), "the attack may have broken it, and the next sweep removes it");
      for (const folder of folders) await rm(folder, { recursive: true, force: true });
    },
  });
}

/** Reads a process's output as text until it ends. */
export async function finishAttempt(running: Process): Promise<Attempt> {
  const parts = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] };
  for await (const chunk of running.output) parts[chunk.stream].push(chunk.data);
  return { stdout: Buffer.concat(parts.stdout).toString(), stderr: Buffer.concat(parts.stderr).toString(), ended: await running.ended };
}

async function makeCanary(): Promise<Canary> {
  const folder = await mkdtemp(join(tmpdir(), "caisson-test-"));
  const secret = `canary-${randomUUID()}`;
  // World-readable outside, so only the wall keeps it from programs inside.
  await chmod(folder, 0o777);
  await writeFile(join(folder, "secret"), secret, { mode: 0o666 });
  return {
    folder,
    secret,
    async touched() {
      const names = (await readdir(folder)).filter((name) => name !== "secret");
      const content = await ifErrno(readFile(join(folder, "secret"), "utf8"), ABSENT, "");
      return content === secret ? names : [...names, "secret (changed)"];
    },
  };
}

/** Rejects if the promise takes longer than `ms`. */
export async function within<T>(what: string, promise: Promise<T>, ms = PATIENCE_MS): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took longer than ${ms} ms`)), ms);
  });
  try {
    return await Promise.race([promise, late]);
  } finally {
    clearTimeout(timer);
  }
}
