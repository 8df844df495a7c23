import { CaissonError } from "../../contract/error.ts";
import { parseRequest } from "../../contract/parse-request.ts";
import type { SessionEvent } from "../../contract/session-event.ts";
import { AskApplied, type SessionApplies } from "../../contract/session-verbs.ts";
import { listApplies, readAppliedDiff } from "../../workspace/applied-diffs.ts";

/**
 * See `SessionVerbs.applied`. `dir` is where the applies were kept, `history` what is known of those before any was.
 */
export async function appliedWork(
  { id, dir, history }: { id: string; dir: string; history: readonly SessionEvent[] },
  request: AskApplied,
): Promise<SessionApplies> {
  const { apply: asked } = parseRequest(AskApplied, request, "to look at what was applied");
  const kept = await listApplies(dir);
  const applies = kept.length > 0 ? kept : fromHistory(history);
  const apply = asked ?? applies[0]?.apply;
  if (asked !== undefined && !applies.some((each) => each.apply === asked)) {
    throw new CaissonError("not_found", `apply ${asked} of ${id} is not known any more`, {
      hint: "Only the last few are kept. `caisson diff --applied` shows the last.",
    });
  }
  return { session: id, applies, diff: apply === undefined ? null : await readAppliedDiff(dir, apply) };
}

/** Of a session whose applies are older than what keeps their diffs. */
function fromHistory(history: readonly SessionEvent[]): SessionApplies["applies"] {
  const applied = history.flatMap((event) => (event.type === "session.applied" ? [event] : []));
  return applied
    .map(({ at, data: { folder, count } }, index) => ({ apply: index + 1, at, folder, count, hasDiff: false }))
    .reverse()
    .slice(0, APPLIES_LISTED_MAX);
}

const APPLIES_LISTED_MAX = 10;
