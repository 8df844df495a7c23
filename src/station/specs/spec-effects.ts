import { CaissonError } from "../../contract/error/error.ts";
import type { FinishReason } from "../../contract/outcome.ts";
import type { StartRunInput } from "../../contract/run/run-verbs.ts";
import type { Judgement, SpecData, WrittenPhase } from "../../contract/spec/spec.ts";
import type { NewSpecEvent } from "../../contract/spec/spec-event.ts";
import type { SpecRuns } from "../../contract/spec/spec-verbs.ts";
import { unreachable } from "../../lib/unreachable.ts";
import type { Station } from "../../verbs/station.ts";
import type { Effect } from "../durable/kind.ts";
import { evaluators } from "./evaluators.ts";
import { judgeNoAnswer, judgeOutput } from "./phase-output.ts";

/** The pause after the nth attempt of a phase is this, times two to the n. */
const BACKOFF_MS = 1000;
/** How many changed files of a task we record. */
const CHANGED_MAX = 1000;
const TEXT_CHARACTERS_MAX = 10_000;
/** The label by which we find the run of an intent. */
export const SPEC_KEY_LABEL = "spec-key";

type Attempt = { phase: WrittenPhase; attempt: number; inRound: number };

/** An effect on runs or merges, with everything needed to perform it. */
export type SpecEffect = Effect & { owner: string } & (
    | { kind: "runPhase"; attempt: Attempt; key: string; start: StartRunInput }
    | { kind: "judgePhase"; attempt: Attempt; run: string; data: SpecData; version: number }
    | { kind: "runTask"; task: string; key: string; start: StartRunInput }
    | { kind: "awaitTask"; task: string; run: string; session: string | null; changedBefore: readonly string[] }
    | { kind: "runMerge"; step: number; request: MergeRequest }
    | { kind: "awaitMerge"; step: number; merge: string }
  );

export interface MergeRequest {
  /** The unique key by which the merge is found again. */
  key: string;
  sessions: readonly string[];
  owner: string;
  /** The stream of the spec, which is notified of the merge's end. */
  parent: string;
  runs: SpecRuns;
}

/** Merges the work of several sessions into one. */
export interface SpecMerges {
  /** Returns the merge with this key, or starts it. */
  start(request: MergeRequest): Promise<string>;
  /** Returns the result of a finished merge; `session` is null if it produced none. */
  result(merge: string): Promise<{ session: string | null; text: string }>;
  cancel(merge: string, options: { by: string }): Promise<void>;
  /** Returns the merge's stream, in which its end is recorded. */
  streamOf(merge: string): string;
}

export interface SpecEffectParts {
  runs: Station["runs"];
  sessions: Station["sessions"];
  merges: SpecMerges;
  now: () => number;
}

/** Performs an effect and returns the resulting events. Performed again, it finds the existing run or merge. */
export async function performSpecEffect(effect: SpecEffect, parts: SpecEffectParts): Promise<NewSpecEvent[]> {
  if (effect.cancel === true) return await cancelEffect(effect, parts);
  switch (effect.kind) {
    case "runPhase": {
      const { run } = await begin(effect, parts);
      return [{ type: "spec.phase_running", data: { phase: effect.attempt.phase, attempt: effect.attempt.attempt, run } }];
    }
    case "judgePhase":
      return await judgePhase(effect, parts);
    case "runTask": {
      const { run, session } = await begin(effect, parts);
      return [{ type: "spec.task_running", data: { task: effect.task, run, session } }];
    }
    case "awaitTask":
      return await endTask(effect, parts);
    case "runMerge":
      return [{ type: "spec.merge_running", data: { step: effect.step, merge: await parts.merges.start(effect.request) } }];
    case "awaitMerge": {
      const { session, text } = await parts.merges.result(effect.merge);
      return [mergeEnded(effect.step, { session, text })];
    }
    default:
      return unreachable(effect);
  }
}

/** Returns the events for an effect that cannot be performed. */
export function failedSpecEffect(effect: SpecEffect, why: string, now: () => number): NewSpecEvent[] {
  switch (effect.kind) {
    case "runPhase":
    case "judgePhase": {
      const run = effect.kind === "judgePhase" ? effect.run : null;
      return [judgedEvent(effect.attempt, { judgement: judgeNoAnswer(effect.attempt.phase, why), run }, now)];
    }
    case "runTask":
    case "awaitTask":
      return [taskEnded(effect, { finish: "error", text: why })];
    case "runMerge":
    case "awaitMerge":
      return [mergeEnded(effect.step, { session: null, text: why })];
    default:
      return unreachable(effect);
  }
}

