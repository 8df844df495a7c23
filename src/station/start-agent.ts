import { defineAgent } from "../agent/file/define-agent.ts";
import { findAgent } from "../agent/file/find-agents.ts";
import type { Model } from "../agent/model/model.ts";
import { providerVariables, resolveModel } from "../agent/model/resolve-model.ts";
import { AgentDefinition } from "../contract/agent.ts";
import { CaissonError } from "../contract/error.ts";
import type { Budgets, FinishReason, Usage } from "../contract/run.ts";
import type { RunEvent } from "../contract/run-event.ts";
import { newId } from "../lib/new-id.ts";
import type { Runtime } from "../sandbox/runtime.ts";
import { checkFolder } from "../workspace/sessions.ts";
import { parseRunEvent, runStream } from "./journal.ts";
import { createLocalStation, type LocalStation } from "./local-station.ts";
import type { RunsOptions } from "./runs.ts";

export interface StartAgentOptions {
  stateDir: string;
  task: string;
  model: string | Model;
  agent: string | AgentDefinition;
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
    places: { cwd: options.folder, folders: [] },
    runtime: options.runtime,
    model: async (name) => (typeof model === "string" ? resolveModel(name, { env }) : model),
    git: { path: options.path, home: options.home },
    ...(options.hooks ? { hooks: options.hooks } : {}),
  });
  const definition = unattended(await definitionOf(options, station));
  const run = newId("run");
  const session = await sessionFor(station, options, run);
  await station.runs.create({
    id: run,
    definition,
    task: options.task,
    model: typeof model === "string" ? model : model.name,
    session,
    ...(options.budgets ? { budgets: options.budgets } : {}),
  });
  const telling = new AbortController();
  const told = tell(station, run, options.onRunEvent, telling.signal);
  try {
    const state = await station.runs.drive(run, { signal: options.signal ?? telling.signal });
    await told;
    if (!state.ended) throw new CaissonError("internal", `The run ${run} is over and has not ended.`);
    const { reason, text } = state.ended satisfies { reason: FinishReason; text: string };
    return { run, session, reason, text, steps: state.step, usage: state.usage satisfies Usage, costUsd: state.costUsd };
  } finally {
    telling.abort();
    await told;
  }
}

async function definitionOf(options: StartAgentOptions, station: LocalStation): Promise<AgentDefinition> {
  return typeof options.agent === "string"
    ? defineAgent(await findAgent(options.agent, station.places))
    : AgentDefinition.parse(options.agent);
}

function unattended(definition: AgentDefinition): AgentDefinition {
  return { ...definition, harness: { ...definition.harness, onAsk: "deny", onBudget: "stop" } };
}

async function sessionFor(station: LocalStation, options: StartAgentOptions, run: string): Promise<string> {
  const known = options.session !== undefined && (await station.sessions.list()).some(({ id }) => id === options.session);
  if (known && options.session !== undefined) return options.session;
  const source = { kind: "folder" as const, path: options.folder };
  const scope = options.session === undefined ? ("run" as const) : ("session" as const);
  return (await station.sessions.create({ id: options.session ?? run, source, scope, cleanup: "never" })).id;
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
