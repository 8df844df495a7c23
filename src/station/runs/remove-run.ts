import { CaissonError } from "../../contract/error.ts";
import type { Log } from "../../log/log.ts";
import { headOfRun, runOf, runStream } from "./head-of-run.ts";

const SUB_RUNS_MAX = 1000;

/** See `RunVerbs.remove`. Sub-runs go first, so that what an interruption leaves is found again by its parent. */
export async function removeRun(run: string, log: Log): Promise<void> {
  const { facts, damage } = await headOfRun(log, run);
  if (facts.status !== "ended" && damage === null) {
    throw new CaissonError("conflict", `the run ${run} is not over`, { hint: `Stop it first: caisson stop ${run}` });
  }
  const { heads } = await log.heads({ prefix: runStream(""), limit: SUB_RUNS_MAX, where: { "parent.run": [run] } });
  for (const { stream } of heads) await removeRun(runOf(stream), log);
  await log.remove(runStream(run));
}
