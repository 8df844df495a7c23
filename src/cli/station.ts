import { appendFileSync } from "node:fs";
import { join } from "node:path";
import type { AgentPlaces } from "../agent/file/find-agents.ts";
import { type ModelOptions, providerVariables, resolveModel } from "../agent/model/resolve-model.ts";
import { type Crashpoint, createCrashpoint } from "../station/crashpoint.ts";
import { createLocalStation, type LocalStation } from "../station/local-station.ts";
import type { CliContext } from "./context.ts";
import { line } from "./line.ts";

export type { LocalStation } from "../station/local-station.ts";

/** Everything a command about runs needs, made from the CLI's context. */
export function openStation(context: CliContext, options: { record?: string; replay?: string } = {}): LocalStation {
  return createLocalStation({
    stateDir: context.stateDir,
    places: agentPlaces(context),
    runtime: (name) => context.resolver.resolve(name ?? context.config.runtime),
    model: (name) => resolveModel(name, { ...modelOptions(context), ...options }),
    git: { path: context.path, home: context.home },
    crashpoint: crashpointFrom(context),
    onProgress: (text) => void context.stderr.print(line`caisson: ${text}`),
    onLogBusy: () => void context.stderr.print(line`caisson: another process holds the log; waiting for it`),
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

export function agentPlaces(context: CliContext): AgentPlaces & { cwd: string } {
  return {
    cwd: context.cwd,
    folders: [join(context.cwd, ".caisson", "agents"), join(context.cwd, "agents"), ...context.config.agentFolders],
  };
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
