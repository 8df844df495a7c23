import { CaissonError } from "../../contract/error.ts";
import { parseRequest } from "../../contract/parse-request.ts";
import type { Session } from "../../contract/session.ts";
import { type AppliedSession, ApplySession } from "../../contract/session-verbs.ts";
import { applyChanges } from "../../workspace/apply.ts";
import type { Change } from "../../workspace/change.ts";
import { blobOf } from "../../workspace/render-diff.ts";
import { type ChangesOptions, changesOf } from "./session-changes.ts";

/** Paths that the history of a session names for one apply; all are counted. */
const PATHS_RECORDED_MAX = 1000;

/** See `SessionVerbs.apply`. */
export async function applySession(session: Session, request: ApplySession, options: ChangesOptions): Promise<AppliedSession> {
  const { sessions, stateDir } = options;
  const { folder: named, paths, includeConfiguration, includeIgnored, force } = parseRequest(ApplySession, request, "to apply a session");
  const own = session.source.kind === "folder" ? session.source.path : null;
  const folder = named ?? own;
  if (folder === null) {
    throw new CaissonError("invalid", `the session ${session.id} has no folder of yours`, {
      hint: "Say where: caisson apply RUN --to DIR, or make a branch: caisson branch RUN --to REPOSITORY.",
    });
  }
  const { changes, leftOut, ignored } = await changesOf(session, { ...options, ignoring: { includeIgnored, paths: paths ?? [] } });
  const result = await applyChanges(changes, {
    folder,
    stateDir,
    ...(paths === undefined ? {} : { paths }),
    includeConfiguration,
    // In another folder it is the content that must be right.
    force: force || folder !== own,
  });
  const { applied } = result;
  if (folder === own) await sessions.noteApplied(session.id, blobsOf(changes, applied));
  if (applied.length > 0) {
    const data = { folder, paths: applied.slice(0, PATHS_RECORDED_MAX), count: applied.length };
    await sessions.record(session.id, { type: "session.applied", data });
  }
  return { session: session.id, folder, ...result, leftOut, ignored };
}

function blobsOf(changes: readonly Change[], applied: readonly string[]): Map<string, string> {
  const chosen = new Set(applied);
  return new Map(
    changes.flatMap(({ path, after }) => (after !== null && chosen.has(path) ? [[path, blobOf(after.content)] as const] : [])),
  );
}
