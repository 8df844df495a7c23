import { resolve } from "node:path";
import { type Environment, readEnvironment } from "./compose/environment.ts";
import { openVolumeOf } from "./compose/open-volume.ts";
import { composeRuntimes } from "./compose/runtimes.ts";
import { openStateFolder } from "./compose/state-folder.ts";
import { CaissonError } from "./contract/error/error.ts";
import type { SandboxId } from "./contract/ids.ts";
import type { ReplayResult } from "./contract/run/run-replay.ts";
import type { SandboxConfig, SandboxConfigInput, SandboxInfo } from "./contract/sandbox/sandbox.ts";
import type { CreateSandbox } from "./contract/sandbox/sandbox-verbs.ts";
import type { TemplateView } from "./contract/template/template.ts";
import type { BuildEvent, BuildTemplate } from "./contract/template/template-verbs.ts";
import { LOCAL_OWNER } from "./contract/token/owner.ts";
import { defined } from "./lib/defined.ts";
import { ignore } from "./lib/failures.ts";
import type {
  AgentFork,
  AgentRewind,
  AgentRun,
  CaissonOptions,
  ContinueAgentOptions,
  CreateOptions,
  ForkAgentOptions,
  PoolSize,
  ReplayAgentOptions,
  RewindAgentOptions,
  RunAgentOptions,
} from "./library-options.ts";
import { besideModule, packageFiles } from "./package-files.ts";
import { withAbsolutePaths } from "./sandbox/absolute-config.ts";
import type { Runtime } from "./sandbox/runtime.ts";
import type { OwnedSandbox } from "./sandbox/sandbox.ts";
import { parseSandboxConfig } from "./sandbox/sandbox-config.ts";
import { createStore } from "./sandbox/store.ts";

/**
 * The library. Most programs need only `createSandbox`; `createCaisson` is for programs with many sandboxes, and the
 * runtimes are for custom composition.
 */

export type { HookCall, HookFunction, HookVerdict } from "./agent/hooks.ts";
export type { Model, ModelChunk, ModelMessage, ModelRequest } from "./agent/model/model.ts";
export { AgentDefinition } from "./contract/agent/agent.ts";
export { CaissonError, type ErrorCode } from "./contract/error/error.ts";
export type { ProcessRef, RuntimeName, SandboxId, SnapshotId } from "./contract/ids.ts";
export type { Usage } from "./contract/model/usage.ts";
export type {
  GatewayConfig,
  /** @deprecated The former name of `GatewayConfig`. */
  GatewayConfig as GatewaySpec,
  NetworkPolicy,
  NetworkRule,
  SecretConfig,
  /** @deprecated The former name of `SecretConfig`. */
  SecretConfig as SecretSpec,
} from "./contract/network/network.ts";
export type { NetworkEvent } from "./contract/network/network-event.ts";
export { parsePolicy, parseRule } from "./contract/network/network-text.ts";
export type { Ended, FinishReason } from "./contract/outcome.ts";
export type { Budgets } from "./contract/run/run.ts";
export type { RunEvent } from "./contract/run/run-event.ts";
export type { ReplayDifference, ReplayDrift, ReplayEvent, ReplayResult } from "./contract/run/run-replay.ts";
export type {
  Capabilities,
  Limits,
  /** @deprecated The former name of `SandboxConfig`. */
  SandboxConfig as SandboxSpec,
  SandboxConfig,
  /** @deprecated The former name of `SandboxConfigInput`. */
  SandboxConfigInput as SandboxSpecInput,
  SandboxConfigInput,
  SandboxInfo,
  SandboxState,
  SandboxStats,
} from "./contract/sandbox/sandbox.ts";
export type { SandboxEvent } from "./contract/sandbox/sandbox-event.ts";
export type { FolderMount } from "./contract/sandbox/sandbox-fields.ts";
export type { TemplateView } from "./contract/template/template.ts";
export type { BuildEvent, BuildTemplate } from "./contract/template/template-verbs.ts";
export type {
  AgentFork,
  AgentRewind,
  AgentRun,
  CaissonOptions,
  ContinueAgentOptions,
  CreateOptions,
  ForkAgentOptions,
  PoolSize,
  ReplayAgentOptions,
  RewindAgentOptions,
  RunAgentOptions,
} from "./library-options.ts";
export { createDockerRuntime } from "./runtimes/docker/runtime.ts";
export { createFakeRuntime } from "./runtimes/fake/runtime.ts";
export { createHostRuntime } from "./runtimes/host/runtime.ts";
export { createOciRuntime } from "./runtimes/oci/runtime.ts";
export { type Copied, copyIn, copyOut } from "./sandbox/copy.ts";
export { type RunOptions, type RunResult, runCommand } from "./sandbox/run-command.ts";
export type { Finding, Probe, Runtime, RuntimeContext, SnapshotInfo } from "./sandbox/runtime.ts";
export {
  type AttachOptions,
  type Bytes,
  type FileInfo,
  type OutputChunk,
  type OwnedSandbox,
  type Process,
  type ProcessInfo,
  restricted,
  type Sandbox,
  type SpawnOptions,
  type Watch,
  type WatchEvent,
} from "./sandbox/sandbox.ts";
export type { SandboxNetwork } from "./sandbox/sandbox-network.ts";
export { stageIn, stageOut } from "./sandbox/stage.ts";
export { readText, writeText } from "./sandbox/text.ts";

