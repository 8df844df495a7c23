import { CaissonError } from "../../contract/error/error.ts";
import { runOf, runStream } from "../vocabulary/station-names.ts";
import { type StopRunOptions, stopRun } from "./stop-run.ts";

const RUNS_MAX = 1000;

/**
 * Stops every open run of a session, sub-runs last, since most end with their parent. Leaves a run with a damaged log
 * alone.
 */
export async function endRuns(session: string, { by }: { by: string }, options: StopRunOptions): Promise<void> {
  const { heads } = await options.log.heads({ prefix: runStream(""), limit: RUNS_MAX, open: true, where: { session: [session] } });
  const isSubRun = ({ head }: (typeof heads)[number]) => (head as { parent?: unknown }).parent !== null;
  for (const { stream, damage } of [...heads.filter((head) => !isSubRun(head)), ...heads.filter(isSubRun)])
    if (damage === null) await stopRun(runOf(stream), { by }, options).catch(ifEnded);
}

/** Ignores the error for a run that ended by itself in the meantime. */
function ifEnded(error: unknown): void {
  if (!(error instanceof CaissonError) || error.code !== "conflict" || error.details?.finish === undefined) throw error;
}
