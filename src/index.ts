import { resolve } from "node:path";
import type { HookFunction } from "./agent/hooks.ts";
import type { Model } from "./agent/model/model.ts";
import { type Environment, readEnvironment } from "./compose/environment.ts";
import { composeRuntimes } from "./compose/runtimes.ts";
import { openStateFolder } from "./compose/state-folder.ts";
import type { AgentDefinition } from "./contract/agent.ts";
import type { SandboxEvent } from "./contract/event.ts";
import type { SandboxId } from "./contract/ids.ts";
import type { Budgets, FinishReason } from "./contract/run.ts";
import type { RunEvent } from "./contract/run-event.ts";
import type { FolderMount, SandboxInfo, SandboxSpec, SandboxSpecInput } from "./contract/sandbox.ts";
import type { Usage } from "./contract/usage.ts";
import { defined } from "./lib/defined.ts";
import type { NetworkSettings } from "./network/network-host.ts";
import { besideModule, packageFiles } from "./package-files.ts";
import { withAbsolutePaths } from "./sandbox/absolute-spec.ts";
import type { Runtime } from "./sandbox/runtime.ts";
import type { OwnedSandbox } from "./sandbox/sandbox.ts";
import { parseSpec } from "./sandbox/spec.ts";
import { createStore } from "./sandbox/store.ts";

/**
 * The library: `createSandbox` for most, `createCaisson` for programs that hold many, runtimes for those who compose.
 */

export type { HookCall, HookFunction, HookVerdict } from "./agent/hooks.ts";
export type { Model, ModelChunk, ModelMessage, ModelRequest } from "./agent/model/model.ts";
export { AgentDefinition } from "./contract/agent.ts";
export { CaissonError, type ErrorCode } from "./contract/error.ts";
export type { SandboxEvent } from "./contract/event.ts";
export type { ProcessRef, RuntimeName, SandboxId, SnapshotId } from "./contract/ids.ts";
export type { GatewaySpec, NetworkPolicy, NetworkRule, SecretSpec } from "./contract/network.ts";
export type { NetworkEvent } from "./contract/network-event.ts";
export { parsePolicy, parseRule } from "./contract/network-text.ts";
export type { Ended } from "./contract/outcome.ts";
export type { Budgets, FinishReason } from "./contract/run.ts";
export type { RunEvent } from "./contract/run-event.ts";
export type {
  Capabilities,
  FolderMount,
  Limits,
  SandboxInfo,
  SandboxSpec,
  SandboxSpecInput,
  SandboxState,
  SandboxStats,
} from "./contract/sandbox.ts";
export type { Usage } from "./contract/usage.ts";
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

export interface CaissonOptions {
  /** Where sandboxes, snapshots and sockets live; default `defaultStateDir()`. */
  stateDir?: string;
  onEvent?: (event: SandboxEvent) => void;
  /**
   * Of the networks of its sandboxes: authorities trusted outside, registries and model providers in place of the
   * public ones.
   */
  network?: Partial<NetworkSettings>;
}

/**
 * How many sandboxes and network namespaces are kept ready, so that a create takes milliseconds; they go with
 * `Symbol.asyncDispose`. Default none.
 */
export interface PoolSize {
  sandboxes?: number;
  networkNamespaces?: number;
}

export interface CreateOptions extends CaissonOptions {
  /**
   * `auto` (the default) takes the strongest runtime that works here and never the host; or a name; or a runtime of
   * your own.
   */
  runtime?: string | Runtime;
  signal?: AbortSignal;
}

/** Sandboxes of one state folder, over every runtime of this machine. */
export interface Caisson extends AsyncDisposable {
  runtime(name?: string): Promise<Runtime>;
  create(spec?: SandboxSpecInput, options?: { runtime?: string | Runtime; signal?: AbortSignal }): Promise<OwnedSandbox>;
  /** Re-attaches to a sandbox that lives, made by this process or another. Throws `not_found`, `lost`. */
  open(id: SandboxId): Promise<OwnedSandbox>;
  list(): Promise<SandboxInfo[]>;
}

/**
 * One sandbox, ready for commands, gone at the end of the block:
 *
 *     await using sandbox = await createSandbox({ workspace: { kind: "folder", path: "." } });
 *     const { stdout } = await runCommand(sandbox, { argv: ["make", "test"] });
 *
 * Throws `invalid` for a malformed spec, `unsupported` for what cannot be enforced, `unavailable` when nothing here can
 * isolate.
 */
export async function createSandbox(spec: SandboxSpecInput = {}, options: CreateOptions = {}): Promise<OwnedSandbox> {
  const { runtime, signal, ...where } = options;
  return caissonFor(where).create(spec, { ...(runtime !== undefined && { runtime }), ...(signal && { signal }) });
}

export function createCaisson(options: CaissonOptions & { pool?: PoolSize } = {}): Caisson {
  const { networked: _, ...caisson } = composeCaisson(options);
  return caisson;
}

/** What this module uses of it besides: a runtime of the caller's own builds walls, and the network is ours. */
interface ComposedCaisson extends Caisson {
  networked(runtime: Runtime): Promise<Runtime>;
}