/** The sandboxes of one state folder, across all runtimes of this machine. */
export interface Caisson extends AsyncDisposable {
  runtime(name?: string): Promise<Runtime>;
  create(config?: SandboxConfigInput, options?: Pick<CreateOptions, "runtime" | "template" | "signal">): Promise<OwnedSandbox>;
  /**
   * Builds a template from a Dockerfile or devcontainer.json. Throws `invalid` (also if a command fails), `not_found`,
   * `unsupported`, `unsafe`, `too_large`, `no_space`.
   */
  buildTemplate(request: BuildTemplate, options?: { signal?: AbortSignal; onEvent?: (event: BuildEvent) => void }): Promise<TemplateView>;
  /** Reattaches to an existing sandbox, whichever process created it. Throws `not_found`, `lost`. */
  open(id: SandboxId): Promise<OwnedSandbox>;
  list(): Promise<SandboxInfo[]>;
}

/**
 * Creates one sandbox that is ready for commands and removed at the end of the block:
 *
 *     await using sandbox = await createSandbox({ workspace: { kind: "folder", path: "." } });
 *     const { stdout } = await runCommand(sandbox, { argv: ["make", "test"] });
 *
 * Throws `invalid` for a malformed configuration, `unsupported` for options that cannot be enforced, `unavailable` if
 * no runtime here can isolate.
 */
export async function createSandbox(config: SandboxConfigInput = {}, options: CreateOptions = {}): Promise<OwnedSandbox> {
  const { runtime, template, signal, ...where } = options;
  return caissonFor(where).create(config, defined({ runtime, template, signal }));
}

export function createCaisson(options: CaissonOptions & { pool?: PoolSize } = {}): Caisson {
  const { withNetwork: _, ...caisson } = composeCaisson(options);
  return caisson;
}

/** What this module needs beyond `Caisson`: the caller's own runtime isolates, but we provide the network. */
interface ComposedCaisson extends Caisson {
  withNetwork(runtime: Runtime): Promise<Runtime>;
}

