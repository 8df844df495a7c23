import { setTimeout as delay } from "node:timers/promises";
import type { Model } from "../../agent/model/model.ts";
import { AttemptRun } from "../../contract/best/best-verbs.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { EFFECT_LABEL, JOB_LABEL } from "../../contract/label/station-labels.ts";
import { defined } from "../../lib/defined.ts";
import type { Station } from "../../verbs/station.ts";
import { inOfflineFork, type OfflineForkOptions } from "../replay/offline-fork.ts";
import type { Runs } from "../runs/runs.ts";
import { appendUnowned } from "../vocabulary/append-unowned.ts";
import { lowerBudgets } from "./best-budget.ts";
import type { BestContext, BestWork } from "./best-kind.ts";
import { bestKindFacts } from "./best-kind-facts.ts";
import type { AttemptState, BestState } from "./best-state.ts";
import { candidatesOf, rankOf } from "./decide-best.ts";
import { askBestJudge, type Candidate } from "./judge-attempts.ts";
import { runGrader } from "./run-grader.ts";

/** The labels of an attempt's run: the best-of, and the place that it got. */
const BEST_LABEL = "best";
const ATTEMPT_LABEL = "best-attempt";
const PLACE_LABEL = "best-place";
const STORED_MS_MAX = 60_000;
const STORED_POLL_MS = 50;
const JUDGE_MS_MAX = 10 * 60_000;
const DIFF_CHARACTERS_MAX = 200_000;

/** Starts a run with the conversation and the files of another after a step. */
export type ForkRun = (
  from: { run: string; step: number | null; send: string | null },
  options: { model: string | undefined; labels: Readonly<Record<string, string>>; budgets: AttemptState["budgets"] },
) => Promise<{ run: string; session: string }>;

export interface BestWorkOptions extends OfflineForkOptions {
  station: Pick<Station, "runs" | "sessions">;
  runs: Pick<Runs, "state">;
  model: (name: string) => Promise<Model>;
  forkRun: ForkRun;
}

export function createBestWork(options: BestWorkOptions): BestWork {
  const { station, sessions } = options;
  return {
    async start(state, attempt, context) {
      const own = { [JOB_LABEL]: `${bestKindFacts.prefix}${context.id}`, [EFFECT_LABEL]: context.effect };
      const labels = { [BEST_LABEL]: context.id, [ATTEMPT_LABEL]: String(attempt.attempt) };
      const filters = Object.entries(state.source.kind === "run" ? labels : own).map(([key, value]) => `${key}=${value}`);
      const [known] = (await station.runs.list({ owner: context.owner, label: filters, limit: 1 })).runs;
      if (known === undefined) return await startAttempt(state, attempt, { ...context, labels, own }, options);
      if (state.source.kind === "run") await connect(known.run, own, options);
      // A fork that was created but not started waits for this.
      if (known.status !== "ended") await station.runs.resume(known.run, { by: "best", reopens: false }).catch(ifOver);
      return { run: known.run, session: known.session };
    },
    async outcome(run, { isCancelled }) {
      if (isCancelled) await station.runs.stop(run, { by: "best" }).catch(ifOver);
      const { finish, steps, usage, costUsd, workedMs } = await station.runs.get(run);
      if (finish === null) throw new CaissonError("conflict", `the run ${run} has not ended`);
      return { finish, steps, tokens: usage.inputTokens + usage.outputTokens, costUsd, workedMs };
    },
    async grade({ grade, gradeTimeoutMs }, { run, session }, { id, signal }) {
      if (run === null || session === null || grade === null) throw new Error("there is nothing to grade");
      await untilReleased(run, session, { station, sessions, signal });
      const { definition } = await options.runs.state(run);
      const request = {
        from: { session: await sessions.get(session), at: null },
        ...{ definition, run, keep: false, notice: () => {} },
        labels: { [JOB_LABEL]: `${bestKindFacts.prefix}${id}` },
      };
      return await inOfflineFork(request, options, async (place) =>
        runGrader(await place.sandbox(), { command: grade, timeoutMs: gradeTimeoutMs, signal }),
      );
    },
    async judge(state, { signal }) {
      if (state.judge === null) throw new Error("there is no judge");
      const candidates: Candidate[] = [];
      for (const attempt of candidatesOf(state)) candidates.push(await candidateOf(attempt, station, signal));
      const within = AbortSignal.any([signal, AbortSignal.timeout(JUDGE_MS_MAX)]);
      return await askBestJudge({ task: state.task, candidates }, { model: await options.model(state.judge), signal: within });
    },
    async promote(state, winner) {
      const places = rankOf(state);
      const runOf = (attempt: number) => state.attempts.find((each) => each.attempt === attempt)?.run;
      // The winner comes last: then it is the newest run of its folder, which `diff` and `apply` mean.
      for (const { attempt, place } of places.filter((rank) => rank.attempt !== winner.attempt))
        await labelPlace(runOf(attempt) ?? "", place, station).catch(ifOver);
      await labelPlace(winner.run ?? "", 1, station);
    },
  };
}

