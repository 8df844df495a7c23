import { appendFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { defineAgent } from "../agent/file/define-agent.ts";
import { type AgentPlaces, findAgent } from "../agent/file/find-agents.ts";
import { type ModelOptions, resolveModel } from "../agent/model/resolve-model.ts";
import type { Log } from "../log/log.ts";
import { createSqliteLog } from "../log/sqlite/log.ts";
import { removeRemains } from "../sandbox/remove-remains.ts";
import { createStore } from "../sandbox/store.ts";
import { type Crashpoint, createCrashpoint } from "../station/crashpoint.ts";
import { isGone } from "../station/ownership.ts";
import { createRuns, type Runs, type RunsOptions } from "../station/runs.ts";
import { prepareWorkspace } from "../workspace/git/check-out.ts";
import { createSessionStore, type SessionStore } from "../workspace/sessions.ts";
import type { CliContext } from "./context.ts";

/** Everything a command about runs needs, made from the CLI's context. */
export interface LocalStation extends AsyncDisposable {
  log: Log;
  runs: Runs;
  sessions: SessionStore;
  places: AgentPlaces & { cwd: string };
  stateDir: string;
  /** This process, and as the holder of a lease. */
  identity: RunsOptions["identity"];
  owner: string;
  alive: RunsOptions["alive"];
  ownerGone: (owner: string) => boolean;
  crashpoint: Crashpoint;
  removeRemains: RunsOptions["removeRemains"];
}

export function openStation(context: CliContext, options: { record?: string; replay?: string } = {}): LocalStation {
  const log = createSqliteLog({ path: join(context.stateDir, "log.db") });
  const store = createStore({ stateDir: context.stateDir });
  const identity = { ...store.ownerOf(), host: hostname() };
  const alive = (owner: { pid: number; startTicks: number; bootId: string }) => store.ownerAlive(owner);
  const sessions = createSessionStore({ stateDir: context.stateDir, log, identity, alive });
  const places = agentPlaces(context);
  const git = { path: context.path, home: context.home };
  const crashpoint = crashpointFrom(context);
  const runs = createRuns({
    log,
    sessions,
    identity,
    alive,
    crashpoint,
    removeRemains: (runtime, id) => removeRemains(store, runtime, id),
    runtime: (name) => context.resolver.resolve(name ?? context.config.runtime),
    model: (name) => resolveModel(name, { ...modelOptions(context), ...options }),
    agent: async (name) => defineAgent(await findAgent(name, places)),
    prepare: (session, sandbox) =>
      prepareWorkspace(session, sandbox, {
        sessions,
        stateDir: context.stateDir,
        git,
        log,
        owner: JSON.stringify(identity),
        ownerGone: (owner) => isGone({ identity, alive }, owner),
        onProgress: (line) => void context.stderr.write(`caisson: ${line}\n`),
      }),
  });
  return {
    log,
    runs,
    sessions,
    places,
    stateDir: context.stateDir,
    identity,
    owner: JSON.stringify(identity),
    alive,
    ownerGone: (owner) => isGone({ identity, alive }, owner),
    crashpoint,
    removeRemains: (runtime, id) => removeRemains(store, runtime, id),
    [Symbol.asyncDispose]: () => log[Symbol.asyncDispose](),
  };
}

/** For the tests of recovery: where to die, and a file that gets the name of each place where one could. */
function crashpointFrom(context: CliContext): Crashpoint {
  const at = context.variable("CAISSON_CRASH_AT");
  const list = context.variable("CAISSON_CRASH_LIST");
  return createCrashpoint({
    ...(at === undefined ? {} : { at }),
    ...(list === undefined ? {} : { onPoint: (name: string) => appendFileSync(list, `${name}\n`) }),
  });
}

export function agentPlaces(context: CliContext): AgentPlaces & { cwd: string } {
  return {
    cwd: context.cwd,
    folders: [join(context.cwd, ".caisson", "agents"), join(context.cwd, "agents"), ...context.config.agentFolders],
  };
}

export function modelOptions(context: CliContext): ModelOptions {
  const names = [
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "OPENAI_API_KEY",
    "OPENAI_BASE_URL",
    "GOOGLE_GENERATIVE_AI_API_KEY",
    "GEMINI_API_KEY",
    "GOOGLE_BASE_URL",
  ];
  const { baseUrl, prices, stallMs } = context.config.models;
  return {
    env: Object.fromEntries(names.map((name) => [name, context.variable(name)])),
    prices,
    ...(baseUrl === undefined ? {} : { baseUrl }),
    ...(stallMs === undefined ? {} : { stallMs }),
  };
}
