import { CaissonError } from "../../contract/error/error.ts";
import type { Log } from "../../log/log.ts";
import { headOfRun } from "../vocabulary/head-of-run.ts";
import { refuseRewinding } from "../vocabulary/refuse-rewinding.ts";
import { runOf, runStream } from "../vocabulary/station-names.ts";

const SUB_RUNS_MAX = 1000;

/**
 * See `RunVerbs.remove`. Removes sub-runs before their parent, so that after an interruption the parent still leads to
 * the remaining ones.
 */
export async function removeRun(run: string, log: Log): Promise<void> {
  const { facts, damage } = await headOfRun(log, run);
  if (facts.status !== "ended" && damage === null) {
    throw new CaissonError("conflict", `the run ${run} has not ended`, { hint: `Stop it first: caisson stop ${run}` });
  }
  refuseRewinding(facts);
  const { heads } = await log.heads({ prefix: runStream(""), limit: SUB_RUNS_MAX, where: { "parent.run": [run] } });
  for (const { stream } of heads) await removeRun(runOf(stream), log);
  await log.remove(runStream(run));
}
