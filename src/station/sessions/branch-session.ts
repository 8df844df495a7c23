import { CaissonError } from "../../contract/error.ts";
import { parseRequest } from "../../contract/parse-request.ts";
import type { Session } from "../../contract/session.ts";
import { type BranchedSession, BranchSession } from "../../contract/session-verbs.ts";
import { commitToBranch } from "../../workspace/git/branch.ts";
import { type ChangesOptions, changesOf } from "./session-changes.ts";

/** See `SessionVerbs.branch`. */
export async function branchSession(
  session: Session,
  request: BranchSession,
  options: ChangesOptions & { author: { name: string; email: string } },
): Promise<BranchedSession> {
  const { repository: named, name, message, includeConfiguration } = parseRequest(BranchSession, request, "a branch");
  const folder = named ?? ownRepository(session);
  const { changes, leftOut, ignored } = await changesOf(session, options);
  const result = await commitToBranch(changes, {
    folder,
    name: name ?? `caisson/${session.id}`,
    message: message ?? `Changes of ${session.id}\n`,
    author: options.author,
    git: { path: options.git.path },
    includeConfiguration,
    ...(session.source.kind === "git" && session.commit !== null ? { base: session.commit } : {}),
  });
  const { repository, branch, commit } = result;
  await options.sessions.record(session.id, { type: "session.branched", data: { repository, branch, commit } });
  return { session: session.id, ...result, leftOut, ignored: ignored + result.ignored };
}

function ownRepository(session: Session): string {
  if (session.source.kind === "folder") return session.source.path;
  throw new CaissonError("invalid", `the session ${session.id} has no repository of yours to make a branch in`, {
    hint: "Name a clone of it: caisson branch RUN --to REPOSITORY.",
  });
}
