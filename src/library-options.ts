import type { HookFunction } from "./agent/hooks.ts";
import type { Model } from "./agent/model/model.ts";
import type { AgentDefinition } from "./contract/agent/agent.ts";
import type { Usage } from "./contract/model/usage.ts";
import type { FinishReason } from "./contract/outcome.ts";
import type { Budgets } from "./contract/run/run.ts";
import type { RunEvent } from "./contract/run/run-event.ts";
import type { ReplayEvent, ReplayRunInput } from "./contract/run/run-replay.ts";
import type { SandboxEvent } from "./contract/sandbox/sandbox-event.ts";
import type { FolderMount } from "./contract/sandbox/sandbox-fields.ts";
import type { NetworkSettings } from "./network/network-host.ts";
import type { Runtime } from "./sandbox/runtime.ts";

export interface CaissonOptions {
  /** The folder for sandboxes, snapshots and sockets. Default: `defaultStateDir()`. */
  stateDir?: string;
  onEvent?: (event: SandboxEvent) => void;
  /**
   * Network settings of the sandboxes: trusted outside authorities, and registries and model providers to use instead
   * of the public ones.
   */
  network?: Partial<NetworkSettings>;
}

/**
 * How many sandboxes and network namespaces to keep ready, so that creating one takes milliseconds. They are removed
 * with `Symbol.asyncDispose`. Default: none.
 */
export interface PoolSize {
  sandboxes?: number;
  networkNamespaces?: number;
}

export interface CreateOptions extends CaissonOptions {
  /**
   * A runtime's name, or your own runtime. `auto` (the default) picks the strongest runtime that works here, and never
   * the host.
   */
  runtime?: string | Runtime;
  /** The template to start from, by name or id. Its runtime is used, and its variables unless the config sets them. */
  template?: string;
  signal?: AbortSignal;
}

export interface RunAgentOptions extends CaissonOptions {
  task: string;
  /**
   * `anthropic/…`, `openai/…`, `google/…`, `compatible/…` or `scripted:FILE`, with keys from the environment; or your
   * own model.
   */
  model: string | Model;
  /** An agent's name, the path of its file, or its definition. Default: the built-in `coder`. */
  agent?: string | AgentDefinition;
  /**
   * Whether you trust the agent file if `agent` is a path. Otherwise everything it requests beyond prompts, tools
   * and tighter limits must have been granted with `caisson trust`, or the run is refused with `denied`.
   */
  trustAgentFile?: boolean;
  /** The folder to work on, copy-on-write. Default: the current folder. */
  folder?: string;
  /** The session to work in, created if it does not exist. Default: a new session for this run. */
  session?: string;
  /**
   * When the session is removed, with changes that were not applied: at the end of this run, or of the last one in a
   * named session. Default: `never`, or what the agent's file says.
   */
  cleanup?: "always" | "on_success" | "never";
  /** Further folders that the agent can see; none of them is guarded. */
  mounts?: readonly FolderMount[];
  runtime?: string | Runtime;
  budgets?: Budgets;
  /** Called in this process before and after each tool call; see `HookFunction`. */
  hooks?: { before?: readonly HookFunction[]; after?: readonly HookFunction[] };
  /** Called with every event of the run once the event is durable. */
  onRunEvent?: (event: RunEvent) => void;
  signal?: AbortSignal;
}

export interface AgentRun {
  run: string;
  session: string;
  reason: FinishReason;
  /** The agent's final message, or the reason for the failure. */
  text: string;
  steps: number;
  usage: Usage;
  costUsd: number | null;
}

export interface ContinueAgentOptions
  extends Omit<RunAgentOptions, "task" | "model" | "agent" | "trustAgentFile" | "folder" | "session" | "mounts"> {
  run: string;
  /** The message to the agent. Without one, the run continues where it was, unless it was done. */
  text?: string;
  /** The model for the rest of the run. Default: the previous one. Your own model must be passed again. */
  model?: string | Model;
}

export interface ReplayAgentOptions extends CaissonOptions, Pick<ReplayRunInput, "tools" | "ignore" | "keep"> {
  run: string;
  /** Your own model, if the run had one: for the size of its context. It is not asked. */
  model?: Model;
  /** As for `runAgent`; only live tools need one. */
  runtime?: string | Runtime;
  onReplayEvent?: (event: ReplayEvent) => void;
  signal?: AbortSignal;
}

export interface ForkAgentOptions extends Omit<ContinueAgentOptions, "text"> {
  /** The number of steps after which to fork. Default: the last that has finished. */
  at?: number;
  /** How many forks to create. Default: one. */
  count?: number;
  /** The first message to each fork. Without one, a fork continues only if the step was in the middle of a turn. */
  text?: string;
  name?: string;
  /** In addition to the run's own. */
  labels?: Readonly<Record<string, string>>;
}

export interface AgentFork {
  run: string;
  session: string;
  /** How it ended. Null if it waits for a message: `continueAgent({ run, text })`. */
  outcome: AgentRun | null;
}

export interface RewindAgentOptions extends CaissonOptions, Pick<RunAgentOptions, "runtime"> {
  run: string;
  /** The number of steps that remain; 0: none. */
  to: number;
}

export interface AgentRewind {
  run: string;
  /** The fork that preserves what was taken back. */
  tail: string;
  /** The files that changed back, at most the first thousand. */
  files: string[];
}
