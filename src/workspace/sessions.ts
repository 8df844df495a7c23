import { mkdir, readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { CaissonError } from "../contract/error/error.ts";
import { checkValue, tellProblems } from "../contract/error/plain-problems.ts";
import { fromSystem } from "../contract/error/system-error.ts";
import { makeEvent, readableEvent } from "../contract/event/event-family.ts";
import { SessionId } from "../contract/ids.ts";
import type { HostProcess, ProcessIdentity } from "../contract/process-identity.ts";
import { Session, StoredPoint } from "../contract/session/session.ts";
import { type NewSessionEvent, type SessionEvent, sessionEvents } from "../contract/session/session-event.ts";
import type { DamagedSession } from "../contract/session/session-verbs.ts";
import { LOCAL_OWNER } from "../contract/token/owner.ts";
import { isErrno, jsonOrNull } from "../lib/failures.ts";
import { KnownFiles } from "../lib/known-files.ts";
import { replaceFile, sweepTemporaries } from "../lib/replace-file.ts";
import type { Log } from "../log/log.ts";
import { uploadedTree } from "../sandbox/uploaded-tree.ts";
import { withoutSecret } from "./git/address.ts";
import { createSessionLocks, type SessionLocks } from "./session-locks.ts";

/** The initial facts of a session that has had no sandbox yet. */
const nothingYet = {
  uploads: [] as string[],
  commit: null,
  preparedAt: null,
  runtime: null,
  snapshot: null,
  forked: null,
  restoredAt: null,
};

const SESSIONS_MAX = 10_000;
const HISTORY_MAX = 10_000;

export type NewSession = Pick<Session, "id" | "name" | "source" | "scope" | "cleanup"> &
  Partial<Pick<Session, "owner" | "uploads" | "commit" | "preparedAt" | "runtime" | "forked">>;

export interface SessionStore extends SessionLocks {
  /** Throws `exists` if the id is taken. */
  create(options: NewSession): Promise<Session>;
  /** Throws `not_found`. */
  get(id: string): Promise<Session>;
  /** Returns true even if the record is damaged. */
  has(id: string): Promise<boolean>;
  /** Returns all sessions with a usable record. */
  list(): Promise<Session[]>;
  /** Like `list`, but also returns the sessions whose record is damaged. */
  listAll(): Promise<{ sessions: Session[]; damaged: DamagedSession[] }>;
  /** Replaces a damaged record with that of an empty workspace, so that the session can be removed. */
  repair(id: string): Promise<void>;
  /** Updates some facts of a session. Only its holder may call this. Resolves with all facts. */
  update(
    id: string,
    facts: Partial<
      Pick<
        Session,
        "lastUsedAt" | "cleanup" | "source" | "commit" | "preparedAt" | "runtime" | "snapshot" | "uploads" | "forked" | "restoredAt"
      >
    >,
  ): Promise<Session>;
  /**
   * Adds to the session's history, which outlives the session. With `once`, adds the event only if the history does not
   * contain it yet.
   */
  record(id: string, event: NewSessionEvent, options?: { once?: boolean }): Promise<void>;
  history(id: string): Promise<SessionEvent[]>;
  /** Returns the git blob names of contents that were applied to the user's folder from here, by path. */
  readApplied(id: string): Promise<Map<string, string>>;
  noteApplied(id: string, files: ReadonlyMap<string, string>): Promise<void>;
  /** Returns the folders of a git workspace's layer as they were checked out, by inode. */
  folders(id: string): Promise<Record<string, number>>;
  noteFolders(id: string, folders: Readonly<Record<string, number>>): Promise<void>;
  /** Returns the points that the session can go back to, oldest first. */
  points(id: string): Promise<StoredPoint[]>;
  notePoints(id: string, points: readonly StoredPoint[]): Promise<void>;
  /** Returns the host folder with the changes of a session's workspace, and the folder below it. */
  paths(session: Session): { layer: string; lower: string; dir: string };
}

export function createSessionStore(options: {
  stateDir: string;
  log: Log;
  identity: HostProcess;
  alive: (holder: ProcessIdentity) => boolean;
  now?: () => Date;
}): SessionStore {
  const { log } = options;
  const now = options.now ?? (() => new Date());
  const root = join(options.stateDir, "sessions");
  const dirOf = (id: string) => join(root, checkId(id));
  const stream = (id: string) => `session/${id}`;
  const known = new KnownFiles<ReturnType<typeof Session.safeParse>>({ max: 4096 });

  const get = async (id: string): Promise<Session> => {
    const path = join(dirOf(id), "session.json");
    const read = async () => Session.safeParse(jsonOrNull(await readFile(path, "utf8")));
    const found = await known.get(path, read).catch((error: unknown) => ifMissing(error, { path, value: null }));
    if (found === null)
      throw new CaissonError("not_found", `there is no session ${id}`, { hint: "List sessions with `caisson session ls`." });
    // Returns a copy each time: the preparing process records its result in it.
    if (found.success) return { ...found.data };
    throw new CaissonError("internal", `the record of the session ${id} is damaged`, {
      hint: `Remove it with \`caisson session rm --force ${id}\`.`,
    });
  };
  const replace = async (id: string, name: string, content: unknown) => replaceFile(dirOf(id), name, JSON.stringify(content, null, 1));
  const update: SessionStore["update"] = async (id, facts) => {
    const session = { ...(await get(id)), ...facts };
    await replace(id, "session.json", session);
    await sweepTemporaries(dirOf(id));
    return session;
  };
  const history: SessionStore["history"] = async (id) => {
    const events = await log.read(stream(id), { limit: HISTORY_MAX });
    // Skips events of other versions that we cannot read; the rest is still worth showing.
    return events.flatMap((event) => readableEvent(sessionEvents, event) ?? []);
  };
  const record: SessionStore["record"] = async (id, event, { once = false } = {}) => {
    if (once && (await history(id)).some((known) => known.type === event.type && isDeepStrictEqual(known.data, event.data))) return;
    await log.append(stream(id), [makeEvent(sessionEvents, event)]);
  };
  const readRecord = async <Value>(id: string, name: string): Promise<Record<string, Value>> => {
    const path = join(dirOf(id), name);
    const text = await readFile(path, "utf8").catch((error: unknown) => ifMissing(error, { path, value: "{}" }));
    const record = jsonOrNull(text);
    if (typeof record === "object" && record !== null && !Array.isArray(record)) return record as Record<string, Value>;
    // If a damaged record counted as empty, the next write would destroy it.
    throw new CaissonError("internal", `${path} is damaged`, { hint: `Repair it, or remove it: ${RECORDS[name]}.` });
  };
  const readApplied: SessionStore["readApplied"] = async (id) => new Map(Object.entries(await readRecord<string>(id, "applied.json")));
  const listAll = () => readSessions(root, get);
  return {
    get,
    update,
    record,
    history,
    readApplied,
    ...createSessionLocks({ ...options, now, stream, get, update, record }),
    folders: (id) => readRecord<number>(id, "folders.json"),
    noteFolders: (id, folders) => replace(id, "folders.json", folders),
    points: async (id) => pointsIn(await readRecord(id, "restore-points.json")),
    notePoints: (id, points) => replace(id, "restore-points.json", { points }),
    async noteApplied(id, files) {
      await replace(id, "applied.json", Object.fromEntries([...(await readApplied(id)), ...files]));
    },
    async create(request) {
      const dir = dirOf(request.id);
      await mkdir(root, { recursive: true, mode: 0o700 });
      await mkdir(dir, { mode: 0o700 }).catch((error: unknown) => {
        if (!isErrno(error, "EEXIST")) throw unreadable(error, dir);
        throw new CaissonError("exists", `the session ${request.id} already exists`, {
          hint: `Use it with --session ${request.id}, or choose another name.`,
          cause: error,
        });
      });
      await mkdir(join(dir, "layer"), { mode: 0o755 });
      await mkdir(join(dir, "empty"), { mode: 0o755 });
      const at = now().toISOString();
      const session: Session = { owner: LOCAL_OWNER, ...nothingYet, ...request, id: checkId(request.id), createdAt: at, lastUsedAt: at };
      await replace(session.id, "session.json", session);
      const { source, scope, cleanup } = session;
      await record(session.id, { type: "session.created", data: { source: withoutSecret(source), scope, cleanup } });
      return session;
    },
    has: async (id) =>
      await stat(dirOf(id)).then(
        () => true,
        (error: unknown) => ifMissing(error, { path: dirOf(id), value: false }),
      ),
    async repair(id) {
      const at = now().toISOString();
      const about = { id: checkId(id), owner: LOCAL_OWNER, createdAt: at, lastUsedAt: at };
      const repaired: Session = { ...about, source: { kind: "empty" }, scope: "run", cleanup: "never", ...nothingYet };
      await replace(id, "session.json", repaired);
    },
    list: async () => (await listAll()).sessions,
    listAll,
    paths(session) {
      const dir = dirOf(session.id);
      return { dir, layer: join(dir, "layer"), lower: lowerOf(session.source, options) ?? join(dir, "empty") };
    },
  };
}

function lowerOf(source: Session["source"], { stateDir }: { stateDir: string }): string | null {
  if (source.kind === "upload") return uploadedTree(stateDir, source.upload);
  return source.kind === "folder" ? source.path : null;
}

/** The consequence of removing each record. */
const RECORDS: Readonly<Record<string, string>> = {
  "applied.json": "files that were applied before will then count as changed by you",
  "folders.json": "everything in its folders will then be compared",
  "restore-points.json": "its turns can then no longer be undone",
};

/** Returns `value` if the file is missing. Throws every other read error, since the file may exist. */
function ifMissing<Value>(error: unknown, { path, value }: { path: string; value: Value }): Value {
  if (isErrno(error, "ENOENT")) return value;
  throw unreadable(error, path);
}

function unreadable(error: unknown, path: string): unknown {
  if (error instanceof CaissonError) return error;
  const why = error instanceof Error ? error.message : String(error);
  return fromSystem(error) ?? new CaissonError("unavailable", `${path} cannot be read: ${why}`, { cause: error });
}

/** Returns null for a session that was removed, is damaged, or never was one. For callers that can do without it. */
export function ifUnusable(error: unknown): null {
  if (error instanceof CaissonError && ["not_found", "internal", "invalid"].includes(error.code)) return null;
  throw error;
}

/** Reads all sessions in a folder. A damaged record does not hide the others. */
async function readSessions(root: string, get: SessionStore["get"]): ReturnType<SessionStore["listAll"]> {
  const names = await readdir(root).catch((error: unknown) => ifMissing(error, { path: root, value: [] as string[] }));
  const damaged: DamagedSession[] = [];
  const read = async (id: string): Promise<Session[]> => {
    try {
      return [await get(id)];
    } catch (error) {
      const damage = damageOf(id, error);
      if (damage !== null) damaged.push(damage);
      return [];
    }
  };
  const sessions = (await Promise.all(names.slice(0, SESSIONS_MAX).map(read))).flat();
  return { sessions: sessions.sort((a, b) => b.lastUsedAt.localeCompare(a.lastUsedAt)), damaged };
}

/** Returns null for a session that was removed, or that never was one. */
function damageOf(id: string, error: unknown): DamagedSession | null {
  if (!(error instanceof CaissonError)) throw error;
  return error.code === "not_found" || error.code === "invalid" ? null : { id, reason: error.message };
}

/** A damaged record counts as empty. */
function pointsIn({ points }: Readonly<Record<string, unknown>>): StoredPoint[] {
  const parsed = StoredPoint.array().safeParse(points ?? []);
  return parsed.success ? parsed.data : [];
}

function checkId(id: string): string {
  const parsed = checkValue(SessionId, id);
  if (parsed.success) return parsed.data;
  throw new CaissonError("invalid", `${JSON.stringify(id.slice(0, 80))} is not a valid session name: ${tellProblems(parsed.problems)}`);
}

/** Checks that a workspace folder exists. Throws `not_found`, `invalid`. */
export async function checkFolder(path: string): Promise<void> {
  const found = await stat(path).catch((error: unknown) => {
    throw new CaissonError("not_found", `the folder ${path} does not exist`, { cause: error });
  });
  if (!found.isDirectory()) throw new CaissonError("invalid", `${path} is not a folder`);
}

/** Removes an unused folder. Layers contain files of other users, so the runtime must remove the layers first. */
export async function removeFolder(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true });
}
