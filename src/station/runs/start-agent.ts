import type { Model } from "../../agent/model/model.ts";
import { providerVariables, resolveModel } from "../../agent/model/resolve-model.ts";
import { createAgentSource } from "../../agent/rights/agent-source.ts";
import { createTrustStore } from "../../agent/rights/trust-store.ts";
import { AgentDefinition } from "../../contract/agent.ts";
import { CaissonError } from "../../contract/error.ts";
import type { Budgets, FinishReason } from "../../contract/run.ts";
import type { RunEvent } from "../../contract/run-event.ts";
import type { Usage } from "../../contract/usage.ts";
import { newId } from "../../lib/new-id.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import { checkFolder } from "../../workspace/sessions.ts";
import { createLocalStation, type LocalStation } from "../local-station.ts";
import type { RunsOptions } from "./drive.ts";
import { runStream } from "./head-of-run.ts";
import { createRunInNewSession, sweepUnfinished } from "./new-run.ts";
import { parseRunEvent } from "./owned-journal.ts";
import type { NewRun } from "./runs.ts";

export interface StartAgentOptions {
  stateDir: string;
  task: string;
  model: string | Model;
  agent: string | AgentDefinition;
  /** The program vouches for the file it names as the agent; otherwise `caisson trust` must have granted what it asks for. */
  trustAgentFile?: boolean;
  folder: string;
  session?: string;
  budgets?: Budgets;
  hooks?: NonNullable<RunsOptions["hooks"]>;
  runtime: (name: string | undefined) => Promise<Runtime>;
  env: Readonly<Record<string, string | undefined>>;
  path: string;
  home: string;
  onRunEvent?: (event: RunEvent) => void;
  signal?: AbortSignal;
}

/** A run from its task to its end, for a program: nobody is there to be asked. */
export async function startAgent(options: StartAgentOptions) {
  const { model } = options;
  const env = Object.fromEntries(providerVariables.map((name) => [name, options.env[name]]));
  await checkFolder(options.folder);
  await using station = createLocalStation({
    stateDir: options.stateDir,
    agents: createAgentSource({
      places: { cwd: options.folder, ownFolder: null, namedFolders: [], folders: [] },
      trust: createTrustStore({ stateDir: options.stateDir }),
      secrets: {},
      usual: { limits: {} },
    }),
    runtime: options.runtime,
    model: async (name) => (typeof model === "string" ? resolveModel(name, { env }) : model),
    git: { path: options.path, home: options.home },
    ...(options.hooks ? { hooks: options.hooks } : {}),
  });
  await sweepUnfinished(station);
  const { run, session } = await createRun(station, options);
  const telling = new AbortController();
  const told = tell(station, run, options.onRunEvent, telling.signal);
  try {
    const state = await station.runs.drive(run, { signal: options.signal ?? telling.signal });
    await told;
    if (!state.ended) throw new CaissonError("internal", `the run ${run} is over and has not ended`);
    const { reason, text } = state.ended satisfies { reason: FinishReason; text: string };
    return { run, session, reason, text, steps: state.step, usage: state.usage satisfies Usage, costUsd: state.costUsd };
  } finally {
    telling.abort();
    await told;
  }
}

async function definitionOf(options: StartAgentOptions, station: LocalStation): Promise<AgentDefinition> {
  return typeof options.agent === "string"
    ? station.agents.load(options.agent, { vouched: options.trustAgentFile ?? false, given: new Set(["model"]) })
    : AgentDefinition.parse(options.agent);
}

function unattended(definition: AgentDefinition): AgentDefinition {
  return { ...definition, harness: { ...definition.harness, onAsk: "deny", onBudget: "stop" } };
}

/** In the session that was named, or in a new one: by the path that leaves nothing when the program dies on it. */
async function createRun(station: LocalStation, options: StartAgentOptions): Promise<{ run: string; session: string }> {
  const { model, task, session: named } = options;
  const run: Omit<NewRun, "session"> & { id: string } = {
    id: newId("run"),
    definition: unattended(await definitionOf(options, station)),
    task,
    model: typeof model === "string" ? model : model.name,
    ...(options.budgets ? { budgets: options.budgets } : {}),
  };
  const session = named ?? run.id;
  const known = named !== undefined && (await station.sessions.list()).some(({ id }) => id === named);
  if (known) await station.runs.create({ ...run, session });
  else {
    const source = { kind: "folder" as const, path: options.folder };
    const scope = named === undefined ? ("run" as const) : ("session" as const);
    await createRunInNewSession(station, { run, session: { id: session, source, scope, cleanup: "never" } });
  }
  return { run: run.id, session };
}

async function tell(
  station: LocalStation,
  run: string,
  listener: ((event: RunEvent) => void) | undefined,
  signal: AbortSignal,
): Promise<void> {
  if (!listener) return;
  for await (const stored of station.log.subscribe(runStream(run), { signal })) {
    const event = parseRunEvent(stored);
    listener(event);
    if (event.type === "run.ended") return;
  }
}
