import type { Model } from "../agent/model/model.ts";
import type { AgentDefinition } from "../contract/agent/agent.ts";
import { CaissonError } from "../contract/error/error.ts";
import { foundOrNull } from "../contract/error/found-or-null.ts";
import type { Budgets } from "../contract/run/run.ts";
import type { RunEvent } from "../contract/run/run-event.ts";
import type { ReplayEvent, ReplayResult, ReplayRunInput } from "../contract/run/run-replay.ts";
import type { RunView } from "../contract/run/run-verbs.ts";
import type { FolderMount } from "../contract/sandbox/sandbox-fields.ts";
import type { SessionCleanup } from "../contract/session/session.ts";
import { defined } from "../lib/defined.ts";
import type { LocalStation } from "../station/local-station.ts";
import { sweepUnfinished } from "../station/sessions/create-session.ts";
import type { RunVerbs } from "../verbs/runs.ts";

/** A program's options for a run that it drives. */
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
  /** Whether the program trusts the agent file it names; otherwise `caisson trust` must have granted its rights. */
  trustAgentFile?: boolean;
  folder: string;
  session?: string;
  /** When the session is removed; see `StartRun.cleanup`. */
  cleanup?: SessionCleanup;
  mounts?: readonly FolderMount[];
}

export interface ContinueAgentOptions extends ProgramOptions {
  run: string;
  text?: string;
}

/** Drives a program's run from its task to its end, unattended. */
export async function startAgent(station: LocalStation, options: StartAgentOptions) {
  await sweepUnfinished(station.core);
  await station.recoverRewinds();
  const { runs, sessions } = station.verbs;
  const { model, agent, trustAgentFile, task, session, cleanup, budgets, signal } = options;
  const isNew = session === undefined || (await foundOrNull(sessions.get(session))) === null;
  const started = await runs.start(
    {
      agent,
      task,
      model: nameOf(model),
      settings: { mounts: [...(options.mounts ?? [])] },
      ...defined({ trustAgentFile, budgets, cleanup }),
      ...(session === undefined ? {} : { session: { id: session } }),
      ...(isNew ? { source: { kind: "folder", path: options.folder, hiding: { hide: [], show: [] } } } : {}),
    },
    defined({ signal }),
  );
  return await followToEnd(runs, started, { ...options, fromSeq: 1 });
}

/** Gives a finished run another turn. Without a text, continues a run that was interrupted. */
export async function continueAgent(station: LocalStation, options: ContinueAgentOptions) {
  const { runs } = station.verbs;
  const { run, text, model, budgets, signal } = options;
  const by = "program";
  const before = (await runs.get(run)).seq;
  const view =
    text === undefined
      ? await runs.resume(run, { by, ...defined({ budgets, signal }) })
      : await runs.continue(run, { text, by, ...defined({ budgets, model: nameOf(model) }) }, defined({ signal }));
  return await followToEnd(runs, view, { ...options, fromSeq: before + 1 });
}

export interface ReplayAgentOptions extends ReplayRunInput {
  run: string;
  onReplayEvent?: (event: ReplayEvent) => void;
  signal?: AbortSignal;
}

/** Replays a run to its result. */
export async function replayAgent(station: LocalStation, options: ReplayAgentOptions): Promise<ReplayResult> {
  const { run, tools, ignore, keep, signal } = options;
  await sweepUnfinished(station.core);
  for await (const event of station.verbs.runs.replay(run, defined({ tools, ignore, keep, signal }))) {
    options.onReplayEvent?.(event);
    if ("result" in event) return event.result;
  }
  throw new CaissonError("internal", `the replay of ${run} ended without a result`);
}

export interface ForkAgentOptions extends ProgramOptions {
  run: string;
  at?: number;
  count?: number;
  text?: string;
  name?: string;
  labels?: Readonly<Record<string, string>>;
}

/** Creates forks of a run, and drives those that have something to do to their ends. */
export async function forkAgent(station: LocalStation, options: ForkAgentOptions) {
  const { runs } = station.verbs;
  const { run, at, count, text, name, labels, model, budgets, signal } = options;
  await station.recoverRewinds();
  const request = {
    by: "program",
    ...defined({ at, count, text, name, budgets, model: nameOf(model) }),
    ...(labels && { labels: { ...labels } }),
  };
  const forks = await runs.fork(run, request, defined({ signal }));
  const outcomeOf = async (view: RunView) =>
    view.paused?.why === "forked" ? null : await followToEnd(runs, view, { ...options, fromSeq: (view.forked?.seq ?? 0) + 1 });
  return await Promise.all(forks.map(async (view) => ({ run: view.run, session: view.session, outcome: await outcomeOf(view) })));
}

/** Takes a run back to a step. */
export async function rewindAgent(station: LocalStation, { run, to }: { run: string; to: number }) {
  await station.recoverRewinds();
  const { tail, files } = await station.verbs.runs.rewind(run, { to, by: "program" });
  return { run, tail, files };
}

const nameOf = <Named extends string | Model | undefined>(model: Named) =>
  (typeof model === "object" ? model.name : model) as string | Extract<Named, undefined>;

async function followToEnd(runs: RunVerbs, view: RunView, options: Pick<ProgramOptions, "onRunEvent"> & { fromSeq: number }) {
  const { run, session } = view;
  const waiting = runs.wait(run);
  // If waiting for the run fails, the event stream ends as well.
  const over = new AbortController();
  waiting.catch(() => over.abort());
  let text = "";
  for await (const { seq: _, ...event } of runs.events(run, { fromSeq: options.fromSeq, follow: true, signal: over.signal })) {
    options.onRunEvent?.(event);
    if (event.type === "run.ended") text = event.data.text;
  }
  const { finish, steps, usage, costUsd } = await waiting;
  if (finish === null) throw new CaissonError("internal", `the run ${run} stopped without an end event`);
  return { run, session, reason: finish, text, steps, usage, costUsd };
}
