import type { RunFacts } from "../../contract/run/run-facts.ts";
import type { StoredPoint } from "../../contract/session/session.ts";
import { changesOf } from "../sessions/session-changes.ts";
import { filesAfter } from "../sessions/step-files.ts";
import { movePoints, restoreFiles } from "../sessions/stored-points.ts";
import { changedPaths, type UndoOptions } from "../sessions/undo-turn.ts";

export type Rewinding = NonNullable<RunFacts["rewinding"]>;

/**
 * Restores the files of a run as they were after the step to which it is being rewound, for a caller that holds the
 * run. The points of later steps move to the fork that keeps the present. Returns the paths that changed.
 */
export async function restoreRunFiles(run: string, rewinding: Rewinding, options: UndoOptions): Promise<readonly string[]> {
  const { toStep, toSeq, tail } = rewinding;
  const { sessions } = options;
  const session = await sessions.get((await options.facts(run)).session);
  // It never had a sandbox, so there is nothing to restore.
  if (session.runtime === null) return [];
  const runtime = await options.runtime(session.runtime);
  const files = await filesAfter(session, { run, step: toStep }, options);
  const before = await changesOf(session, options);
  {
    await using _ = await sessions.edit(session.id);
    await restoreFiles(await sessions.get(session.id), files, { sessions, runtime });
    const isLater = (point: StoredPoint) => point.run === run && ((point.step ?? 0) > toStep || (point.turnSeq ?? 0) > toSeq);
    await movePoints({ from: session, to: await sessions.get(tail), run: tail, isMoved: isLater }, { sessions, runtime });
  }
  return changedPaths(before, await changesOf(await sessions.get(session.id), options));
}
