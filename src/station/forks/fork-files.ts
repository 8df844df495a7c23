import { CaissonError } from "../../contract/error/error.ts";
import { isAtFork, type RunFacts } from "../../contract/run/run-facts.ts";
import type { Session } from "../../contract/session/session.ts";
import type { Log } from "../../log/log.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import { ifUnusable, type SessionStore } from "../../workspace/sessions.ts";
import type { StartRunOptions } from "../runs/start-run.ts";
import type { PlannedFork } from "../sessions/fork-session.ts";
import { headOfRun } from "../vocabulary/head-of-run.ts";
import { runStream } from "../vocabulary/station-names.ts";
import { readStepEnds, type StepEnd } from "./step-end.ts";

export interface ForkFilesOptions {
  log: Log;
  sessions: SessionStore;
  planFork: StartRunOptions["planFork"];
  /** Returns a runtime by name. */
  runtime: (name: string | undefined, ociRuntime?: string) => Promise<Runtime>;
}

/** A plan for a session with the files of a step. */
export interface ForkFiles extends PlannedFork {
  /** Throws `conflict` if the copied files may be later ones. Call it after the copy. */
  check: () => Promise<void>;
}

/**
 * Plans a session with the files of a run as they were after a step: from the run's own stored files, from those of the
 * run that it was forked from, or from its current files if nothing has changed them since. Throws `unsupported` if
 * they were not stored, `gone` if the session was removed.
 */
export async function planForkFiles(run: string, end: StepEnd, options: ForkFilesOptions): Promise<ForkFiles> {
  let failure: unknown = null;
  for (let from: string | null = run; from !== null; from = await sameStepInParent(from, end, options.log)) {
    try {
      return await planIn(from, end.step, options);
    } catch (error) {
      if (!(error instanceof CaissonError) || !["unsupported", "gone"].includes(error.code)) throw error;
      failure ??= error;
    }
  }
  throw failure;
}

async function planIn(run: string, step: number, options: ForkFilesOptions): Promise<ForkFiles> {
  const { log, sessions, planFork } = options;
  const { facts } = await headOfRun(log, run);
  if (!(await sessions.has(facts.session))) {
    throw new CaissonError("gone", `the session ${facts.session} of the run ${run} was removed, and its files with it`, {
      hint: 'Start another run: caisson run "…"',
    });
  }
  await checkKeepsFiles(await sessions.get(facts.session), options);
  try {
    return { ...(await planFork({ session: run, at: step })), check: async () => undefined };
  } catch (error) {
    if (!(error instanceof CaissonError) || error.code !== "unsupported" || !(await isStillAfter(run, { step, facts }, options)))
      throw error;
  }
  return { ...(await planFork({ session: run })), check: () => checkStillAfter(run, { step, facts }, options) };
}

/** Throws `unsupported` for a session whose runtime cannot copy its files, rather than fork it without them. */
export async function checkKeepsFiles({ id, runtime: name }: Session, { runtime: runtimeOf }: ForkFilesOptions): Promise<void> {
  if (name === null) return;
  const runtime = await runtimeOf(name);
  const { workspaceLayer, snapshot } = await runtime.capabilities();
  if (workspaceLayer || snapshot) return;
  throw new CaissonError("unsupported", `the files of the session ${id} cannot be copied: the runtime ${name} has no snapshots`, {
    hint: "Use a runtime that isolates; `caisson doctor` lists them.",
  });
}

async function checkStillAfter(run: string, then: { step: number; facts: RunFacts }, options: ForkFilesOptions): Promise<void> {
  if (await isStillAfter(run, then, options)) return;
  throw new CaissonError("conflict", `the run ${run} continued while its files were copied`, { hint: "Try again." });
}

/** Returns whether the session's current files are those after a step: its last one, and no other work came later. */
async function isStillAfter(
  run: string,
  { step, facts: before }: { step: number; facts: RunFacts },
  { log, sessions }: ForkFilesOptions,
): Promise<boolean> {
  const { facts } = await headOfRun(log, run);
  const isAtRest = facts.status === "ended" || isAtFork(facts);
  if (!isAtRest || facts.step !== step || facts.rewinding !== null || facts.rewinds !== before.rewinds) return false;
  const last = (await sessions.history(facts.session)).findLast(({ type }) => type === "session.run_started" || type === "session.undone");
  if (last === undefined) return true;
  if (last.type === "session.undone") return isAtFork(facts) && last.data.run === run;
  return last.type === "session.run_started" && last.data.run === run;
}

/** Returns the session and run from which a fork has a step; null if it took the step itself, or if they are gone. */
export async function originOfStep(
  at: { run: string; step: number },
  { log, sessions }: Pick<ForkFilesOptions, "log" | "sessions">,
): Promise<{ session: Session; run: string } | null> {
  const { ends } = await readStepEnds(log, at.run);
  const seq = ends[at.step];
  const run = typeof seq === "number" ? await sameStepInParent(at.run, { step: at.step, seq }, log) : null;
  if (run === null) return null;
  const session = await sessions.get((await headOfRun(log, run)).facts.session).catch(ifUnusable);
  return session === null ? null : { session, run };
}

/** Returns the run that a fork has this step from, if that run still exists and did not rewind it. */
async function sameStepInParent(run: string, { step, seq }: StepEnd, log: Log): Promise<string | null> {
  const { forked } = (await headOfRun(log, run)).facts;
  if (forked === null || step > forked.step || seq > forked.seq) return null;
  if ((await log.lastSeq(runStream(forked.run))) === 0) return null;
  return (await readStepEnds(log, forked.run)).ends[step] === seq ? forked.run : null;
}
