import { readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { RunState } from "../../agent/run-state.ts";
import type { JobFacts } from "../../contract/durable/durable-job.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { JOB_LABEL } from "../../contract/label/station-labels.ts";
import type { RunFacts } from "../../contract/run/run-facts.ts";
import type { Session } from "../../contract/session/session.ts";
import { type Crashpoint, noCrash } from "../../lib/crashpoint.ts";
import { ABSENT, ifErrno, ignore } from "../../lib/failures.ts";
import type { Log } from "../../log/log.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import { ifUnusable, type SessionStore } from "../../workspace/sessions.ts";
import { appendUnowned } from "../vocabulary/append-unowned.ts";
import { runStream } from "../vocabulary/station-names.ts";
import { removeFiles } from "./remove-session.ts";
import { LEAVING_PREFIX } from "./session-folders.ts";
import { unappliedOf } from "./unapplied-changes.ts";

/*
 * Sessions that go with their run or workflow. Each has an empty note beside the sessions, for as long as it exists. If
 * a process dies between the end and the removal, the next one finds the note and removes the session. Sessions without
 * a note, which are most, cost nothing.
 */

export interface CleanupOptions {
  stateDir: string;
  log: Log;
  sessions: SessionStore;
  runtimes: () => Promise<readonly Runtime[]>;
  crashpoint?: Crashpoint;
}

type SessionEnd = "success" | "failure";

const WORKFLOW = "workflow/";
const RUNS_SEEN_MAX = 100;

/** Notes that a session may go by itself. */
export async function noteCleanup(id: string, { stateDir }: Pick<CleanupOptions, "stateDir">): Promise<void> {
  await writeFile(noteOf(stateDir, id), "", { mode: 0o600, flush: true });
}

const noteOf = (stateDir: string, id: string) => join(stateDir, "sessions", `${LEAVING_PREFIX}${id}`);

/** Changes when an existing session goes. The caller must hold the session, or know that it is free. */
export async function changeCleanup(
  { id, cleanup: before }: Session,
  cleanup: Session["cleanup"] | undefined,
  options: Pick<CleanupOptions, "stateDir" | "sessions">,
): Promise<void> {
  if (cleanup === undefined || before === cleanup) return;
  if (cleanup !== "never") await noteCleanup(id, options);
  await options.sessions.update(id, { cleanup });
  await options.sessions.record(id, { type: "session.cleanup_changed", data: { cleanup } });
}

/** Removes the sessions that should have gone by now, but whose process died before that. Usually reads one folder. */
export async function removeOverdueSessions(options: CleanupOptions): Promise<string[]> {
  const { stateDir, sessions } = options;
  const names = await ifErrno(readdir(join(stateDir, "sessions")), ABSENT, []);
  const removed: string[] = [];
  for (const id of names.filter((name) => name.startsWith(LEAVING_PREFIX)).map((name) => name.slice(LEAVING_PREFIX.length))) {
    const session = await sessions.get(id).catch(ifUnusable);
    // A damaged record is for its user to see.
    if (session === null && (await sessions.has(id))) continue;
    if (session === null) await forgetRemoved(id, options);
    else if (await removeIfDue(session, options)) removed.push(id);
  }
  return removed;
}

/**
 * Like `removeIfOver`, but remembers that a session stays although its run has ended, until it is used again. So those
 * that failed cost each start only two small reads.
 */
async function removeIfDue(session: Session, options: CleanupOptions): Promise<boolean> {
  const note = noteOf(options.stateDir, session.id);
  if ((await ifErrno(readFile(note, "utf8"), ABSENT, "")) === session.lastUsedAt) return false;
  const end = await endOf(session, options);
  if (end === null) return false;
  if (goesAt(end, session)) return await removeIfOver(session, options);
  await writeFile(note, session.lastUsedAt, { mode: 0o600 });
  return false;
}

/** Completes the history of a session whose remover died before it could. */
async function forgetRemoved(id: string, { stateDir, sessions }: CleanupOptions): Promise<void> {
  const last = (await sessions.history(id)).at(-1);
  if (last !== undefined && last.type !== "session.removed")
    await sessions.record(id, { type: "session.removed", data: { why: "cleanup" } });
  await rm(noteOf(stateDir, id), { force: true });
  // Another process may have created a session of this name at this moment.
  const other = await sessions.get(id).catch(ifUnusable);
  if (other !== null && other.cleanup !== "never") await noteCleanup(id, { stateDir });
}

/**
 * Removes a session if what it goes with has ended, and nothing uses it. Returns whether it did. Idempotent, and safe
 * beside other processes that do the same.
 */
export async function removeIfOver(session: Session, options: CleanupOptions): Promise<boolean> {
  if (!(await isOver(session, options))) return false;
  return await removeWithPolicy(session.id, { ...options, isStillDue: (now) => isOver(now, options) });
}

/** Returns whether a session should have been removed by now. */
export async function isOver(session: Session, options: Pick<CleanupOptions, "stateDir" | "log">): Promise<boolean> {
  if (session.cleanup === "never") return false;
  const end = await endOf(session, options);
  return end !== null && goesAt(end, session);
}

const goesAt = (end: SessionEnd, { cleanup }: Pick<Session, "cleanup">): boolean =>
  cleanup === "always" || (cleanup === "on_success" && end === "success");

/** Removes a session that goes with its workflow, whose end is not in the log yet. Returns whether it did. */
export async function removeWithWorkflow(
  { id, cleanup }: Pick<Session, "id" | "cleanup">,
  { hasCompleted, ...options }: CleanupOptions & { hasCompleted: boolean },
): Promise<boolean> {
  if (!goesAt(hasCompleted ? "success" : "failure", { cleanup })) return false;
  return await removeWithPolicy(id, { ...options, isStillDue: async () => true });
}

async function removeWithPolicy(
  id: string,
  options: CleanupOptions & { isStillDue: (session: Session) => Promise<boolean> },
): Promise<boolean> {
  const { sessions, crashpoint = noCrash } = options;
  crashpoint("session.cleanup:before");
  try {
    await using _ = await sessions.edit(id);
    const session = await sessions.get(id);
    if (!(await options.isStillDue(session))) return false;
    // Only the count is lost if the layer cannot be read.
    const unapplied = await ignore(unappliedOf(session, options), "the history then does not say how many files went");
    const runtimes = await options.runtimes();
    const why = { why: "cleanup", ...(unapplied?.files != null && { unapplied: unapplied.files }) } as const;
    await removeFiles(session, { ...options, runtimes, crashpoint, removed: why });
    return true;
  } catch (error) {
    // Somebody works in it, or another process removed it first. Its end comes again, or the next start finds it.
    if (error instanceof CaissonError && (error.code === "conflict" || error.code === "not_found")) return false;
    throw error;
  }
}

/** Returns how the run, runs or workflow of a session ended; null while they have not, or if that is not known. */
async function endOf(session: Session, { stateDir, log }: Pick<CleanupOptions, "stateDir" | "log">): Promise<SessionEnd | null> {
  const runs = await runsIn(session, log);
  if (runs.some(({ status }) => status !== "ended")) return null;
  const workflow = workflowOf(session, runs);
  if (workflow !== null) return await endOfWorkflow(workflow, log);
  // Sessions of earlier versions have no note. Then, only those of a single run went by themselves.
  if (session.scope !== "run" && !(await hasNote(session, stateDir))) return null;
  const last = runs.find(({ parent, run }) => parent === null && (session.scope !== "run" || run === session.id));
  return last === undefined ? null : last.finish === "done" ? "success" : "failure";
}

/** Returns the runs of a session, those that changed last first, and any that is open. */
async function runsIn({ id }: Session, log: Log): Promise<RunFacts[]> {
  const query = { prefix: runStream(""), where: { session: [id] } };
  const { heads: open } = await log.heads({ ...query, open: true, limit: 1 });
  const { heads: ended } = await log.heads({ ...query, open: false, limit: RUNS_SEEN_MAX });
  return [...open, ...ended].map(({ head }) => head as unknown as RunFacts);
}

/** Returns the stream of the workflow that a session belongs to, or null. */
function workflowOf(session: Session, runs: readonly RunFacts[]): string | null {
  const own = runs.find(({ run }) => run === session.id)?.labels[JOB_LABEL];
  if (own?.startsWith(WORKFLOW)) return own;
  const shared = session.scope === "workflow" ? /^wf-[a-z2-7]{12}$/.exec(session.name ?? session.id)?.[0] : undefined;
  return shared === undefined ? null : `${WORKFLOW}${shared.replace("-", "_")}`;
}

async function endOfWorkflow(stream: string, log: Log): Promise<SessionEnd | null> {
  const head = await log.head(stream);
  // It was removed, and how it ended is not known.
  if (head === null) return "failure";
  const { finish } = head.head as unknown as JobFacts;
  return finish === null ? null : finish === "completed" ? "success" : "failure";
}

async function hasNote({ id }: Session, stateDir: string): Promise<boolean> {
  return (await ifErrno(stat(noteOf(stateDir, id)), ABSENT, null)) !== null;
}

/** Records the end of a run in its session, and removes the session if it goes now. Idempotent. */
export async function leaveSession(
  { run, session: id, ended }: Pick<RunState, "run" | "session" | "ended">,
  options: CleanupOptions,
): Promise<void> {
  if (ended === null) return;
  const { sessions } = options;
  await sessions.record(id, { type: "session.run_ended", data: { run, reason: ended.reason } }, { once: true });
  const session = await sessions.get(id).catch(ifUnusable);
  if (session === null || !(await removeIfOver(session, options))) return;
  const removed = (await sessions.history(id)).findLast(({ type }) => type === "session.removed");
  const files = removed?.type === "session.removed" ? (removed.data.unapplied ?? 0) : 0;
  const lost = files === 0 ? "" : `, with ${files} ${files === 1 ? "file that was" : "files that were"} not applied`;
  const text = `The session ${id} was removed${lost}: its cleanup is ${session.cleanup}.`;
  const telling = appendUnowned(options.log, run, () => [{ type: "run.noticed", data: { text } }], { alsoEnded: true });
  await ignore(telling, "the history of the session says it, too");
}