const labelPlace = (run: string, place: number, { runs }: Pick<Station, "runs">) =>
  runs.label(run, { [PLACE_LABEL]: String(place) }, { by: "best" });

async function startAttempt(
  { source }: Readonly<BestState>,
  { model, budgets }: AttemptState,
  { owner, labels, own }: BestContext & Record<"labels" | "own", Readonly<Record<string, string>>>,
  { station, forkRun, log }: BestWorkOptions,
): Promise<{ run: string; session: string }> {
  const named = model ?? undefined;
  if (source.kind === "run") {
    const { run, session } = await forkRun(source, { model: named, labels, budgets });
    await connect(run, own, { log });
    return { run, session };
  }
  const start = AttemptRun.parse(source.start);
  const request = {
    ...start,
    ...defined({ model: named ?? start.model }),
    labels: { ...start.labels, ...labels, ...own },
    budgets: lowerBudgets(start.budgets, budgets),
  };
  const { run, session } = await station.runs.start(request, { owner });
  return { run, session };
}

/** The driver of a run that has ended still stores its files, in this process or another one. */
async function untilReleased(
  run: string,
  session: string,
  { station, sessions, signal }: Pick<BestWorkOptions, "station" | "sessions"> & { signal: AbortSignal },
): Promise<void> {
  await station.runs.wait(run, { signal });
  for (const startMs = performance.now(); ; await delay(STORED_POLL_MS, undefined, { signal })) {
    try {
      return await sessions.checkFree(session);
    } catch (error) {
      const isHeld = error instanceof CaissonError && error.code === "conflict";
      if (!isHeld || performance.now() - startMs > STORED_MS_MAX) throw error;
    }
  }
}

/** Makes a fork a child of the best-of, which its end then continues. A fork begins without labels of the station. */
const connect = (run: string, own: Readonly<Record<string, string>>, { log }: Pick<BestWorkOptions, "log">) =>
  appendUnowned(log, run, () => ({ type: "run.labelled", data: { by: "best", changes: { ...own } } }), { alsoEnded: true });

/** Returns what the judge sees of an attempt. */
async function candidateOf(
  attempt: AttemptState,
  { runs, sessions }: Pick<Station, "runs" | "sessions">,
  signal: AbortSignal,
): Promise<Candidate> {
  let diff = "";
  for await (const piece of sessions.patch(attempt.session ?? "", { signal })) {
    if ("text" in piece && typeof piece.text === "string") diff += piece.text;
    if (diff.length > DIFF_CHARACTERS_MAX) break;
  }
  let text = "";
  for await (const event of runs.events(attempt.run ?? "", { signal })) if (event.type === "run.ended") text = event.data.text;
  return {
    attempt: attempt.attempt,
    text,
    diff,
    grade: attempt.grade === null ? null : `exit code ${attempt.grade.exitCode}\n${attempt.grade.text}`,
  };
}

/** The run may have ended, or may have been removed. */
function ifOver(error: unknown): void {
  if (!(error instanceof CaissonError) || (error.code !== "conflict" && error.code !== "not_found")) throw error;
}
