import { chmod, mkdir, readFile, rename, rm, truncate, writeFile } from "node:fs/promises";
import type { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import { CaissonError } from "../contract/error.ts";
import { readStationNote, type StationNote, stationFolder } from "../contract/station-note.ts";
import { insideSocket } from "../lib/inside-socket.ts";
import { openPrivateDatabase } from "../lib/private-database.ts";

/** How long a station that is just ending is waited for. */
const WAIT_MS = 3_000;
const LOOK_MS = 20;

export interface StationPlace extends AsyncDisposable {
  readonly socketPath: string;
  /** Whether the last station here did not end by itself. */
  readonly wasKilled: boolean;
}

/**
 * Takes the state folder's place for a station, until it is disposed of or the process dies in whatever way: the lock
 * is the kernel's, on a file that SQLite holds. What a station that was killed left is removed. Throws `conflict` with
 * the pid of the station that is there.
 */
export async function takePlace(stateDir: string, note: Omit<StationNote, "pid">): Promise<StationPlace> {
  const { folder, socketPath, lockPath, notePath } = stationFolder(stateDir);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  // The socket is open to whoever may enter its folder, until it has its own mode.
  await chmod(folder, 0o700);
  const lock = await lockFile(lockPath, { isServing: async () => (await pidIn(notePath)) !== null });
  if (lock === null) throw taken(await pidIn(notePath));
  const leave = async () => {
    await rm(socketPath, { force: true });
    await rm(insideSocket(stateDir), { force: true });
    await rm(notePath, { force: true });
  };
  const wasKilled = (await pidIn(notePath)) !== null;
  try {
    await leave();
    const fresh = `${notePath}.new`;
    await writeFile(fresh, JSON.stringify({ pid: process.pid, ...note } satisfies StationNote), { mode: 0o600 });
    await rename(fresh, notePath);
  } catch (error) {
    lock.close();
    throw error;
  }
  return {
    socketPath,
    wasKilled,
    async [Symbol.asyncDispose]() {
      if (!lock.isOpen) return;
      // While nobody else can have taken the place.
      await leave();
      lock.close();
    },
  };
}

/**
 * Null when another process has it. One that is just ending, and has said so, is waited for. A file that is damaged is
 * emptied: SQLite reads it only while no process holds it, and it keeps nothing but the lock. Throws `unavailable`.
 */
async function lockFile(path: string, { isServing }: { isServing: () => Promise<boolean> }): Promise<DatabaseSync | null> {
  const deadline = performance.now() + WAIT_MS;
  for (let isEmptied = false; ; ) {
    const tried = tryLock(path);
    if (tried.lock !== null) return tried.lock;
    const fault = faultOf(tried.error);
    if (fault === "damaged" && !isEmptied) {
      // In place: a process that opened it before must keep the same file.
      await truncate(path);
      isEmptied = true;
      continue;
    }
    if (fault !== "held") throw unusable(path, tried.error);
    if ((await isServing()) || performance.now() > deadline) return null;
    await delay(LOOK_MS);
  }
}

function tryLock(path: string): { lock: DatabaseSync } | { lock: null; error: unknown } {
  let lock: DatabaseSync | null = null;
  try {
    lock = openPrivateDatabase(path);
    lock.exec("BEGIN EXCLUSIVE");
    return { lock };
  } catch (error) {
    lock?.close();
    return { lock: null, error };
  }
}

/** SQLite's primary codes: busy and locked; damaged and not a database. */
function faultOf(error: unknown): "held" | "damaged" | "other" {
  const code = typeof error === "object" && error !== null && "errcode" in error ? Number(error.errcode) & 0xff : -1;
  if (code === 5 || code === 6) return "held";
  return code === 11 || code === 26 ? "damaged" : "other";
}

function unusable(path: string, cause: unknown): CaissonError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new CaissonError("unavailable", `the station's lock ${path} cannot be used: ${why}`, {
    hint: "No station holds it. See that it is a file of yours on a disk that can be written to, or remove it.",
    cause,
  });
}

async function pidIn(notePath: string): Promise<number | null> {
  return readStationNote(await readFile(notePath, "utf8").catch(() => ""))?.pid ?? null;
}

function taken(pid: number | null): CaissonError {
  return new CaissonError("conflict", `a station of this state folder runs already${pid === null ? "" : `, as process ${pid}`}`, {
    hint: "`caisson status` shows it, `caisson down` ends it.",
    ...(pid !== null && { details: { pid } }),
  });
}
