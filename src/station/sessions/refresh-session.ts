import { CaissonError } from "../../contract/error/error.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import type { Session } from "../../contract/session/session.ts";
import { type RefreshedSession, RefreshSession, type RefreshStep } from "../../contract/session/session-verbs.ts";
import type { Crashpoint } from "../../lib/crashpoint.ts";
import { streamOf } from "../../lib/stream-of.ts";
import { runCommand } from "../../sandbox/run-command.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { type PrepareOptions, prepareWorkspace } from "../../workspace/git/check-out.ts";
import { fetchMirror, type GitSource, resolveCommit } from "../../workspace/git/git-mirror.ts";
import { type ChangesOptions, changesIn } from "./session-changes.ts";
import { forgetPoints } from "./stored-points.ts";
import { writeSession } from "./write-session.ts";

export interface RefreshOptions extends ChangesOptions {
  sessions: PrepareOptions["sessions"] & ChangesOptions["sessions"];
  crashpoint: Crashpoint;
  /** How repositories are fetched. */
  fetching: Omit<PrepareOptions, "sessions" | "owner" | "onProgress">;
}

type GitSession = Session & { source: GitSource };

/** What a check out of another commit would remove. Null: the repository inside cannot be read. */
interface OwnWork {
  files: number;
  ignored: number;
  commits: number | null;
}

const LOOK_MS_MAX = 60_000;

/** See `SessionVerbs.refresh`. */
export function refreshSession(session: Session, request: RefreshSession, options: RefreshOptions): AsyncGenerator<RefreshStep> {
  const { ref, discard } = parseRequest(RefreshSession, request, "to refresh a session");
  if (session.source.kind !== "git") throw notRepository(session);
  const source: GitSource = ref === undefined ? session.source : { ...session.source, ref };
  return streamOf(async (tell, signal) => {
    const onProgress = (progress: string) => tell({ progress });
    const fetching = { ...options.fetching, owner: session.owner, sessions: options.sessions, onProgress };
    // Whatever fails here leaves the session as it is.
    const mirror = await fetchMirror(source, { ...fetching, signal });
    const commit = await resolveCommit(mirror, source, { ...fetching, signal });
    const refreshed = await checkOut({ ...session, source }, { commit, discard }, { ...options, prepare: fetching });
    tell({ refreshed });
  });
}

async function checkOut(
  { id, source }: GitSession,
  { commit, discard }: { commit: string; discard: boolean },
  options: RefreshOptions & { prepare: PrepareOptions },
): Promise<RefreshedSession> {
  const { sessions, crashpoint } = options;
  const session = await sessions.get(id);
  return await writeSession(session, options, async (sandbox) => {
    const before = await sessions.get(id);
    const runtime = await options.runtime(before.runtime ?? undefined);
    const lost = before.commit === null ? nothing : await ownWork(before, sandbox, { ...options, runtime });
    const isCurrent = before.commit === commit;
    if (!discard && !isCurrent) refuseLoss(id, lost);
    if (isCurrent && !(discard && hasWork(lost))) {
      await sessions.update(id, { source });
      return { session: id, before: commit, commit, files: 0, commits: 0 };
    }
    // Without a commit, the next user of the session checks out again. So it does not matter where this process dies.
    await sessions.update(id, { source, commit: null, preparedAt: null });
    crashpoint("session.refresh:after");
    // Their files belong to the former commit.
    await forgetPoints(before, { sessions, runtime });
    const pinned = { ...(await sessions.get(id)), source };
    await prepareWorkspace(pinned, { sandbox, runtime }, options.prepare);
    const result = { before: before.commit, commit: pinned.commit ?? commit, files: lost.files, commits: lost.commits ?? 0 };
    crashpoint("session.refreshed:before");
    await sessions.record(id, { type: "session.refreshed", data: result });
    return { session: id, ...result };
  });
}

const nothing: OwnWork = { files: 0, ignored: 0, commits: 0 };

const hasWork = ({ files, ignored, commits }: OwnWork): boolean => files > 0 || ignored > 0 || commits !== 0;

async function ownWork(session: Session, sandbox: Sandbox, options: Parameters<typeof changesIn>[2]): Promise<OwnWork> {
  const { changes, leftOut, ignored } = await changesIn(sandbox, session, options);
  // Every git command inside changes the `.git` folder.
  const unread = leftOut.filter(({ path }) => !/(^|\/)\.git$/.test(path));
  return { files: changes.length + unread.length, ignored, commits: await ownCommits(session.commit ?? "", sandbox) };
}

/** Returns how many commits only this repository has, or null if git inside does not say. */
async function ownCommits(commit: string, sandbox: Sandbox): Promise<number | null> {
  const git = ["git", "-c", "safe.directory=*", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-C", "/workspace"];
  const argv = [...git, "rev-list", "--count", "--exclude=refs/tags/*", "--all", "--not", commit, "--remotes=origin"];
  const { ended, stdout } = await runCommand(sandbox, { argv, cwd: "/", timeoutMs: LOOK_MS_MAX, env: { GIT_TERMINAL_PROMPT: "0" } });
  return ended.kind === "exited" && ended.exitCode === 0 && /^\d{1,9}\n$/.test(stdout) ? Number(stdout) : null;
}

function refuseLoss(id: string, lost: OwnWork): void {
  if (!hasWork(lost)) return;
  const { files, ignored, commits } = lost;
  const count = (many: number, what: string) => (many === 0 ? [] : [`${many} ${what}${many === 1 ? "" : "s"}`]);
  const parts = [
    ...count(files, "changed file"),
    ...count(ignored, "ignored file"),
    ...(commits === null ? ["commits that cannot be read"] : count(commits, "commit")),
  ];
  throw new CaissonError("conflict", `the session ${id} has work that a refresh would remove: ${parts.join(", ")}`, {
    hint: `Put it on a branch with \`caisson branch ${id} --to DIR\`, or remove it with \`caisson session refresh ${id} --discard\`.`,
    details: { ...lost },
  });
}

function notRepository({ id, source }: Session): CaissonError {
  const [why, hint] =
    source.kind === "folder"
      ? [`works on the folder ${source.path}, and its next run sees that as it is then`, `Look at its changes: caisson diff ${id}`]
      : source.kind === "upload"
        ? ["works on a folder that was sent from another machine", "Start a new run there, which sends the folder again."]
        : ["began empty", "Start a run in a new session with the address of the repository."];
  return new CaissonError("unsupported", `the session ${id} has no repository to fetch: it ${why}`, { hint });
}
