import type { Model } from "../agent/model/model.ts";
import { resolveModel } from "../agent/model/resolve-model.ts";
import { createAgentSource } from "../agent/rights/agent-source.ts";
import { createTrustStore } from "../agent/rights/trust-store.ts";
import { Config } from "../contract/config.ts";
import { CaissonError } from "../contract/error.ts";
import { defined } from "../lib/defined.ts";
import type { Runtime } from "../sandbox/runtime.ts";
import { createLocalStation, type LocalStation } from "../station/local-station.ts";
import type { RunsOptions } from "../station/runs/drive.ts";
import type { Environment } from "./environment.ts";
import { modelOptions } from "./local-station.ts";

export interface ProgramParts {
  environment: Environment;
  /** What its runs work on. */
  folder: string;
  /** One of the program's own is taken in place of any that a run names. */
  model?: string | Model;
  /** So is one of these; by default a run has the one it began with. */
  runtime?: string | Runtime;
  runtimes: { runtime(name?: string): Promise<Runtime>; networked(runtime: Runtime): Promise<Runtime> };
  hooks?: NonNullable<RunsOptions["hooks"]>;
}

/** A station for a program that drives its runs itself: nothing of the user's configuration has a say in it. */
export function openProgramStation(parts: ProgramParts): LocalStation {
  const { environment, folder, model, hooks } = parts;
  const { stateDir, path, home, variables } = environment;
  const config = Config.parse({});
  const models = modelOptions({ config, variable: (name) => variables[name] });
  const runtime = runtimeOf(parts);
  return createLocalStation({
    stateDir,
    agents: createAgentSource({
      places: { cwd: folder, ownFolder: null, namedFolders: [], folders: [] },
      trust: createTrustStore({ stateDir }),
      secrets: {},
      usual: { limits: {} },
    }),
    runtime,
    runtimes: async () => [await runtime(undefined)],
    removeSandbox: async (id) => await (await (await runtime(undefined)).open(id)).destroy(),
    driveDetached: async () => {
      throw new CaissonError("unsupported", "a program's run is driven by the program");
    },
    model: async (name, tape) => (typeof model === "object" ? model : resolveModel(name, { ...models, ...tape })),
    git: { path, home },
    settings: {
      defaultModel: undefined,
      keyedModel: () => undefined,
      limits: {},
      secretsOf: async () => ({}),
      author: config.author,
      cwd: folder,
    },
    ...defined({ hooks }),
  });
}

function runtimeOf({ runtime, runtimes }: Pick<ProgramParts, "runtime" | "runtimes">): RunsOptions["runtime"] {
  return async (name, ociRuntime) => {
    if (ociRuntime !== undefined)
      throw new CaissonError("unsupported", `the run began with the OCI runtime ${ociRuntime}, which a program cannot choose`, {
        hint: "Go on with it on the command line: caisson resume.",
      });
    return typeof runtime === "object" ? runtimes.networked(runtime) : runtimes.runtime(runtime ?? name);
  };
}
