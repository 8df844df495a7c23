import { CaissonError } from "../../contract/error/error.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import { type BranchedSession, BranchSession } from "../../contract/session/session-verbs.ts";
import { defined } from "../../lib/defined.ts";
import { commitToBranch } from "../../workspace/git/branch.ts";
import type { GitOptions } from "../../workspace/git/host-git.ts";
import type { ApplyWorkOptions } from "./apply-work.ts";
import type { ChangedWork } from "./changed-work.ts";

/** See `SessionVerbs.branch`. */
export async function branchWork(
  work: ChangedWork,
  request: BranchSession,
  options: { git: Pick<GitOptions, "path">; author: { name: string; email: string } } & ApplyWorkOptions,
): Promise<BranchedSession> {
  const { repository: named, name, message, includeConfiguration } = parseRequest(BranchSession, request, "a branch");
  const folder = named ?? ownRepository(work);
  const { changes, leftOut, ignored } = await work.changes();
  const result = await commitToBranch(changes, {
    folder,
    name: name ?? `caisson/${work.id}`,
    message: message ?? `Changes of ${work.id}\n`,
    author: options.author,
    git: { path: options.git.path },
    locks: { stateDir: options.stateDir, ...defined({ crashpoint: options.crashpoint }) },
    includeConfiguration,
    ...(work.source.kind === "git" && work.commit !== null ? { base: work.commit } : {}),
  });
  const { repository, branch, commit } = result;
  await work.record({ type: "session.branched", data: { repository, branch, commit } });
  return { session: work.id, ...result, leftOut, ignored: ignored + result.ignored };
}

function ownRepository({ source, what }: ChangedWork): string {
  if (source.kind === "folder") return source.path;
  throw new CaissonError("invalid", `${what} has no repository on your machine for a branch`, {
    hint: "Name a clone of its repository: caisson branch RUN --to REPOSITORY.",
  });
}
