import { chmodSync, closeSync, openSync, renameSync, rmSync, statSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { isErrno } from "./is-errno.ts";

/** SQLite's primary result codes; the extended code's low byte is the primary one. */
const CORRUPT = 11;
const NOT_A_DATABASE = 26;
const companions = ["", "-wal", "-shm", "-journal"];

/** Loaded with the first database: in some versions of Node loading it prints a warning. */
export const sqlite = () => process.getBuiltinModule("node:sqlite");

/**
 * Makes a database an empty file that its user alone may read before SQLite opens it: SQLite would take the umask, and
 * gives the files that it makes beside it the same mode. A wider one is narrowed.
 */
export function openPrivateDatabase(path: string, options: { timeout?: number } = {}): DatabaseSync {
  try {
    closeSync(openSync(path, "wx", 0o600));
  } catch {
    // It exists, or it cannot be made: then SQLite says why.
    for (const each of companions) narrowFile(`${path}${each}`);
  }
  try {
    return new (sqlite().DatabaseSync)(path, options);
  } catch (error) {
    checkFileSystem(path);
    throw Object.assign(error as Error, { path });
  }
}

/**
 * SQLite says only that it cannot open a file. Throws what the system says where the file system failed. Tried with
 * another file: to close this one would drop the locks that the process has on it.
 */
function checkFileSystem(path: string): void {
  const probe = `${path}.${process.pid}.probe`;
  try {
    closeSync(openSync(probe, "wx", 0o600));
    rmSync(probe);
  } catch (error) {
    if (isErrno(error, "EROFS", "EIO", "ESHUTDOWN")) throw error;
  }
}

export interface MendedDatabase<Opened> {
  /** What is done in it at once. When that finds the file damaged, it is done again in a new one. */
  use<Result>(work: (opened: Opened) => Result): Result;
  close(): void;
}

/**
 * A database whose loss is worse than useless but not fatal: a damaged file is put beside its place, over one that was
 * put there before, and an empty one takes it.
 */
export function openMendedDatabase<Opened>(
  path: string,
  options: { timeout?: number; prepare: (database: DatabaseSync) => Opened; onDamaged: (aside: string) => void },
): MendedDatabase<Opened> {
  const open = (): { database: DatabaseSync; opened: Opened } => {
    const { timeout } = options;
    const database = openPrivateDatabase(path, timeout === undefined ? {} : { timeout });
    try {
      return { database, opened: options.prepare(database) };
    } catch (error) {
      database.close();
      if (!isDamage(error)) checkFileSystem(path);
      throw Object.assign(error as Error, { path });
    }
  };
  const openAgain = (error: unknown) => {
    if (!isDamage(error)) throw error;
    options.onDamaged(setAside(path));
    return open();
  };
  let current = attempt(open, openAgain);
  return {
    use: (work) =>
      attempt(
        () => work(current.opened),
        (error) => {
          if (isDamage(error)) current.database.close();
          current = openAgain(error);
          return work(current.opened);
        },
      ),
    close() {
      if (current.database.isOpen) current.database.close();
    },
  };
}

function attempt<Result>(work: () => Result, failed: (error: unknown) => Result): Result {
  try {
    return work();
  } catch (error) {
    return failed(error);
  }
}

function isDamage(error: unknown): boolean {
  const code = typeof error === "object" && error !== null && "errcode" in error ? Number(error.errcode) & 0xff : -1;
  return code === CORRUPT || code === NOT_A_DATABASE;
}

function setAside(path: string): string {
  const aside = `${path}.damaged`;
  for (const each of companions)
    if (statSync(`${path}${each}`, { throwIfNoEntry: false }) !== undefined) renameSync(`${path}${each}`, `${aside}${each}`);
  return aside;
}

function narrowFile(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false });
  if (found?.isFile() && (found.mode & 0o077) !== 0 && found.uid === process.getuid?.()) chmodSync(path, found.mode & 0o700);
}
