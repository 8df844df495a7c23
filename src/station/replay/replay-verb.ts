import type { Model } from "../../agent/model/model.ts";
import type { RecordedEvent } from "../../agent/replay/replay-items.ts";
import { type ReplayOutcome, replayRun } from "../../agent/replay/replay-run.ts";
import { AgentDefinition } from "../../contract/agent/agent.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import { parseModelName } from "../../contract/model/model-name.ts";
import type { RunEvent } from "../../contract/run/run-event.ts";
import { type ReplayEvent, ReplayRun, type ReplayRunInput } from "../../contract/run/run-replay.ts";
import { streamOf } from "../../lib/stream-of.ts";
import type { Log } from "../../log/log.ts";
import type { ModelTape } from "../runs/start-run.ts";
import { ignoringLines } from "./ignored-lines.ts";
import { createLiveTools } from "./live-tools.ts";
import { inOfflineFork, type OfflineFork, type OfflineForkOptions } from "./offline-fork.ts";
import { readRecording } from "./read-recording.ts";

/** Where no model is asked, this stands for the folder of its recordings. */
const NO_FOLDER = "/nonexistent";

export interface ReplayVerbOptions extends OfflineForkOptions {
  log: Log;
  model: (name: string, tape: ModelTape) => Promise<Model>;
  /** Starts a run with the conversation and the files of this one after a step. */
  forkAt: (run: string, step: number, options: { labels: Readonly<Record<string, string>> }) => Promise<{ run: string }>;
}

/** The label of a sandbox in which tools run again: the run. */
const REPLAY_LABEL = "caisson.replay";
/** The label of a run that continues a replay: the run that was replayed. */
const FORK_LABEL = "replay-of";

type Tell = (event: ReplayEvent) => void;

/** See `RunVerbs.replay`. */
export function replayVerb(
  run: string,
  input: ReplayRunInput & { signal?: AbortSignal },
  options: ReplayVerbOptions,
): AsyncGenerator<ReplayEvent> {
  return streamOf<ReplayEvent>(async (tell, left) => {
    const { signal, ...rest } = input;
    const request = parseRequest(ReplayRun, rest, "a replay");
    const replay = { run, request, events: await readRecording(options.log, run), signal: signal ? AbortSignal.any([signal, left]) : left };
    await (request.tools === "live" ? replayLive(replay, options, tell) : replayRecorded(replay, options, tell));
  });
}

interface Replay {
  run: string;
  request: ReplayRun;
  events: readonly RecordedEvent[];
  signal: AbortSignal;
}

async function replayRecorded(
  { request: { ignore, keep, liveFrom }, ...replay }: Replay,
  options: ReplayVerbOptions,
  tell: Tell,
): Promise<void> {
  if (ignore.length > 0 || keep) throw new CaissonError("invalid", "without live tools there is nothing to ignore or to keep");
  const { run } = replay;
  const fork = liveFrom === undefined ? null : forkOf(liveFrom, replay, options);
  const steps = tellSteps((step) => tell({ step: { step, calls: [] } }));
  const onStep = (step: number) => (liveFrom !== undefined && step > liveFrom ? steps.end() : steps.begin(step));
  const outcome = await replayRun({ ...replay, contextTokens: contextTokensOf(options), live: null, onStep, onForeign: () => {} });
  if (outcome.difference === null) steps.end();
  const result = resultOf(run, "recorded", outcome);
  tell({ result: { ...result, fork: fork === null || !result.isSame ? null : (await fork()).run } });
}

/** Checks that the run can continue live after a step, before it is replayed up to there. */
function forkOf(
  step: number,
  { run, events }: Pick<Replay, "run" | "events">,
  { forkAt }: ReplayVerbOptions,
): () => Promise<{ run: string }> {
  const last = events.findLast(({ event }) => event.type === "step.started")?.event;
  const steps = last?.type === "step.started" ? last.data.step : 0;
  if (step > steps) throw new CaissonError("not_found", `the run ${run} has no step ${step}`, { hint: `It took ${steps} steps.` });
  return () => forkAt(run, step, { labels: { [FORK_LABEL]: run } });
}

