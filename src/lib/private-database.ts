import { chmodSync, closeSync, openSync, renameSync, rmSync, statSync } from "node:fs";
import type { DatabaseSync } from "node:sqlite";
import { ignoring, isErrno } from "./failures.ts";

/** SQLite's primary result codes. The low byte of an extended code is the primary one. */
const CORRUPT = 11;
const NOT_A_DATABASE = 26;
const companions = ["", "-wal", "-shm", "-journal"];

/** Loaded with the first database: some versions of Node print a warning when it loads. */
export const sqlite = () => process.getBuiltinModule("node:sqlite");

/**
 * Creates an empty file that only its user can read, then lets SQLite open it as the database. SQLite itself would
 * apply the umask, and it gives its companion files the mode of the database. Narrows the mode of an existing file.
 */
export function openPrivateDatabase(path: string, options: { timeout?: number } = {}): DatabaseSync {
  const handle = ignoring("the file exists, or SQLite reports below why it cannot be created", () => openSync(path, "wx", 0o600));
  if (handle === undefined) for (const each of companions) narrowFile(`${path}${each}`);
  else closeSync(handle);
  try {
    return new (sqlite().DatabaseSync)(path, options);
  } catch (error) {
    checkFileSystem(path);
    throw Object.assign(error as Error, { path });
  }
}

/**
 * Throws the system's own error if the file system failed; SQLite only reports that it cannot open a file. Probes with
 * a separate file: closing the database file would drop the locks that this process holds on it.
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
  /** Runs synchronous work on the database. If the work finds the file damaged, it runs again on a new file. */
  use<Result>(work: (opened: Opened) => Result): Result;
  close(): void;
}

/**
 * A database that is disposable: if the file is damaged, we rename it to `.damaged`, replacing an earlier one, and
 * start with an empty file.
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
