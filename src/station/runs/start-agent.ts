import type { Model } from "../../agent/model/model.ts";
import type { AgentDefinition } from "../../contract/agent.ts";
import { CaissonError } from "../../contract/error.ts";
import type { Budgets } from "../../contract/run.ts";
import type { RunEvent } from "../../contract/run-event.ts";
import type { RunView } from "../../contract/run-verbs.ts";
import type { FolderMount } from "../../contract/sandbox.ts";
import { defined } from "../../lib/defined.ts";
import type { LocalStation } from "../local-station.ts";
import { foundOrNull } from "../names/found-or-null.ts";
import { sweepUnfinished } from "./new-run.ts";
import type { RunVerbs } from "./verbs.ts";

/** What a program says of a run that it drives. */
interface ProgramOptions {
  model?: string | Model;
  budgets?: Budgets;
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
export async function startAgent(station: LocalStation, options: StartAgentOptions) {
  await sweepUnfinished(station);
  const { runs, sessions } = station.verbs;
  const { model, agent, trustAgentFile, task, session, budgets, signal } = options;
  const isNew = session === undefined || (await foundOrNull(sessions.get(session))) === null;
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
export async function continueAgent(station: LocalStation, options: ContinueAgentOptions) {
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
