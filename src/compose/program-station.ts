import type { Model } from "../agent/model/model.ts";
import { resolveModel } from "../agent/model/resolve-model.ts";
import { createAgentSource } from "../agent/rights/agent-source.ts";
import { createTrustStore } from "../agent/rights/trust-store.ts";
import { Config } from "../contract/config/config.ts";
import { CaissonError } from "../contract/error/error.ts";
import { defined } from "../lib/defined.ts";
import type { Runtime } from "../sandbox/runtime.ts";
import { createLocalStation, type LocalStation } from "../station/local-station.ts";
import type { RunsOptions } from "../station/runs/drive.ts";
import type { Environment } from "./environment.ts";
import { modelOptions } from "./local-parts.ts";

export interface ProgramParts {
  environment: Environment;
  /** The folder that runs work on. */
  folder: string;
  /** The program's own model replaces the one that a run names. */
  model?: string | Model;
  /** The program's own runtime replaces the one that a run began with. */
  runtime?: string | Runtime;
  runtimes: { runtime(name?: string): Promise<Runtime>; withNetwork(runtime: Runtime): Promise<Runtime> };
  hooks?: NonNullable<RunsOptions["hooks"]>;
}

/** Opens a station for a program that drives its own runs. It ignores the user's configuration. */
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
      limits: {},
      defaults: {},
    }),
    runtime,
    runtimes: async () => [await runtime(undefined)],
    removeSandbox: async (id) => await (await (await runtime(undefined)).open(id)).destroy(),
    driveDetached: async () => {
      throw new CaissonError("unsupported", "a program must drive its own runs");
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
        hint: "Continue it on the command line: caisson resume.",
      });
    return typeof runtime === "object" ? runtimes.withNetwork(runtime) : runtimes.runtime(runtime ?? name);
  };
}
