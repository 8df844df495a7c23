import { CaissonError } from "../../contract/error.ts";
import { runOf, runStream } from "./head-of-run.ts";
import { type StopRunOptions, stopRun } from "./stop-run.ts";

const RUNS_MAX = 1000;

/**
 * Ends every run of a session that is not over, sub-runs last: most end with their parent. One that cannot be read is
 * left as it is.
 */
export async function endRuns(session: string, { by }: { by: string }, options: StopRunOptions): Promise<void> {
  const { heads } = await options.log.heads({ prefix: runStream(""), limit: RUNS_MAX, open: true, where: { session: [session] } });
  const isSubRun = ({ head }: (typeof heads)[number]) => (head as { parent?: unknown }).parent !== null;
  for (const { stream, damage } of [...heads.filter((head) => !isSubRun(head)), ...heads.filter(isSubRun)])
    if (damage === null) await stopRun(runOf(stream), { by }, options).catch(ifEnded);
}

/** It came to its own end meanwhile. */
function ifEnded(error: unknown): void {
  if (!(error instanceof CaissonError) || error.code !== "conflict" || error.details?.finish === undefined) throw error;
}
