import { mkdir, readdir, readFile, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { CaissonError } from "../contract/error.ts";
import { SessionId } from "../contract/run.ts";
import { LockOwner, Session, type WorkspaceSource } from "../contract/session.ts";
import type { Lease, Log } from "../log/log.ts";

/** A lock lives this long without being renewed; its holder renews it while it works. */
export const LOCK_TTL_MS = 60 * 60_000;
const SESSIONS_MAX = 10_000;

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
  update(session: Session): Promise<void>;
  /** Exclusive. Throws `conflict` saying who holds it, since when and how to unlock. */
  lock(id: string, run: string): Promise<Lease>;
  lockOf(id: string): Promise<SessionLock | null>;
  /** Throws what `lock` would throw now. */
  checkFree(id: string): Promise<void>;
  unlock(lease: Lease): Promise<void>;
  /** Takes a lock away from whoever holds it; `force` also from one who may still be working. Throws `conflict`, `not_found`. */
  breakLock(id: string, options: { force: boolean }): Promise<void>;
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
  const update = async (session: Session) => {
    const path = join(dirOf(session.id), "session.json");
    await writeFile(`${path}.part`, JSON.stringify(session, null, 1), { mode: 0o600, flush: true });
    await rename(`${path}.part`, path);
  };
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
      const session: Session = { ...request, id: checkId(request.id), createdAt: at, lastUsedAt: at, commit: null, snapshot: null };
      await update(session);
      await log.append(stream(session.id), [{ type: "session.created", version: 1, data: { source: request.source } as never }]);
      return session;
    },
    async list() {
      const names = await readdir(root).catch(() => [] as string[]);
      const sessions = await Promise.all(names.slice(0, SESSIONS_MAX).map((id) => get(id).catch(() => null)));
      return sessions.filter((session) => session !== null).sort((a, b) => b.lastUsedAt.localeCompare(a.lastUsedAt));
    },
    async lock(id, run) {
      const session = await get(id);
      const owner = JSON.stringify({ run, ...identity } satisfies LockOwner);
      const gone = (other: string) => {
        const parsed = parseOwner(other);
        return parsed.run === run || (parsed.host === identity.host && !options.alive(parsed));
      };
      const lease = await log.acquire(stream(id), { owner, ttlMs: LOCK_TTL_MS, ownerGone: gone });
      if (!lease) throw await lockedBy(id, await lockOf(id));
      await update({ ...session, lastUsedAt: now().toISOString() });
      return lease;
    },
    async checkFree(id) {
      const held = await lockOf(id);
      if (held && !held.stale) throw await lockedBy(id, held);
    },
    unlock: (lease) => log.release(lease),
    async breakLock(id, { force }) {
      await get(id);
      const held = await lockOf(id);
      if (!held) return;
      if (!held.stale && !force) throw await lockedBy(id, held);
      const lease = await log.acquire(stream(id), { owner: "nobody", ttlMs: 1, ownerGone: () => true });
      if (lease) await log.release(lease);
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
    `The session ${id} is in use by ${owner.run} (${where}), until ${new Date(lock.expiresAtMs).toISOString()} at least.`,
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
