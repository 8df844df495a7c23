import { chmod, mkdir, readFile, rename, rm, truncate, writeFile } from "node:fs/promises";
import type { DatabaseSync } from "node:sqlite";
import { setTimeout as delay } from "node:timers/promises";
import { CaissonError } from "../contract/error/error.ts";
import { readStationNote, type StationNote, stationFolder } from "../contract/station-note.ts";
import { ABSENT, ifErrno } from "../lib/failures.ts";
import { insideSocket } from "../lib/inside-socket.ts";
import { openPrivateDatabase } from "../lib/private-database.ts";

/** How long to wait for a station that is ending. */
const WAIT_MS = 3_000;
const LOOK_MS = 20;

export interface StationPlace extends AsyncDisposable {
  readonly socketPath: string;
  /** Whether the last station here died without shutting down. */
  readonly wasKilled: boolean;
}

/**
 * Claims the state folder for one station, until disposal or the death of the process: the lock is a kernel lock on a
 * file that SQLite holds. Removes what a killed station left behind. Throws `conflict` with the pid of the running
 * station.
 */
export async function takePlace(stateDir: string, note: Omit<StationNote, "pid">): Promise<StationPlace> {
  const { folder, socketPath, lockPath, notePath } = stationFolder(stateDir);
  await mkdir(folder, { recursive: true, mode: 0o700 });
  // Anyone who may enter the folder can open the socket until the socket has its own mode.
  await chmod(folder, 0o700);
  const lock = await lockFile(lockPath, { isServing: async () => (await pidIn(notePath)) !== null });
  if (lock === null) throw alreadyRunning(await pidIn(notePath));
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
      // Before the lock is released, so that no other process can have claimed the folder.
      await leave();
      lock.close();
    },
  };
}

/**
 * Returns null if another process holds the lock. Waits for a station that is ending, which has removed its note.
 * Empties a damaged file: SQLite reads it only while no process holds it, and it contains nothing but the lock. Throws
 * `unavailable`.
 */
async function lockFile(path: string, { isServing }: { isServing: () => Promise<boolean> }): Promise<DatabaseSync | null> {
  const deadline = performance.now() + WAIT_MS;
  for (let isEmptied = false; ; ) {
    const tried = tryLock(path);
    if (tried.lock !== null) return tried.lock;
    const fault = faultOf(tried.error);
    if (fault === "damaged" && !isEmptied) {
      // In place: a process that opened the file earlier must keep the same file.
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

/** The primary codes of SQLite: 5 busy, 6 locked; 11 damaged, 26 not a database. */
function faultOf(error: unknown): "held" | "damaged" | "other" {
  const code = typeof error === "object" && error !== null && "errcode" in error ? Number(error.errcode) & 0xff : -1;
  if (code === 5 || code === 6) return "held";
  return code === 11 || code === 26 ? "damaged" : "other";
}

function unusable(path: string, cause: unknown): CaissonError {
  const why = cause instanceof Error ? cause.message : String(cause);
  return new CaissonError("unavailable", `the station's lock ${path} cannot be used: ${why}`, {
    hint: "No station holds it. Make sure that you own the file and that its disk is writable, or remove it.",
    cause,
  });
}

async function pidIn(notePath: string): Promise<number | null> {
  return readStationNote(await ifErrno(readFile(notePath, "utf8"), ABSENT, ""))?.pid ?? null;
}

function alreadyRunning(pid: number | null): CaissonError {
  return new CaissonError("conflict", `a station is already running on this state folder${pid === null ? "" : `, as process ${pid}`}`, {
    hint: "Show it with `caisson status`, or end it with `caisson down`.",
    ...(pid !== null && { details: { pid } }),
  });
}
