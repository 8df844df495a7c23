import { CaissonError } from "../../contract/error.ts";
import type { FinishReason } from "../../contract/run.ts";
import type { StartRunInput } from "../../contract/run-verbs.ts";
import type { Judgement, SpecData, WrittenPhase } from "../../contract/spec.ts";
import type { NewSpecEvent } from "../../contract/spec-event.ts";
import type { SpecRuns } from "../../contract/spec-verbs.ts";
import { unreachable } from "../../lib/unreachable.ts";
import type { Effect } from "../driven/kind.ts";
import type { Station } from "../station.ts";
import { evaluators } from "./evaluators.ts";
import { judgeNoAnswer, judgeOutput } from "./phase-output.ts";

/** The pause after the nth attempt of a phase: this much, times two to the n. */
const BACKOFF_MS = 1000;
/** What a task changed, as far as it is put down. */
const CHANGED_MAX = 1000;
const TEXT_CHARACTERS_MAX = 10_000;
/** Finds the run of an intent again. */
export const SPEC_KEY_LABEL = "spec-key";

type Attempt = { phase: WrittenPhase; attempt: number; inRound: number };

/** What is done outside for a spec, with everything that is needed for it. */
export type SpecEffect = Effect & { owner: string } & (
    | { kind: "runPhase"; attempt: Attempt; key: string; start: StartRunInput }
    | { kind: "judgePhase"; attempt: Attempt; run: string; data: SpecData; version: number }
    | { kind: "runTask"; task: string; key: string; start: StartRunInput }
    | { kind: "awaitTask"; task: string; run: string; session: string | null; changedBefore: readonly string[] }
    | { kind: "runMerge"; step: number; request: MergeRequest }
    | { kind: "awaitMerge"; step: number; merge: string }
  );

export interface MergeRequest {
  /** Finds it again. */
  key: string;
  sessions: readonly string[];
  owner: string;
  /** The stream of the spec, which is told of its end. */
  parent: string;
  runs: SpecRuns;
}

/** How the work of several sessions becomes one. */
export interface SpecMerges {
  /** The one of this key, or a new one. */
  start(request: MergeRequest): Promise<string>;
  /** Of one that is over; `session` is null when nothing came of it. */
  result(merge: string): Promise<{ session: string | null; text: string }>;
  cancel(merge: string, options: { by: string }): Promise<void>;
  /** Of its log, where its end is heard of. */
  streamOf(merge: string): string;
}

export interface SpecEffectParts {
  runs: Station["runs"];
  sessions: Station["sessions"];
  merges: SpecMerges;
  now: () => number;
}

/** Does what was decided, and gives what came of it. Asked for again, it finds what is there. */
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

/** What an effect comes to that cannot be done. */
export function failedSpecEffect(effect: SpecEffect, why: string, now: () => number): NewSpecEvent[] {
  switch (effect.kind) {
    case "runPhase":
    case "judgePhase": {
      const run = effect.kind === "judgePhase" ? effect.run : null;
      return [judged(effect.attempt, { judgement: judgeNoAnswer(effect.attempt.phase, why), run }, now)];
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
    return [judged(attempt, { judgement, run }, parts.now)];
  }
  const { judgement, data } = judgeOutput(phase, text, effect.data);
  const event = judged(attempt, { judgement, run }, parts.now);
  if (!judgement.passed || data === null) return [event];
  // One append: a phase that passed is written.
  const content = { phase, data } as Extract<NewSpecEvent, { type: "spec.written" }>["data"]["content"];
  return [event, { type: "spec.written", data: { version, by: { kind: "run", run }, content } }];
}

function judged(
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
 * What its session differs in, without what earlier tasks had changed in it, but for what its run says that it edited.
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
  const kept = changed.slice(0, CHANGED_MAX);
  const data = {
    task: effect.task,
    run,
    finish,
    text: text.slice(0, TEXT_CHARACTERS_MAX),
    changed: kept,
    changedMore: changed.length > kept.length,
  };
  return { type: "spec.task_ended", data };
}

function mergeEnded(step: number, { session, text }: { session: string | null; text: string }): NewSpecEvent {
  return { type: "spec.merge_ended", data: { step, session, text: text.slice(0, TEXT_CHARACTERS_MAX) } };
}

/** The run of an intent: the one that is there, or a new one. */
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

/** How a run ended, what it said last, and the files that it edited. */
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
