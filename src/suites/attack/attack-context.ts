import { randomUUID } from "node:crypto";
import { chmod, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Ended } from "../../contract/outcome.ts";
import { type Capabilities, SandboxSpec, type SandboxSpecInput } from "../../contract/sandbox.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { OwnedSandbox, Process, Sandbox, SpawnOptions } from "../../sandbox/sandbox.ts";

export interface Attempt {
  stdout: string;
  stderr: string;
  ended: Ended;
}

type RunOptions = Omit<SpawnOptions, "argv">;

/**
 * A folder of the host's with a secret in it that nothing inside may ever learn, and in which nothing may ever appear.
 */
export interface Canary {
  folder: string;
  secret: string;
  /** Names of what is in the folder beyond the secret, and whether that was changed. */
  touched(): Promise<string[]>;
}

export interface AttackContext {
  readonly runtime: Runtime;
  readonly capabilities: Capabilities;
  readonly patienceMs: number;
  readonly stateDir: string;
  /** One sandbox shared by the claims that leave it alive. */
  sandbox(): Promise<OwnedSandbox>;
  /** The same with root allowed inside; null where the runtime has none. */
  rootSandbox(): Promise<OwnedSandbox | null>;
  create(spec?: SandboxSpecInput): Promise<OwnedSandbox>;
  spec(spec?: SandboxSpecInput): SandboxSpec;
  shell(sandbox: Sandbox, script: string, args?: string[], options?: RunOptions): Promise<Attempt>;
  startShell(sandbox: Sandbox, script: string, args?: string[], options?: RunOptions): Promise<Process>;
  /** Runs the probe program inside; each line of its answer, split at spaces. Null when the probe was not built. */
  probe(sandbox: Sandbox, args: string[], options?: RunOptions): Promise<string[][] | null>;
  startProbe(sandbox: Sandbox, args: string[], options?: RunOptions): Promise<Process | null>;
  canary(): Promise<Canary>;
  within<T>(what: string, promise: Promise<T>, ms?: number): Promise<T>;
}

export interface AttackContextOptions {
  stateDir: string;
  /** The static probe; see probe.c. Without it the claims that need it are unverifiable. */
  probePath: string;
  /** Laid under every spec; how a runtime without `host` template gets its image. */
  spec?: SandboxSpecInput;
  patienceMs?: number;
}

export const probeMissing = "the probe is not built; run `make -C guest probe`";

const PATIENCE_MS = 30_000;
const OUTPUT_BYTES_MAX = 1024 * 1024;
/** Where programs inside find the probe, relative to the workspace: not every runtime has a real `/workspace`. */
const PROBE_NAME = "caisson-probe";

export async function openAttackContext(runtime: Runtime, options: AttackContextOptions): Promise<AttackContext & AsyncDisposable> {
  const capabilities = await runtime.capabilities();
  const patienceMs = options.patienceMs ?? PATIENCE_MS;
  const probeBytes = await readFile(options.probePath).catch(() => null);
  const spec = (input: SandboxSpecInput = {}) => SandboxSpec.parse({ ...options.spec, ...input });
  const sandboxes = new Set<OwnedSandbox>();
  const folders: string[] = [];
  const probed = new WeakSet<Sandbox>();
  let shared: OwnedSandbox | null = null;
  let sharedRoot: OwnedSandbox | null = null;

  const withinPatience = <T>(what: string, promise: Promise<T>, ms = patienceMs) => within(what, promise, ms);
  const create = async (input?: SandboxSpecInput) => {
    const sandbox = await withinPatience("creating a sandbox", runtime.create(spec(input)));
    sandboxes.add(sandbox);
    return sandbox;
  };
  const alive = async (sandbox: OwnedSandbox | null) =>
    sandbox !== null &&
    (await withinPatience("ping", sandbox.ping(), 3_000).then(
      () => true,
      () => false,
    ));
  const startShell: AttackContext["startShell"] = (sandbox, script, args = [], run = {}) =>
    sandbox.spawn({ argv: ["sh", "-c", script, "attack", ...args], outputBytesMax: OUTPUT_BYTES_MAX, timeoutMs: patienceMs, ...run });
  const startProbe: AttackContext["startProbe"] = async (sandbox, args, run = {}) => {
    if (probeBytes === null) return null;
    if (!probed.has(sandbox)) {
      await withinPatience("putting the probe in", sandbox.writeFile(`/workspace/${PROBE_NAME}`, probeBytes, { mode: 0o755 }));
      probed.add(sandbox);
    }
    return startShell(sandbox, `exec ./${PROBE_NAME} "$@"`, args, run);
  };
  const context: AttackContext = {
    runtime,
    capabilities,
    patienceMs,
    stateDir: options.stateDir,
    spec,
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
      for (const sandbox of sandboxes) await sandbox.destroy().catch(() => undefined);
      for (const folder of folders) await rm(folder, { recursive: true, force: true });
    },
  });
}

/** Consumes a process to its end, as text. */
export async function finishAttempt(running: Process): Promise<Attempt> {
  const parts = { stdout: [] as Uint8Array[], stderr: [] as Uint8Array[] };
  for await (const chunk of running.output) parts[chunk.stream].push(chunk.data);
  return { stdout: Buffer.concat(parts.stdout).toString(), stderr: Buffer.concat(parts.stderr).toString(), ended: await running.ended };
}

async function makeCanary(): Promise<Canary> {
  const folder = await mkdtemp(join(tmpdir(), "caisson-test-"));
  const secret = `canary-${randomUUID()}`;
  // Readable by everyone outside, so that only the wall keeps it from those inside.
  await chmod(folder, 0o777);
  await writeFile(join(folder, "secret"), secret, { mode: 0o666 });
  return {
    folder,
    secret,
    async touched() {
      const names = (await readdir(folder)).filter((name) => name !== "secret");
      const content = await readFile(join(folder, "secret"), "utf8").catch(() => "");
      return content === secret ? names : [...names, "secret (changed)"];
    },
  };
}

/** Throws when it takes longer than `ms`. */
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