function composeCaisson(options: CaissonOptions & { pool?: PoolSize }): ComposedCaisson {
  const environment = environmentOf(options);
  const { stateDir } = environment;
  const { runtimes, resolver, withNetwork } = composeRuntimes({
    environment,
    guestPath: packageFiles(import.meta.filename).guestPath,
    program: [process.execPath, besideModule(import.meta.filename, "main")],
    ...defined({ settings: options.network && { network: options.network }, pool: options.pool, onEvent: options.onEvent }),
  });
  const store = createStore({ stateDir });
  const swept = new Set<Runtime>();

  /** What creators that died have left is removed beside the first work, once. */
  const sweepOnce = (runtime: Runtime) => {
    if (swept.has(runtime)) return;
    swept.add(runtime);
    runtime.sweep().catch(() => {});
  };
  /** Nothing of networks is loaded where none is asked for. */
  const givenRuntime = async (runtime: Runtime, spec: SandboxSpec) => {
    const { network, secrets, gateway } = spec;
    const wanted = network.mode !== "none" || Object.keys(secrets).length > 0 || gateway !== undefined;
    return wanted ? withNetwork(runtime) : runtime;
  };
  const runtimeOf = async (name = "auto") => {
    openStateFolder(stateDir);
    return resolver.resolve(name);
  };
  return {
    networked: withNetwork,
    runtime: runtimeOf,
    async create(spec = {}, { runtime, signal } = {}) {
      const parsed = withAbsolutePaths(parseSpec(spec));
      const chosen = typeof runtime === "object" ? await givenRuntime(runtime, parsed) : await runtimeOf(runtime);
      const sandbox = await chosen.create(parsed, signal && { signal });
      sweepOnce(chosen);
      return sandbox;
    },
    async open(id) {
      const { runtime } = await store.read(id);
      return (await runtimeOf(runtime)).open(id);
    },
    async list() {
      const names = new Set((await store.list()).records.map(({ runtime }) => runtime));
      const lists = [...names].map(async (name) => (await runtimeOf(name)).list());
      return (await Promise.all(lists)).flat();
    },
    [Symbol.asyncDispose]: () => runtimes[Symbol.asyncDispose](),
  };
}

export interface RunAgentOptions extends CaissonOptions {
  task: string;
  /**
   * `anthropic/…`, `openai/…`, `google/…`, `compatible/…`, `scripted:FILE`; keys come from the environment. Or a model
   * of your own.
   */
  model: string | Model;
  /** An agent's name, the path of its file, or its definition; default the built-in `coder`. */
  agent?: string | AgentDefinition;
  /**
   * Whether you vouch for the agent's file when `agent` is a path. Otherwise what it asks for beyond prompts, tools and
   * tighter limits must have been granted with `caisson trust`; the run is refused with `denied` if not.
   */
  trustAgentFile?: boolean;
  /** What to work on, copy-on-write; default the current folder. */
  folder?: string;
  /** A session to work in, made if it is not there; default one of the run's own. */
  session?: string;
  /** Further folders to show to it; none of them is guarded. */
  mounts?: readonly FolderMount[];
  runtime?: string | Runtime;
  budgets?: Budgets;
  /** Called in this program before and after each tool; see `HookFunction`. */
  hooks?: { before?: readonly HookFunction[]; after?: readonly HookFunction[] };
  /** Every event of the run, once it is durable. */
  onRunEvent?: (event: RunEvent) => void;
  signal?: AbortSignal;
}

export interface AgentRun {
  run: string;
  session: string;
  reason: FinishReason;
  /** The agent's last words, or what went wrong. */
  text: string;
  steps: number;
  usage: Usage;
  costUsd: number | null;
}

/**
 * Lets an agent work on a task, in a sandbox, to its end. Nobody is asked: where a rule says `ask` the call is denied,
 * and a budget that is reached ends the run. What it changed stays in its session: `caisson diff`, `caisson apply`.
 * Throws `cancelled` when the signal let it go; then `caisson resume` goes on with it.
 */
export async function runAgent(options: RunAgentOptions): Promise<AgentRun> {
  const { startAgent } = await import("./station/runs/start-agent.ts");
  const { agent = "coder", folder = "." } = options;
  const mounts = (options.mounts ?? []).map((mount) => ({ ...mount, path: resolve(mount.path) }));
  await using station = await openStation({ ...options, folder: resolve(folder) });
  return await startAgent(station, { ...options, agent, folder: resolve(folder), mounts });
}

export interface ContinueAgentOptions
  extends Omit<RunAgentOptions, "task" | "model" | "agent" | "trustAgentFile" | "folder" | "session" | "mounts"> {
  run: string;
  /** What is said to it. Absent: it goes on where it was, unless it was done. */
  text?: string;
  /** Another model from here on; default the one it had. One of your own has to be given again. */
  model?: string | Model;
}

/**
 * Goes on with a run that has ended, with its conversation and files, to its next end. With a text `budgets` are for
 * what is to come, without one for the whole run. Throws `conflict` for a run that has not ended, that is done and is
 * told nothing new, or whose bounds still hold; `gone` when its session was removed.
 */
export async function continueAgent(options: ContinueAgentOptions): Promise<AgentRun> {
  const program = await import("./station/runs/start-agent.ts");
  await using station = await openStation({ ...options, folder: process.cwd() });
  return await program.continueAgent(station, options);
}

async function openStation(options: Omit<ContinueAgentOptions, "run"> & { folder: string }) {
  const { openProgramStation } = await import("./compose/program-station.ts");
  const { onEvent, network } = options;
  const environment = environmentOf(options);
  const { stateDir } = environment;
  openStateFolder(stateDir);
  return openProgramStation({ ...options, environment, runtimes: caissonFor({ stateDir, ...defined({ onEvent, network }) }) });
}

/** `$CAISSON_HOME`, or `caisson` in the user's state folder. */
export function defaultStateDir(): string {
  return readEnvironment(process.env).stateDir;
}

function environmentOf(options: CaissonOptions): Environment {
  const environment = readEnvironment(process.env);
  return { ...environment, stateDir: options.stateDir ?? environment.stateDir };
}

/**
 * The composition is shared by the calls of one process, so that its runtimes are made once. Who observes or has
 * settings of their own gets one of their own.
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
