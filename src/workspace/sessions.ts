import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { CaissonError } from "../contract/error.ts";
import { SessionId } from "../contract/run.ts";
import { LockOwner, Session, type WorkspaceSource } from "../contract/session.ts";
import { type NewSessionEvent, SessionEvent } from "../contract/session-event.ts";
import { type HeldLease, holdLease } from "../log/hold-lease.ts";
import type { Log } from "../log/log.ts";
import { withoutSecret } from "./git/address.ts";

/** A lock lives this long without being renewed; its holder renews it while it works. */
export const LOCK_TTL_MS = 60 * 60_000;
const SESSIONS_MAX = 10_000;
const HISTORY_MAX = 10_000;

export interface SessionLock {
  readonly owner: LockOwner;
  readonly epoch: number;
  readonly expiresAtMs: number;
  /** Whether its holder can no longer be working: its process is gone, or the time is up. */
  readonly stale: boolean;
}

export interface SessionStore {
  /** Throws `exists`. */
  create(options: { id: string; source: WorkspaceSource; scope: Session["scope"]; cleanup: Session["cleanup"] }): Promise<Session>;
  /** Throws `not_found`. */
  get(id: string): Promise<Session>;
  list(): Promise<Session[]>;
  /** Gives a session whose record is damaged a record again, of an empty workspace, so that it can be removed. */
  repair(id: string): Promise<void>;
  /** Changes some of a session's facts; its holder's business. Resolves with all of them. */
  update(id: string, facts: Partial<Pick<Session, "lastUsedAt" | "commit" | "preparedAt" | "runtime" | "snapshot">>): Promise<Session>;
  /**
   * Exclusive, and renewed until it is disposed of; `lost` says that somebody took it away. The same run gets it again, after its process died. Throws `conflict` saying
   * who holds it, since when and how to unlock.
   */
  lock(id: string, run: string): Promise<HeldLease>;
  lockOf(id: string): Promise<SessionLock | null>;
  /** Throws what `lock` would throw now. */
  checkFree(id: string): Promise<void>;
  /** Takes a lock away from whoever holds it; `force` also from one who may still be working. Throws `conflict`, `not_found`. */
  breakLock(id: string, options: { force: boolean }): Promise<void>;
  /** Adds to the session's history, which outlives it. `once`: unless the same is there already. */
  record(id: string, event: NewSessionEvent, options?: { once?: boolean }): Promise<void>;
  history(id: string): Promise<SessionEvent[]>;
  /** Git's names of what was brought to the user's folder from here, by path. */
  applied(id: string): Promise<Map<string, string>>;
  noteApplied(id: string, files: ReadonlyMap<string, string>): Promise<void>;
  /** The folders of a git workspace's layer as they were checked out, each as its inode. */
  folders(id: string): Promise<Record<string, number>>;
  noteFolders(id: string, folders: Readonly<Record<string, number>>): Promise<void>;
  /** The folder of the host that keeps the changes of a session's workspace, and the folder below it. */
  paths(session: Session): { layer: string; lower: string; dir: string };
}

