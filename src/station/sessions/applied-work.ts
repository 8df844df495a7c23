import { CaissonError } from "../../contract/error/error.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import type { SessionEvent } from "../../contract/session/session-event.ts";
import { AskApplied, type SessionApplies } from "../../contract/session/session-verbs.ts";
import { listApplies, readAppliedDiff } from "../../workspace/applied-diffs.ts";

/** See `SessionVerbs.applied`. `dir` contains the stored applies, `history` those from before we stored any. */
export async function appliedWork(
  { id, dir, history }: { id: string; dir: string; history: readonly SessionEvent[] },
  request: AskApplied,
): Promise<SessionApplies> {
  const { apply: requestedApply } = parseRequest(AskApplied, request, "the applied changes");
  const storedApplies = await listApplies(dir);
  const applies = storedApplies.length > 0 ? storedApplies : fromHistory(history);
  const apply = requestedApply ?? applies[0]?.apply;
  if (requestedApply !== undefined && !applies.some((each) => each.apply === requestedApply)) {
    throw new CaissonError("not_found", `apply ${requestedApply} of ${id} is no longer stored`, {
      hint: "Only the last few applies are stored. `caisson diff --applied` shows the latest.",
    });
  }
  return { session: id, applies, diff: apply === undefined ? null : await readAppliedDiff(dir, apply) };
}

/** Lists the applies of a session from before their diffs were stored. */
function fromHistory(history: readonly SessionEvent[]): SessionApplies["applies"] {
  const applied = history.flatMap((event) => (event.type === "session.applied" ? [event] : []));
  return applied
    .map(({ at, data: { folder, count } }, index) => ({ apply: index + 1, at, folder, count, hasDiff: false }))
    .reverse()
    .slice(0, APPLIES_LISTED_MAX);
}

const APPLIES_LISTED_MAX = 10;
