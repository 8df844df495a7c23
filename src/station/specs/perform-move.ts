import { CaissonError } from "../../contract/error.ts";
import type { FinishReason } from "../../contract/run.ts";
import type { StartRunInput } from "../../contract/run-verbs.ts";
import type { Judgement } from "../../contract/spec.ts";
import type { NewSpecEvent } from "../../contract/spec-event.ts";
import type { SpecRuns } from "../../contract/spec-verbs.ts";
import { unreachable } from "../../lib/unreachable.ts";
import type { Station } from "../station.ts";
import { openRuns, type SpecMove } from "./decide-spec.ts";
import { evaluators } from "./evaluators.ts";
import { judgeNoAnswer, judgeOutput } from "./phase-output.ts";
import { phaseTask, workTask } from "./phase-task.ts";
import { dataOf, lastVersion, type PhaseAttempt, type SpecState, type TaskState } from "./spec-state.ts";

/** The pause after the nth attempt of a phase: this much, times two to the n. */
const BACKOFF_MS = 1000;
/** What a task changed, as far as it is put down. */
const CHANGED_MAX = 1000;
const TEXT_CHARACTERS_MAX = 10_000;
/** Finds the run of an intent again. */
export const SPEC_KEY_LABEL = "spec-key";
export const SPEC_LABEL = "spec";

export interface PerformParts {
  runs: Station["runs"];
  sessions: Station["sessions"];
  merges: SpecMerges;
  now: () => number;
}

/** How the work of several sessions becomes one; a merge is found again by its key. */
export interface SpecMerges {
  start(request: { key: string; sessions: readonly string[]; owner: string; runs: SpecRuns }): Promise<{ merge: string }>;
  /** Resolves when it has ended; `session` is null when nothing came of it. */
  wait(merge: string, options: { signal: AbortSignal }): Promise<{ session: string | null; text: string }>;
  cancel(merge: string): Promise<void>;
}

/** Makes one move of a spec, and resolves with what has become true by it. Asking for the same one again is harmless. */
export async function performMove(
  state: SpecState,
  move: SpecMove,
  parts: PerformParts & { signal: AbortSignal },
): Promise<NewSpecEvent[]> {
  switch (move.kind) {
    case "startPhase": {
      const { phase, attempt, key, feedback } = move;
      return [{ type: "spec.phase_started", data: { phase, attempt, key, feedback } }];
    }
    case "startTask":
      return [{ type: "spec.task_started", data: { task: move.task.id, attempt: move.attempt, key: move.key } }];
    case "startMerge":
      return [{ type: "spec.merge_started", data: { step: move.step, key: move.key, sessions: move.sessions } }];
    case "runPhase":
      return await runPhase(state, move.attempt, parts);
    case "judgePhase":
      return await judgePhase(state, move, parts);
    case "runTask":
      return await runTask(state, move, parts);
    case "awaitTask":
      return await awaitTask(state, move, parts);
    case "runMerge": {
      const { step, key, sessions } = move.merge;
      const { merge } = await parts.merges.start({ key, sessions, owner: state.owner, runs: state.runs as SpecRuns });
      return [{ type: "spec.merge_running", data: { step, merge } }];
    }
    case "awaitMerge": {
      const { session, text } = await parts.merges.wait(move.id, parts);
      return [{ type: "spec.merge_ended", data: { step: move.merge.step, session, text: text.slice(0, TEXT_CHARACTERS_MAX) } }];
    }
    case "end":
      if (move.outcome === "cancelled") await stopAll(state, parts);
      return [{ type: "spec.ended", data: { outcome: move.outcome, text: move.text, session: move.session } }];
    case "sleep":
    case "ask":
      return [];
    default:
      return unreachable(move);
  }
}

async function runPhase(state: SpecState, own: PhaseAttempt, parts: PerformParts): Promise<NewSpecEvent[]> {
  const { phase, attempt, key, feedback } = own;
  const task = phaseTask({ phase, attempt, idea: state.idea, data: dataOf(state), feedback });
  const begun = await begin({ state, key, task, agent: "planner", session: null }, parts);
  if ("run" in begun) return [{ type: "spec.phase_running", data: { phase, attempt, run: begun.run } }];
  return [judged(own, { judgement: judgeNoAnswer(phase, `its run did not begin: ${begun.problem}`), run: null }, parts)];
}

async function judgePhase(
  state: SpecState,
  { attempt: own, run }: Extract<SpecMove, { kind: "judgePhase" }>,
  parts: PerformParts & { signal: AbortSignal },
): Promise<NewSpecEvent[]> {
  const { phase } = own;
  const { finish, text } = await lastWords(run, parts);
  if (finish !== "done") {
    const judgement = judgeNoAnswer(phase, `its run ended with ${finish}: ${text.slice(0, 500)}`);
    return [judged(own, { judgement, run }, parts)];
  }
  const { judgement, data } = judgeOutput(phase, text, dataOf(state));
  const event = judged(own, { judgement, run }, parts);
  if (!judgement.passed || data === null) return [event];
  // One append: a phase that passed is written.
  const content = { phase, data } as Extract<NewSpecEvent, { type: "spec.written" }>["data"]["content"];
  return [event, { type: "spec.written", data: { version: lastVersion(state) + 1, by: { kind: "run", run }, content } }];
}