export function createSessionStore(options: {
  stateDir: string;
  log: Log;
  identity: { pid: number; host: string; startTicks: number; bootId: string };
  alive: (owner: { pid: number; startTicks: number; bootId: string }) => boolean;
  now?: () => Date;
}): SessionStore {
  const { log, identity } = options;
  const now = options.now ?? (() => new Date());
  const root = join(options.stateDir, "sessions");
  const dirOf = (id: string) => join(root, checkId(id));
  const stream = (id: string) => `session/${id}`;

  const get = async (id: string): Promise<Session> => {
    const text = await readFile(join(dirOf(id), "session.json"), "utf8").catch(() => null);
    if (text === null) throw new CaissonError("not_found", `There is no session ${id}.`, { hint: "`caisson session ls` lists them." });
    return parseSession(id, text);
  };
  const replace = async (id: string, name: string, content: unknown) => {
    const path = join(dirOf(id), name);
    const part = `${path}.part-${identity.pid}`;
    await writeFile(part, JSON.stringify(content, null, 1), { mode: 0o600, flush: true });
    await rename(part, path);
  };
  const update: SessionStore["update"] = async (id, facts) => {
    const session = { ...(await get(id)), ...facts };
    await replace(id, "session.json", session);
    return session;
  };
  const history: SessionStore["history"] = async (id) => {
    const events = await log.read(stream(id), { limit: HISTORY_MAX });
    // What another version wrote is not ours to understand; the rest is still worth showing.
    return events.flatMap((event) => SessionEvent.safeParse(event).data ?? []);
  };
  const record: SessionStore["record"] = async (id, event, { once = false } = {}) => {
    if (once && (await history(id)).some((known) => known.type === event.type && isDeepStrictEqual(known.data, event.data))) return;
    await log.append(stream(id), [{ type: event.type, version: 1, data: event.data as never }]);
  };
  const readRecord = async <Value>(id: string, name: string): Promise<Record<string, Value>> => {
    const text = await readFile(join(dirOf(id), name), "utf8").catch(() => "{}");
    return (safeJson(text) ?? {}) as Record<string, Value>;
  };
  const applied: SessionStore["applied"] = async (id) => new Map(Object.entries(await readRecord<string>(id, "applied.json")));
  const lockOf = async (id: string): Promise<SessionLock | null> => {
    const held = await log.holder(stream(id));
    if (!held) return null;
    const owner = parseOwner(held.owner);
    return { owner, epoch: held.epoch, expiresAtMs: held.expiresAtMs, stale: owner.host === identity.host && !options.alive(owner) };
  };

  return {
    get,
    update,
    lockOf,
    record,
    history,
    applied,
    folders: (id) => readRecord<number>(id, "folders.json"),
    noteFolders: (id, folders) => replace(id, "folders.json", folders),
    async noteApplied(id, files) {
      await replace(id, "applied.json", Object.fromEntries([...(await applied(id)), ...files]));
    },
    async create(request) {
      const dir = dirOf(request.id);
      await mkdir(root, { recursive: true, mode: 0o700 });
      await mkdir(dir, { mode: 0o700 }).catch((error: unknown) => {
        throw new CaissonError("exists", `There is a session ${request.id} already.`, {
          hint: `Use it with --session ${request.id}, or choose another name.`,
          cause: error,
        });
      });
      await mkdir(join(dir, "layer"), { mode: 0o755 });
      await mkdir(join(dir, "empty"), { mode: 0o755 });
      const at = now().toISOString();
      const nothingYet = { commit: null, preparedAt: null, runtime: null, snapshot: null };
      const session: Session = { ...request, id: checkId(request.id), createdAt: at, lastUsedAt: at, ...nothingYet };
      await replace(session.id, "session.json", session);
      const { source, scope, cleanup } = session;
      await record(session.id, { type: "session.created", data: { source: withoutSecret(source), scope, cleanup } });
      return session;
    },
    async repair(id) {
      const at = now().toISOString();
      const nothing = { source: { kind: "empty" as const }, commit: null, preparedAt: null, runtime: null, snapshot: null };
      await replace(id, "session.json", {
        id: checkId(id),
        createdAt: at,
        lastUsedAt: at,
        scope: "run",
        cleanup: "never",
        ...nothing,
      } satisfies Session);
    },
    async list() {
      const names = await readdir(root).catch(() => [] as string[]);
      const sessions = await Promise.all(names.slice(0, SESSIONS_MAX).map((id) => get(id).catch(() => null)));
      return sessions.filter((session) => session !== null).sort((a, b) => b.lastUsedAt.localeCompare(a.lastUsedAt));
    },
    async lock(id, run) {
      await get(id);
      const owner = JSON.stringify({ run, ...identity, since: now().toISOString() } satisfies LockOwner);
      const gone = (other: string) => {
        const parsed = parseOwner(other);
        return parsed.run === run || (parsed.host === identity.host && !options.alive(parsed));
      };
      const held = await holdLease(log, stream(id), { owner, ttlMs: LOCK_TTL_MS, ownerGone: gone });
      if (!held) throw await lockedBy(id, await lockOf(id));
      await update(id, { lastUsedAt: now().toISOString() });
      return held;
    },
    async checkFree(id) {
      const held = await lockOf(id);
      if (held && !held.stale) throw await lockedBy(id, held);
    },
    async breakLock(id, { force }) {
      await get(id);
      const held = await lockOf(id);
      if (!held) return;
      if (!held.stale && !force) throw await lockedBy(id, held);
      const lease = await log.acquire(stream(id), { owner: "nobody", ttlMs: 1, ownerGone: () => true });
      if (!lease) return;
      await log.release(lease);
      await record(id, { type: "session.unlocked", data: { run: held.owner.run, forced: !held.stale } });
    },
    paths(session) {
      const dir = dirOf(session.id);
      return { dir, layer: join(dir, "layer"), lower: session.source.kind === "folder" ? session.source.path : join(dir, "empty") };
    },
  };
}

async function lockedBy(id: string, lock: SessionLock | null): Promise<CaissonError> {
  if (!lock) return new CaissonError("conflict", `The session ${id} was locked just now.`, { hint: "Try again." });
  const { owner } = lock;
  const where = `process ${owner.pid} on ${owner.host}`;
  return new CaissonError(
    "conflict",
    `The session ${id} is in use by ${owner.run} (${where})${owner.since === undefined ? "" : ` since ${owner.since}`}.`,
    {
      hint: `Wait for it, stop it with \`caisson stop ${owner.run}\`, or, if it is dead, \`caisson session unlock --force ${id}\`.`,
      details: { owner },
    },
  );
}

function parseSession(id: string, text: string): Session {
  const parsed = Session.safeParse(safeJson(text));
  if (parsed.success) return parsed.data;
  throw new CaissonError("internal", `The record of the session ${id} is damaged.`, {
    hint: `\`caisson session rm --force ${id}\` removes it.`,
  });
}

function parseOwner(text: string): LockOwner {
  const parsed = LockOwner.safeParse(safeJson(text));
  return parsed.success ? parsed.data : { run: text, pid: 0, host: "", startTicks: 0, bootId: "" };
}

function safeJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function checkId(id: string): string {
  const parsed = SessionId.safeParse(id);
  if (parsed.success) return parsed.data;
  throw new CaissonError("invalid", `${JSON.stringify(id.slice(0, 80))} is not a session's name: ${parsed.error.issues[0]?.message}.`);
}

/** Whether a folder that should be a workspace is one. Throws `not_found`, `invalid`. */
export async function checkFolder(path: string): Promise<void> {
  const found = await stat(path).catch((error: unknown) => {
    throw new CaissonError("not_found", `The folder ${path} is not there.`, { cause: error });
  });
  if (!found.isDirectory()) throw new CaissonError("invalid", `${path} is not a folder.`);
}

/** Removes a folder nobody uses; for layers, which hold files of other owners, the runtime's own removal must have come before. */
export async function removeFolder(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true });
}
