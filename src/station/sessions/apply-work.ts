import { CaissonError } from "../../contract/error.ts";
import { parseRequest } from "../../contract/parse-request.ts";
import { type AppliedSession, ApplySession } from "../../contract/session-verbs.ts";
import { applyChanges } from "../../workspace/apply.ts";
import type { Change } from "../../workspace/change.ts";
import { blobOf } from "../../workspace/render-diff.ts";
import type { ChangedWork } from "./changed-work.ts";

/** Paths that the history of a session names for one apply; all are counted. */
const PATHS_RECORDED_MAX = 1000;

/** See `SessionVerbs.apply`. */
export async function applyWork(work: ChangedWork, request: ApplySession, { stateDir }: { stateDir: string }): Promise<AppliedSession> {
  const { folder: named, paths, includeConfiguration, includeIgnored, force } = parseRequest(ApplySession, request, "to apply a session");
  const own = work.source.kind === "folder" ? work.source.path : null;
  const folder = named ?? own;
  if (folder === null) {
    throw new CaissonError("invalid", `${work.what} has no folder of yours`, {
      hint: "Say where: caisson apply RUN --to DIR, or make a branch: caisson branch RUN --to REPOSITORY.",
    });
  }
  const { changes, leftOut, ignored } = await work.changes({ includeIgnored, paths: paths ?? [] });
  const result = await applyChanges(changes, {
    folder,
    stateDir,
    ...(paths === undefined ? {} : { paths }),
    includeConfiguration,
    // In another folder it is the content that must be right.
    force: force || folder !== own,
  });
  const { applied } = result;
  if (folder === own) await work.noteApplied(blobsOf(changes, applied));
  if (applied.length > 0) {
    const data = { folder, paths: applied.slice(0, PATHS_RECORDED_MAX), count: applied.length };
    await work.record({ type: "session.applied", data });
  }
  return { session: work.id, folder, ...result, leftOut, ignored };
}

function blobsOf(changes: readonly Change[], applied: readonly string[]): Map<string, string> {
  const chosen = new Set(applied);
  return new Map(
    changes.flatMap(({ path, from, after }) => {
      if (!chosen.has(path)) return [];
      const here = [path, after === null ? "" : blobOf(after.content)] as const;
      return from === null ? [here] : [here, [from, ""] as const];
    }),
  );
}
