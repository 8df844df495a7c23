import type { Model } from "../../agent/model/model.ts";
import { providerVariables, resolveModel } from "../../agent/model/resolve-model.ts";
import { createAgentSource } from "../../agent/rights/agent-source.ts";
import { createTrustStore } from "../../agent/rights/trust-store.ts";
import type { AgentDefinition } from "../../contract/agent.ts";
import { Config } from "../../contract/config.ts";
import { CaissonError } from "../../contract/error.ts";
import type { Budgets } from "../../contract/run.ts";
import type { RunEvent } from "../../contract/run-event.ts";
import type { RunView } from "../../contract/run-verbs.ts";
import type { FolderMount } from "../../contract/sandbox.ts";
import { defined } from "../../lib/defined.ts";
import { createLocalStation, type LocalStation } from "../local-station.ts";
import type { SessionVerbs } from "../sessions/verbs.ts";
import type { RunsOptions } from "./drive.ts";
import { sweepUnfinished } from "./new-run.ts";
import type { RunVerbs } from "./verbs.ts";

/** What a program says of a run that it drives. */
export interface ProgramOptions {
  stateDir: string;
  model?: string | Model;
  budgets?: Budgets;
  hooks?: NonNullable<RunsOptions["hooks"]>;
  runtime: RunsOptions["runtime"];
  env: Readonly<Record<string, string | undefined>>;
  path: string;
  home: string;
  onRunEvent?: (event: RunEvent) => void;
  signal?: AbortSignal;
}

export interface StartAgentOptions extends ProgramOptions {
  task: string;
  model: string | Model;
  agent: string | AgentDefinition;
  /**
   * The program vouches for the file it names as the agent; otherwise `caisson trust` must have granted what it asks
   * for.
   */
  trustAgentFile?: boolean;
  folder: string;
  session?: string;
  mounts?: readonly FolderMount[];
}

export interface ContinueAgentOptions extends ProgramOptions {
  run: string;
  text?: string;
}

/** A run from its task to its end, for a program: nobody is there to be asked. */
export async function startAgent(options: StartAgentOptions) {
  await using station = openStation(options);
  await sweepUnfinished(station);
  const { runs, sessions } = station.verbs;
  const { model, agent, trustAgentFile, task, session, budgets, signal } = options;
  const isNew = session === undefined || (await isMissing(sessions, session));
  const started = await runs.start(
    {
      agent,
      task,
      model: nameOf(model),
      settings: { mounts: [...(options.mounts ?? [])] },
      ...defined({ trustAgentFile, budgets }),
      ...(session === undefined ? {} : { session: { id: session } }),
      ...(isNew ? { source: { kind: "folder", path: options.folder, hiding: { hide: [], show: [] } } } : {}),
    },
    defined({ signal }),
  );
  return await followToEnd(runs, started, { ...options, fromSeq: 1 });
}

/** The next turn of a run that has ended, or, with nothing to say, what is left of one that did not get to its end. */
export async function continueAgent(options: ContinueAgentOptions) {
  await using station = openStation({ ...options, folder: process.cwd() });
  const { runs } = station.verbs;
  const { run, text, model, budgets, signal } = options;
  const by = "program";
  const before = (await runs.get(run)).seq;
  const begun =
    text === undefined
      ? await runs.resume(run, { by, ...defined({ budgets, signal }) })
      : await runs.continue(run, { text, by, ...defined({ budgets, model: nameOf(model) }) }, defined({ signal }));
  return await followToEnd(runs, begun, { ...options, fromSeq: before + 1 });
}

const nameOf = <Given extends string | Model | undefined>(model: Given) =>
  (typeof model === "object" ? model.name : model) as string | Extract<Given, undefined>;

async function followToEnd(runs: RunVerbs, begun: RunView, options: Pick<ProgramOptions, "onRunEvent"> & { fromSeq: number }) {
  const { run, session } = begun;
  const waiting = runs.wait(run);
  // Whatever keeps the run from its end ends the telling, too.
  const over = new AbortController();
  waiting.catch(() => over.abort());
  let text = "";
  for await (const { seq: _, ...event } of runs.events(run, { fromSeq: options.fromSeq, follow: true, signal: over.signal })) {
    options.onRunEvent?.(event);
    if (event.type === "run.ended") text = event.data.text;
  }
  const { finish, steps, usage, costUsd } = await waiting;
  if (finish === null) throw new CaissonError("internal", `the run ${run} is over and has not ended`);
  return { run, session, reason: finish, text, steps, usage, costUsd };
}

async function isMissing(sessions: SessionVerbs, id: string): Promise<boolean> {
  return await sessions.get(id).then(
    () => false,
    (error: unknown) => {
      if (error instanceof CaissonError && error.code === "not_found") return true;
      throw error;
    },
  );
}

function openStation(options: ProgramOptions & { folder: string }): LocalStation {
  const { stateDir, model, folder, runtime } = options;
  const env = Object.fromEntries(providerVariables.map((name) => [name, options.env[name]]));
  const defaults = Config.parse({});
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
    model: async (name, tape) => (typeof model === "object" ? model : resolveModel(name, { env, ...tape })),
    git: { path: options.path, home: options.home },
    settings: { defaultModel: undefined, limits: {}, secretsOf: async () => ({}), author: defaults.author, cwd: folder },
    ...defined({ hooks: options.hooks }),
  });
}