function judged(own: PhaseAttempt, { judgement, run }: { judgement: Judgement; run: string | null }, { now }: PerformParts): NewSpecEvent {
  const { phase, attempt, inRound } = own;
  const isLast = inRound >= evaluators[phase].attempts;
  const retryAt = judgement.passed || isLast ? null : new Date(now() + BACKOFF_MS * 2 ** inRound).toISOString();
  return { type: "spec.phase_judged", data: { phase, attempt, run, judgement, retryAt } };
}

async function runTask(
  state: SpecState,
  { task, state: own, session }: Extract<SpecMove, { kind: "runTask" }>,
  parts: PerformParts,
): Promise<NewSpecEvent[]> {
  const begun = await begin(
    { state, key: own.key, task: workTask({ task, idea: state.idea, data: dataOf(state) }), agent: "coder", session },
    parts,
  );
  if ("run" in begun) return [{ type: "spec.task_running", data: { task: task.id, run: begun.run, session: begun.session } }];
  const text = `its run did not begin: ${begun.problem}`;
  return [{ type: "spec.task_ended", data: { task: task.id, run: null, finish: "error", text, changed: [], changedMore: false } }];
}

async function awaitTask(
  state: SpecState,
  { state: own, run }: Extract<SpecMove, { kind: "awaitTask" }>,
  parts: PerformParts & { signal: AbortSignal },
): Promise<NewSpecEvent[]> {
  const { finish, text, edited } = await lastWords(run, parts);
  const { changed, changedMore } = await changedBy(state, { own, edited }, parts);
  const data = { task: own.task, run, finish, text: text.slice(0, TEXT_CHARACTERS_MAX), changed, changedMore };
  return [{ type: "spec.task_ended", data }];
}

/** What its session differs in, without what earlier tasks had changed in it, and what its run says that it edited. */
async function changedBy(state: SpecState, { own, edited }: { own: TaskState; edited: readonly string[] }, { sessions }: PerformParts) {
  const before = new Set(
    state.tasks.filter(({ task, session }) => task !== own.task && session === own.session).flatMap(({ changed }) => changed),
  );
  const diff = own.session === null ? { files: [] } : await sessions.diff(own.session);
  const paths = diff.files.map(({ path }) => path);
  const inDiff = new Set(paths);
  const all = [...new Set([...paths.filter((path) => !before.has(path)), ...edited.filter((path) => inDiff.has(path))])].sort();
  return { changed: all.slice(0, CHANGED_MAX), changedMore: all.length > CHANGED_MAX };
}

type Begun = { run: string; session: string } | { problem: string };

/** The run of an intent: the one that is there, or a new one. What cannot be started now or ever is said. */
async function begin(
  asked: { state: SpecState; key: string; task: string; agent: "planner" | "coder"; session: string | null },
  { runs }: PerformParts,
): Promise<Begun> {
  const { state, key, task, session } = asked;
  const { owner, spec, source } = state;
  const [there] = (await runs.list({ owner, label: [`${SPEC_KEY_LABEL}=${key}`], limit: 1 })).runs;
  if (there !== undefined) return there;
  const { model, settings, budgets, ...agents } = state.runs as SpecRuns;
  const agent = agents[asked.agent];
  const request: StartRunInput = {
    ...{ task, settings, budgets, labels: { [SPEC_LABEL]: spec, [SPEC_KEY_LABEL]: key } },
    ...(model !== undefined && { model }),
    ...(agent !== undefined && { agent }),
    ...(session === null ? { source: source ?? { kind: "empty" } } : { session: { id: session } }),
  };
  try {
    return await runs.start(request, { owner });
  } catch (error) {
    // For now: the driver tries again later.
    if (!(error instanceof CaissonError) || error.retryable) throw error;
    return { problem: [error.message, error.hint].filter((each) => each !== undefined).join(". ") };
  }
}

/** How a run ended, what it said last, and the files that it edited. Goes on with one that nobody drives. */
async function lastWords(
  run: string,
  { runs, signal }: PerformParts & { signal: AbortSignal },
): Promise<{ finish: FinishReason; text: string; edited: string[] }> {
  const { status } = await runs.get(run);
  if (status === "interrupted") await runs.resume(run, { by: "its spec" });
  const { finish } = await runs.wait(run, { signal });
  if (finish === null) throw new CaissonError("unavailable", `the run ${run} has not ended`);
  let text = "";
  const edited = new Set<string>();
  for await (const event of runs.events(run)) {
    if (event.type === "run.ended") text = event.data.text;
    if (event.type === "file.changed") edited.add(event.data.path);
  }
  return { finish, text, edited: [...edited] };
}

async function stopAll(state: SpecState, { runs, merges }: PerformParts): Promise<void> {
  for (const run of openRuns(state)) await runs.stop(run, { by: "its spec" }).catch(ifOver);
  for (const { merge, session } of state.merges) if (merge !== null && session === undefined) await merges.cancel(merge).catch(ifOver);
}

function ifOver(error: unknown): void {
  if (!(error instanceof CaissonError) || (error.code !== "conflict" && error.code !== "not_found")) throw error;
}
