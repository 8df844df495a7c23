import { CaissonError } from "../../contract/error.ts";
import { parseRequest } from "../../contract/parse-request.ts";
import { type AppliedSession, ApplySession } from "../../contract/session-verbs.ts";
import { defined } from "../../lib/defined.ts";
import { type ApplyOptions, applyChanges, isOutdated } from "../../workspace/apply.ts";
import { settleFolder } from "../../workspace/apply-recovery.ts";
import type { Change } from "../../workspace/change.ts";
import { blobOf } from "../../workspace/render-diff.ts";
import type { ChangedWork } from "./changed-work.ts";

/** Paths that the history of a session names for one apply; all are counted. */
const PATHS_RECORDED_MAX = 1000;

const ATTEMPTS_MAX = 5;

export interface ApplyWorkOptions {
  stateDir: string;
  crashpoint?: ApplyOptions["crashpoint"];
}

/** See `SessionVerbs.apply`. */
export async function applyWork(
  work: ChangedWork,
  request: ApplySession,
  { stateDir, crashpoint }: ApplyWorkOptions,
): Promise<AppliedSession> {
  const asking = parseRequest(ApplySession, request, "to apply a session");
  const { folder: named, paths, leaveOut, includeConfiguration, includeIgnored, force } = asking;
  const own = work.source.kind === "folder" ? work.source.path : null;
  const folder = named ?? own;
  if (folder === null) {
    throw new CaissonError("invalid", `${work.what} has no folder of yours`, {
      hint: "Say where: caisson apply RUN --to DIR, or make a branch: caisson branch RUN --to REPOSITORY.",
    });
  }
  const asked = { folder, stateDir, ...defined({ paths, crashpoint }), leaveOut, includeConfiguration };
  const { result, changes, leftOut, ignored } = await unlessOutdated(async () => {
    // Before anything looks at the folder: what is computed against a half applied one would leave work out.
    const { stamp: seen } = await settleFolder(folder, { stateDir });
    const found = await work.changes({ includeIgnored, paths: paths ?? [] });
    const beforeEffects = async (applying: readonly string[]) => {
      if (folder === own && work.notesBefore) await work.noteApplied(blobsOf(found.changes, applying));
    };
    // In another folder it is the content that must be right.
    const result = await applyChanges(found.changes, { ...asked, seen, beforeEffects, force: force || folder !== own });
    return { ...found, result };
  });
  const { applied } = result;
  if (folder === own && !work.notesBefore) await work.noteApplied(blobsOf(changes, applied));
  const brought = new Set(applied);
  // What is applied is applied, whether its diff can be kept or not.
  if (applied.length > 0)
    await work.keepApplied({ folder, changes: changes.filter(({ path }) => brought.has(path)) }).catch(() => undefined);
  if (applied.length > 0) {
    const data = { folder, paths: applied.slice(0, PATHS_RECORDED_MAX), count: applied.length };
    await work.record({ type: "session.applied", data });
  }
  return { session: work.id, folder, ...result, leftOut, ignored };
}

/** Once more when an apply that died was taken back between the look at the folder and the first effect. */
async function unlessOutdated<Result>(attempt: () => Promise<Result>): Promise<Result> {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt();
    } catch (error) {
      if (!isOutdated(error) || tries === ATTEMPTS_MAX) throw error;
    }
  }
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