function composeCaisson(options: CaissonOptions & { pool?: PoolSize }): ComposedCaisson {
  const environment = environmentOf(options);
  const { stateDir } = environment;
  const { guestPath } = packageFiles(import.meta.filename);
  const { runtimes, resolver, withNetwork } = composeRuntimes({
    environment,
    guestPath,
    program: [process.execPath, besideModule(import.meta.filename, "main")],
    ...defined({ settings: options.network && { network: options.network }, pool: options.pool, onEvent: options.onEvent }),
  });
  const store = createStore({ stateDir });
  const swept = new Set<Runtime>();

  /** Removes the remains of dead creators once per runtime, while the first sandbox is already in use. */
  const sweepOnce = (runtime: Runtime) => {
    if (swept.has(runtime)) return;
    swept.add(runtime);
    void ignore(runtime.sweep(), "the next process sweeps again");
  };
  /** Loads no network code unless the configuration needs it. */
  const givenRuntime = async (runtime: Runtime, config: SandboxConfig) => {
    const { network, secrets, gateway } = config;
    const wanted = network.mode !== "none" || Object.keys(secrets).length > 0 || gateway !== undefined;
    return wanted ? withNetwork(runtime) : runtime;
  };
  const startFrom = async (template: string, spec: SandboxConfig, runtime: string | Runtime | undefined) => {
    if (typeof runtime === "object")
      throw new CaissonError("invalid", "a template has its own runtime, so the program cannot bring another");
    const { withBuiltTemplate } = await import("./station/built-templates/template-start.ts");
    return await withBuiltTemplate({ spec, template, ...defined({ runtime }) }, { stateDir, owner: LOCAL_OWNER });
  };
  const runtimeOf = async (name = "auto") => {
    await openState(environment);
    return resolver.resolve(name);
  };
  return {
    withNetwork,
    runtime: runtimeOf,
    async create(config = {}, options = {}) {
      const { template, signal } = options;
      const plain = withAbsolutePaths(parseSandboxConfig(config));
      const start = template === undefined ? null : await startFrom(template, plain, options.runtime);
      const parsed = start?.spec ?? plain;
      const runtime = start?.runtime ?? options.runtime;
      const chosen = typeof runtime === "object" ? await givenRuntime(runtime, parsed) : await runtimeOf(runtime);
      const sandbox = await chosen.create(parsed, signal && { signal });
      sweepOnce(chosen);
      return sandbox;
    },
    async buildTemplate(request, { signal, onEvent } = {}) {
      const { createLocalTemplates } = await import("./station/templates/local-templates.ts");
      await openState(environment);
      const create = async ({ runtime, spec }: CreateSandbox) =>
        (await runtimeOf(runtime)).create(parseSandboxConfig(spec), signal && { signal });
      const treeOfUpload = async () => {
        throw new CaissonError("unsupported", "a program has no uploads");
      };
      const templates = createLocalTemplates({ stateDir, runtimes, sandboxes: { create }, treeOfUpload });
      for await (const event of templates.build({ ...request, ...(signal && { signal }) })) {
        onEvent?.(event);
        if ("template" in event) return event.template;
      }
      throw new Error("the build ended without a template");
    },
    async open(id) {
      await openState(environment);
      const { runtime } = await store.read(id);
      return (await runtimeOf(runtime)).open(id);
    },
    async list() {
      await openState(environment);
      const names = new Set((await store.list()).records.map(({ runtime }) => runtime));
      const lists = [...names].map(async (name) => (await runtimeOf(name)).list());
      return (await Promise.all(lists)).flat();
    },
    [Symbol.asyncDispose]: () => runtimes[Symbol.asyncDispose](),
  };
}

/**
 * Runs an agent on a task in a sandbox until the run ends. The run is unattended: a call for which a rule says `ask` is
 * denied, and an exhausted budget ends the run. Changes stay in the session: `caisson diff`, `caisson apply`. Throws
 * `cancelled` if the signal detached it; `caisson resume` then continues it.
 */
