import { CaissonError } from "../../contract/error/error.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import { type AppliedSession, ApplySession } from "../../contract/session/session-verbs.ts";
import { defined } from "../../lib/defined.ts";
import { ignore } from "../../lib/failures.ts";
import { type ApplyOptions, applyChanges, isOutdated } from "../../workspace/apply.ts";
import { settleFolder } from "../../workspace/apply-recovery.ts";
import type { Change } from "../../workspace/change.ts";
import { blobOf } from "../../workspace/render-diff.ts";
import type { ChangedWork } from "./changed-work.ts";

/** How many paths the session history lists per apply; the count includes all. */
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
    throw new CaissonError("invalid", `${work.what} has no folder on your machine`, {
      hint: "Name a folder: caisson apply RUN --to DIR. Or make a branch: caisson branch RUN --to REPOSITORY.",
    });
  }
  const options = { folder, stateDir, ...defined({ paths, crashpoint }), leaveOut, includeConfiguration };
  const { result, changes, leftOut, ignored } = await unlessOutdated(async () => {
    // We settle the folder first: changes computed against a half-applied one would be incomplete.
    const { stamp: seen } = await settleFolder(folder, { stateDir });
    const found = await work.changes({ includeIgnored, paths: paths ?? [] });
    const beforeEffects = async (applying: readonly string[]) => {
      if (folder === own && work.notesBefore) await work.noteApplied(blobsOf(found.changes, applying));
    };
    // In another folder, only the content has to match.
    const result = await applyChanges(found.changes, { ...options, seen, beforeEffects, force: force || folder !== own });
    return { ...found, result };
  });
  const { applied } = result;
  if (folder === own && !work.notesBefore) await work.noteApplied(blobsOf(changes, applied));
  const appliedPaths = new Set(applied);
  if (applied.length > 0) {
    const keeping = work.keepApplied({ folder, changes: changes.filter(({ path }) => appliedPaths.has(path)) });
    await ignore(keeping, "the changes are applied, even if their diff cannot be stored");
  }
  if (applied.length > 0) {
    const data = { folder, paths: applied.slice(0, PATHS_RECORDED_MAX), count: applied.length };
    await work.record({ type: "session.applied", data });
  }
  return { session: work.id, folder, ...result, leftOut, ignored };
}

/** Retries if the rollback of a dead apply changed the folder between our check and our first effect. */
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