async function judgePhase(effect: Extract<SpecEffect, { kind: "judgePhase" }>, parts: SpecEffectParts): Promise<NewSpecEvent[]> {
  const { attempt, run, version } = effect;
  const { phase } = attempt;
  const { finish, text } = await lastWords(run, parts);
  if (finish !== "done") {
    const judgement = judgeNoAnswer(phase, `its run ended with ${finish}: ${text.slice(0, 500)}`);
    return [judgedEvent(attempt, { judgement, run }, parts.now)];
  }
  const { judgement, data } = judgeOutput(phase, text, effect.data);
  const event = judgedEvent(attempt, { judgement, run }, parts.now);
  if (!judgement.passed || data === null) return [event];
  // We append both at once, so that a phase that passed is always written.
  const content = { phase, data } as Extract<NewSpecEvent, { type: "spec.written" }>["data"]["content"];
  return [event, { type: "spec.written", data: { version, by: { kind: "run", run }, content } }];
}

function judgedEvent(
  { phase, attempt, inRound }: Attempt,
  { judgement, run }: { judgement: Judgement; run: string | null },
  now: () => number,
): NewSpecEvent {
  const isLast = inRound >= evaluators[phase].attempts;
  const retryAt = judgement.passed || isLast ? null : new Date(now() + BACKOFF_MS * 2 ** inRound).toISOString();
  return { type: "spec.phase_judged", data: { phase, attempt, run, judgement, retryAt } };
}

async function endTask(effect: Extract<SpecEffect, { kind: "awaitTask" }>, parts: SpecEffectParts): Promise<NewSpecEvent[]> {
  const { finish, text, edited } = await lastWords(effect.run, parts);
  return [taskEnded(effect, { finish, text, changed: await changedBy(effect, edited, parts) })];
}

/**
 * Returns the files that a task changed: the session's changes, minus those of earlier tasks, unless the run's own
 * events show that it edited them.
 */
async function changedBy(
  { session, changedBefore }: Extract<SpecEffect, { kind: "awaitTask" }>,
  edited: readonly string[],
  { sessions }: SpecEffectParts,
): Promise<string[]> {
  if (session === null) return [];
  const paths = (await sessions.diff(session)).files.map(({ path }) => path);
  return paths.filter((path) => !changedBefore.includes(path) || edited.includes(path)).sort();
}

function taskEnded(
  effect: Extract<SpecEffect, { kind: "runTask" | "awaitTask" }>,
  { finish, text, changed = [] }: { finish: FinishReason; text: string; changed?: readonly string[] },
): NewSpecEvent {
  const run = effect.kind === "awaitTask" ? effect.run : null;
  const paths = changed.slice(0, CHANGED_MAX);
  const data = {
    task: effect.task,
    run,
    finish,
    text: text.slice(0, TEXT_CHARACTERS_MAX),
    changed: paths,
    changedMore: changed.length > paths.length,
  };
  return { type: "spec.task_ended", data };
}

function mergeEnded(step: number, { session, text }: { session: string | null; text: string }): NewSpecEvent {
  return { type: "spec.merge_ended", data: { step, session, text: text.slice(0, TEXT_CHARACTERS_MAX) } };
}

/** Returns the run of an intent, or starts it. */
async function begin(
  { owner, key, start }: Extract<SpecEffect, { kind: "runPhase" | "runTask" }>,
  { runs }: SpecEffectParts,
): Promise<{ run: string; session: string }> {
  return (await runOf({ owner, key }, { runs })) ?? (await runs.start(start, { owner }));
}

async function runOf({ owner, key }: { owner: string; key: string }, { runs }: Pick<SpecEffectParts, "runs">) {
  const { runs: found } = await runs.list({ owner, label: [`${SPEC_KEY_LABEL}=${key}`], limit: 1 });
  return found[0] ?? null;
}

/** Returns how a run ended, its last message, and the files that it edited. */
async function lastWords(run: string, { runs }: SpecEffectParts): Promise<{ finish: FinishReason; text: string; edited: string[] }> {
  const { finish } = await runs.get(run);
  let text = "";
  const edited = new Set<string>();
  for await (const event of runs.events(run)) {
    if (event.type === "run.ended") text = event.data.text;
    if (event.type === "file.changed") edited.add(event.data.path);
  }
  return { finish: finish ?? "error", text, edited: [...edited] };
}

async function cancelEffect(effect: SpecEffect, parts: SpecEffectParts): Promise<NewSpecEvent[]> {
  const by = "its spec";
  const run = "run" in effect ? effect.run : "key" in effect ? (await runOf(effect, parts))?.run : undefined;
  if (run !== undefined) await parts.runs.stop(run, { by }).catch(ifOver);
  if (effect.kind === "awaitMerge") await parts.merges.cancel(effect.merge, { by }).catch(ifOver);
  if (effect.kind === "runTask" || effect.kind === "awaitTask")
    return [taskEnded(effect, { finish: "cancelled", text: "cancelled with its spec" })];
  return failedSpecEffect(effect, "it was cancelled", parts.now);
}

function ifOver(error: unknown): void {
  if (!(error instanceof CaissonError) || (error.code !== "conflict" && error.code !== "not_found")) throw error;
}