export async function runAgent(options: RunAgentOptions): Promise<AgentRun> {
  const { startAgent } = await import("./compose/start-agent.ts");
  const { agent = "coder", folder = "." } = options;
  const mounts = (options.mounts ?? []).map((mount) => ({ ...mount, path: resolve(mount.path) }));
  await using station = await openStation({ ...options, folder: resolve(folder) });
  return await startAgent(station, { ...options, agent, folder: resolve(folder), mounts });
}

/**
 * Continues a finished run, with its conversation and files, until it ends again. With a text, `budgets` apply to the
 * new turn; without one, to the whole run. Throws `conflict` if the run has not ended, is done and gets no new message,
 * or is still out of budget; `gone` if its session was removed.
 */
export async function continueAgent(options: ContinueAgentOptions): Promise<AgentRun> {
  const program = await import("./compose/start-agent.ts");
  await using station = await openStation({ ...options, folder: process.cwd() });
  return await program.continueAgent(station, options);
}

/**
 * Runs the loop of a run again from its log, with the recorded answers of the model, and compares every event. With
 * `tools: "live"`, the tools run again, without network, on a copy of the files that the run began with. Throws `gone`
 * for an incomplete recording, `unsupported` if the files were not stored, `cancelled`.
 */
export async function replayAgent(options: ReplayAgentOptions): Promise<ReplayResult> {
  const program = await import("./compose/start-agent.ts");
  await using station = await openStation({ ...options, folder: process.cwd() });
  return await program.replayAgent(station, options);
}

/**
 * Continues copies of a run after one of its steps, until each of them ends: with its conversation, its files and what
 * it had left of its limits. `budgets` replace these. Creates all forks or none. Throws `not_found` for a step that
 * does not exist, `conflict` for one that has not finished, `unsupported` if the files after the step were not stored.
 */
export async function forkAgent(options: ForkAgentOptions): Promise<AgentFork[]> {
  const program = await import("./compose/start-agent.ts");
  await using station = await openStation({ ...options, folder: process.cwd() });
  return await program.forkAgent(station, options);
}

/**
 * Takes a run back to one of its steps: its conversation and its files. It then waits for `continueAgent({ run, text
 * })`. Throws what `forkAgent` throws, and `conflict` if another run has used the files since.
 */
export async function rewindAgent(options: RewindAgentOptions): Promise<AgentRewind> {
  const program = await import("./compose/start-agent.ts");
  await using station = await openStation({ ...options, folder: process.cwd() });
  return await program.rewindAgent(station, options);
}

async function openStation(options: Omit<ContinueAgentOptions, "run"> & { folder: string }) {
  const { openProgramStation } = await import("./compose/program-station.ts");
  const { onEvent, network } = options;
  const environment = environmentOf(options);
  const { stateDir } = environment;
  await openState(environment);
  return openProgramStation({ ...options, environment, runtimes: caissonFor({ stateDir, ...defined({ onEvent, network }) }) });
}

/** Returns `$CAISSON_HOME`, or `caisson` in the user's state folder. */
export function defaultStateDir(): string {
  return readEnvironment(process.env).stateDir;
}

async function openState({ stateDir, path }: Environment): Promise<void> {
  openStateFolder(stateDir);
  await openVolumeOf({ stateDir, path, guestPath: packageFiles(import.meta.filename).guestPath });
}

function environmentOf(options: CaissonOptions): Environment {
  const environment = readEnvironment(process.env);
  return { ...environment, stateDir: options.stateDir ?? environment.stateDir };
}

/**
 * Compositions are shared within a process, so each runtime is created once. A caller with an observer or settings gets
 * a separate one.
 */
const shared = new Map<string, ComposedCaisson>();
function caissonFor(options: CaissonOptions): ComposedCaisson {
  if (options.onEvent !== undefined || options.network !== undefined) return composeCaisson(options);
  const stateDir = options.stateDir ?? defaultStateDir();
  let caisson = shared.get(stateDir);
  if (caisson === undefined) {
    caisson = composeCaisson({ stateDir });
    shared.set(stateDir, caisson);
  }
  return caisson;
}
