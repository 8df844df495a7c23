import { hostname } from "node:os";
import { join } from "node:path";
import type { Model } from "../agent/model/model.ts";
import type { AgentSource } from "../agent/rights/agent-source.ts";
import type { ProcessIdentity } from "../contract/process-identity.ts";
import type { Log } from "../log/log.ts";
import { createSqliteLog } from "../log/sqlite/log.ts";
import { removeRemains } from "../sandbox/remove-remains.ts";
import type { Runtime } from "../sandbox/runtime.ts";
import { createStore } from "../sandbox/store.ts";
import { prepareWorkspace } from "../workspace/git/check-out.ts";
import type { GitOptions } from "../workspace/git/host-git.ts";
import { createSessionStore, type SessionStore } from "../workspace/sessions.ts";
import { type Crashpoint, noCrash } from "./crashpoint.ts";
import type { RunsOptions } from "./runs/drive.ts";
import { isGone } from "./runs/ownership.ts";
import { createRuns, type Runs } from "./runs/runs.ts";

/** Runs and sessions of one state folder, on the embedded log: what the CLI and the library build on. */
export interface LocalStation extends AsyncDisposable {
  log: Log;
  runs: Runs;
  sessions: SessionStore;
  agents: AgentSource;
  stateDir: string;
  /** This process, and as the holder of a lease. */
  identity: RunsOptions["identity"];
  owner: string;
  alive: RunsOptions["alive"];
  ownerGone: (owner: string) => boolean;
  crashpoint: Crashpoint;
  removeRemains: RunsOptions["removeRemains"];
}

export function createLocalStation(options: {
  /** Exists. */
  stateDir: string;
  agents: AgentSource;
  runtime: (name: string | undefined) => Promise<Runtime>;
  model: (name: string) => Promise<Model>;
  git: Pick<GitOptions, "path" | "home">;
  hooks?: NonNullable<RunsOptions["hooks"]>;
  crashpoint?: Crashpoint;
  /** What fetching a repository says meanwhile. */
  onProgress?: (line: string) => void;
  /** The log is held by another process, and is waited for. */
  onLogBusy?: (text: string) => void;
}): LocalStation {
  const { stateDir, agents } = options;
  const log = createSqliteLog({ path: join(stateDir, "log.db"), ...(options.onLogBusy ? { onBusy: options.onLogBusy } : {}) });
  const store = createStore({ stateDir });
  const identity = { ...store.ownerOf(), host: hostname() };
  const alive = (owner: ProcessIdentity) => store.ownerAlive(owner);
  const sessions = createSessionStore({ stateDir, log, identity, alive });
  const owner = JSON.stringify(identity);
  const ownerGone = (other: string) => isGone({ identity, alive }, other);
  const crashpoint = options.crashpoint ?? noCrash;
  const remove: RunsOptions["removeRemains"] = (runtime, id) => removeRemains(store, runtime, id);
  const fetching = { sessions, stateDir, git: options.git, log, owner, ownerGone };
  const runs = createRuns({
    log,
    sessions,
    identity,
    alive,
    crashpoint,
    removeRemains: remove,
    runtime: options.runtime,
    model: options.model,
    agent: (name) => agents.load(name),
    ...(options.hooks ? { hooks: options.hooks } : {}),
    prepare: (session, place) =>
      prepareWorkspace(session, place, { ...fetching, ...(options.onProgress ? { onProgress: options.onProgress } : {}) }),
  });
  return {
    log,
    runs,
    sessions,
    agents,
    stateDir,
    identity,
    owner,
    alive,
    ownerGone,
    crashpoint,
    removeRemains: remove,
    [Symbol.asyncDispose]: () => log[Symbol.asyncDispose](),
  };
}