async function replayLive({ request, ...replay }: Replay, options: ReplayVerbOptions, tell: Tell): Promise<void> {
  const { run, events, signal } = replay;
  if (request.liveFrom !== undefined) throw new CaissonError("invalid", "a run continues live after recorded tools, not after live ones");
  const { definition, session } = startOf(run, events);
  // The files from before the first turn.
  const from = { session: await options.sessions.get(session), at: { run, step: 0 } };
  const about = { from, run, definition, labels: { [REPLAY_LABEL]: run }, keep: request.keep };
  const lines = ignoringLines(request.ignore);
  tell({ progress: "Copying the files that the run began with" });
  const notice = (progress: string) => tell({ progress });
  await inOfflineFork({ ...about, notice }, options, async (place) => {
    const live = createLiveTools({ ...callsOf(events), sandbox: () => place.sandbox(), lines, signal });
    const steps = tellSteps((step) => tell({ step: { step, calls: live.takeCalls() } }));
    const renewal = createRenewal(place);
    const goneAt = stepOfLoss(events);
    const outcome = await replayRun({
      ...replay,
      contextTokens: contextTokensOf(options),
      live: { runTool: live.runTool, sandbox: renewal.sandbox },
      onStep: (step) => (live.drift.length > 0 || step === goneAt ? steps.end() : steps.begin(step)),
      onForeign: renewal.onForeign,
    });
    if (outcome.difference === null) steps.end();
    const result = resultOf(run, "live", outcome);
    if (goneAt !== null) result.notCompared.push(`steps from ${goneAt} on: the sandbox of the run died there, with its files`);
    const isSame = result.isSame && live.drift.length === 0;
    tell({ result: { ...result, isSame, drift: [...live.drift], session: request.keep ? place.session : null } });
  });
}

/** Tells each step once it is over, which is when the next one begins. Both return whether the replay continues. */
function tellSteps(tellStep: (step: number) => void): { begin: (step: number) => boolean; end: () => boolean } {
  let current = 0;
  const end = () => {
    if (current > 0) tellStep(current);
    current = 0;
    return false;
  };
  return {
    end,
    begin(step) {
      end();
      current = step;
      return true;
    },
  };
}

function resultOf(run: string, tools: "recorded" | "live", outcome: ReplayOutcome) {
  const { steps, events, difference, notCompared } = outcome;
  const isSame = difference === null;
  return { run, tools, steps, events, isSame, difference, drift: [], notCompared: [...notCompared], session: null, fork: null };
}

/** A run works in a new sandbox after each turn, and so does its replay. */
function createRenewal(place: OfflineFork) {
  let known: string | null = null;
  let renewing: Promise<void> = Promise.resolve();
  return {
    async sandbox() {
      await renewing;
      return await place.sandbox();
    },
    onForeign(event: RunEvent) {
      if (event.type !== "run.sandboxed") return;
      if (known !== null && known !== event.data.sandbox) renewing = renewing.then(() => place.renew());
      known = event.data.sandbox;
    },
  };
}

/** Returns the step in which the run lost its files, which cannot be repeated; null if it lost none. */
function stepOfLoss(events: readonly RecordedEvent[]): number | null {
  let step = 0;
  for (const { event } of events) {
    if (event.type === "step.started") step = event.data.step;
    if (event.type === "run.sandboxed" && event.data.files === "gone") return Math.max(step, 1);
  }
  return null;
}

function startOf(run: string, events: readonly RecordedEvent[]): { definition: AgentDefinition; session: string } {
  const created = events[0]?.event;
  if (created?.type !== "run.created") throw new CaissonError("gone", `the recording of ${run} does not begin with its creation`);
  return { definition: AgentDefinition.parse(created.data.agent.definition), session: created.data.session };
}

function callsOf(events: readonly RecordedEvent[]) {
  const files = new Map<string, string[]>();
  const steps = new Map<string, number>();
  for (const { event } of events) {
    if (event.type === "tool.requested") steps.set(event.data.call, event.data.step);
    if (event.type !== "file.changed") continue;
    const { call, kind, path } = event.data;
    files.set(call, [...(files.get(call) ?? []), `${kind} ${path}`]);
  }
  return { filesOf: (call: string) => files.get(call) ?? [], stepOf: (call: string) => steps.get(call) ?? 1 };
}

/** The size of a model's context is known without the model, except that of a script. */
function contextTokensOf({ model }: Pick<ReplayVerbOptions, "model">): (name: string) => Promise<number> {
  return async (name) => {
    const isScript = parseModelName(name)?.kind !== "provider";
    const opened = isScript ? await model(name, {}).catch(ifUnusable) : null;
    return (opened ?? (await model(name, { replay: NO_FOLDER }))).contextTokens;
  };
}

function ifUnusable(error: unknown): null {
  if (error instanceof CaissonError) return null;
  throw error;
}
