import { appendFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import type { AgentPlaces } from "../agent/file/find-agents.ts";
import { type ModelOptions, providerVariables, resolveModel } from "../agent/model/resolve-model.ts";
import { type AgentSource, createAgentSource } from "../agent/rights/agent-source.ts";
import { createTrustStore } from "../agent/rights/trust-store.ts";
import { type Crashpoint, createCrashpoint } from "../station/crashpoint.ts";
import { createLocalStation, type LocalStation } from "../station/local-station.ts";
import type { CliContext } from "./context.ts";
import { line } from "./line.ts";

export type { LocalStation } from "../station/local-station.ts";

/** Everything a command about runs needs, made from the CLI's context. */
export function openStation(context: CliContext, options: { record?: string; replay?: string } = {}): LocalStation {
  return createLocalStation({
    stateDir: context.stateDir,
    agents: agentSource(context),
    runtime: (name) => context.resolver.resolve(name ?? context.config.runtime),
    model: (name) => resolveModel(name, { ...modelOptions(context), ...options }),
    git: { path: context.path, home: context.home },
    crashpoint: crashpointFrom(context),
    onProgress: (text) => void context.stderr.print(line`caisson: ${text}`),
    onLogBusy: (text) => void context.stderr.print(line`caisson: ${text}`),
  });
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

export function agentSource(context: CliContext): AgentSource {
  return createAgentSource({
    places: agentPlaces(context),
    trust: createTrustStore({ stateDir: context.stateDir }),
    secrets: context.config.secrets,
    usual: { limits: context.config.limits },
    onNotice: (text) => void context.stderr.print(line`caisson: ${text}`),
  });
}

export function agentPlaces(context: CliContext): AgentPlaces {
  const { cwd, configDir, configFile } = context;
  return {
    cwd,
    ownFolder: join(configDir, "agents"),
    // Relative to the file that names them: what a setting means must not depend on where one stands.
    namedFolders: context.config.agentFolders.map((folder) => resolve(configFile === null ? configDir : dirname(configFile), folder)),
    folders: foldersOfAgents(cwd),
  };
}

/** Where a folder keeps its agents. */
export function foldersOfAgents(folder: string): string[] {
  return [join(folder, ".caisson", "agents"), join(folder, "agents")];
}

export function modelOptions(context: CliContext): ModelOptions {
  const { baseUrl, prices, stallMs } = context.config.models;
  return {
    env: Object.fromEntries(providerVariables.map((name) => [name, context.variable(name)])),
    prices,
    ...(baseUrl === undefined ? {} : { baseUrl }),
    ...(stallMs === undefined ? {} : { stallMs }),
  };
}
