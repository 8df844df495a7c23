import { closeSync, existsSync, openSync, statfsSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import { CaissonError } from "../../contract/error/error.ts";
import { fromSystem } from "../../contract/error/system-error.ts";
import { defined } from "../../lib/defined.ts";
import { ignoring, isErrno } from "../../lib/failures.ts";
import { openPrivateDatabase, sqlite } from "../../lib/private-database.ts";
import { SCHEMA_VERSION, schema, schemaSince2, schemaSince3, schemaSince4, schemaSince5 } from "./schema.ts";

/** SQLite's primary result codes that we handle separately. The low byte of an extended code is the primary one. */
const BUSY = 5;
const LOCKED = 6;
const READ_ONLY = 8;
const CORRUPT = 11;
const FULL = 13;
const IO = 10;
const CANNOT_OPEN = 14;
const NOT_A_DATABASE = 26;

export type SqliteFault = "busy" | "damaged" | "full" | "readOnly" | "io" | "other";

/** Classifies an error by SQLite's code, never by its message. */
export function sqliteFault(error: unknown): SqliteFault {
  const code = typeof error === "object" && error !== null && "errcode" in error ? Number(error.errcode) & 0xff : -1;
  if (code === BUSY || code === LOCKED) return "busy";
  if (code === CORRUPT || code === NOT_A_DATABASE) return "damaged";
  if (code === FULL) return "full";
  if (code === READ_ONLY) return "readOnly";
  if (code === IO || code === CANNOT_OPEN) return "io";
  return "other";
}

/** Returns SQLite's message with its code, which identifies the operation that failed. */
function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message : String(error);
  const code = typeof error === "object" && error !== null && "errcode" in error ? ` (SQLite ${Number(error.errcode)})` : "";
  return `${message}${code}`;
}

/** Translates SQLite's errors. All results have `details.log`: the log failed, not the work that it records. */
export function translateSqlite(error: unknown, what: string): CaissonError {
  if (error instanceof CaissonError) return error;
  const about = { cause: error, details: { log: true } };
  switch (sqliteFault(error)) {
    case "busy":
      return new CaissonError("unavailable", `${what}: another process has held the log for too long`, {
        ...about,
        hint: "No acknowledged event is lost. A backup or another program may have the log file open; try again when it has finished.",
      });
    case "damaged":
      return new CaissonError("internal", `${what}: the log file is damaged`, {
        ...about,
        hint: "Run `caisson logs --check` to see what can still be read.",
      });
    case "full":
      return new CaissonError("no_space", `${what}: the disk is full`, {
        ...about,
        hint: "Free some space. No acknowledged event is lost.",
      });
    case "readOnly":
      return new CaissonError("denied", `${what}: the log is read-only here`, {
        ...about,
        hint: "The disk is full or read-only, or the log belongs to another user.",
      });
    case "io":
      return new CaissonError("unavailable", `${what}: the log cannot be used: ${reasonOf(error)}`, {
        ...about,
        hint: "The disk or its file system failed, or was mounted read-only after an error: see `dmesg`. No acknowledged event is lost.",
      });
    case "other":
      return new CaissonError("unavailable", `${what}: the log cannot be used: ${reasonOf(error)}`, about);
  }
}

/** How long one statement may block on another process before we yield and retry. */
const LOCK_WAIT_MS = 50;
/** How long opening waits for another process that is creating the tables. */
const OPEN_WAIT_MS_MAX = 10_000;

/**
 * Opens the log file, creating it if necessary. WAL with synchronous=FULL: a commit that returned survives a power cut.
 * If nothing can be written (a full or read-only disk), an existing log is opened for reading, and every write fails.
 */
export function openDatabase(path: string): DatabaseSync {
  const isNew = !existsSync(path);
  try {
    return openForWriting(path);
  } catch (error) {
    if (error instanceof CaissonError) throw error;
    const fault = sqliteFault(error);
    const readable = isNew || fault === "busy" || fault === "damaged" ? null : openForReading(path);
    if (readable !== null) return readable;
    if (fault !== "busy" && fault !== "damaged" && isFull(path)) throw noSpace(path, error);
    throw systemReason(path) ?? translateSqlite(error, `opening ${path}`);
  }
}

/** Returns the system's reason if the file cannot be opened; SQLite reports none. */
function systemReason(path: string): CaissonError | null {
  try {
    closeSync(openSync(path, "r+"));
    return null;
  } catch (error) {
    const known = fromSystem(error);
    if (known !== null)
      return new CaissonError(known.code, `opening ${path}: ${known.message}`, {
        ...defined({ hint: known.hint }),
        cause: error,
        details: { log: true },
      });
    if (isErrno(error, "ENOENT")) return null;
    const why = error instanceof Error ? error.message : String(error);
    return new CaissonError("unavailable", `opening ${path}: the log cannot be used: ${why}`, { cause: error, details: { log: true } });
  }
}

function openForWriting(path: string): DatabaseSync {
  const database = openPrivateDatabase(path, { timeout: OPEN_WAIT_MS_MAX });
  try {
    database.exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; PRAGMA journal_size_limit=67108864;");
    const version = versionOf(database);
    if (version > SCHEMA_VERSION) throw tooNew(path, version);
    if (version < SCHEMA_VERSION) upgrade(database);
    database.exec(`PRAGMA busy_timeout=${LOCK_WAIT_MS}`);
    return database;
  } catch (error) {
    database.close();
    throw error;
  }
}

/**
 * Opens the log without writing. SQLite cannot create the index of the write-ahead log here, so the second attempt
 * declares the file immutable.
 */
function openForReading(path: string): DatabaseSync | null {
  const immutable = pathToFileURL(path);
  immutable.searchParams.set("immutable", "1");
  for (const place of [path, immutable]) {
    const why = "the next place is tried, then the caller throws its first error";
    const database = ignoring(why, () => new (sqlite().DatabaseSync)(place, { timeout: LOCK_WAIT_MS, readOnly: true }));
    if (database === undefined) continue;
    if (ignoring(why, () => versionOf(database)) === SCHEMA_VERSION) return database;
    database.close();
  }
  return null;
}

function upgrade(database: DatabaseSync): void {
  database.exec("BEGIN IMMEDIATE");
  // Another process may have upgraded it while we waited.
  const version = versionOf(database);
  if (version < 1) database.exec(schema);
  if (version < 2) database.exec(schemaSince2);
  if (version < 3) database.exec(schemaSince3);
  if (version < 4) database.exec(schemaSince4);
  if (version < 5) database.exec(schemaSince5);
  database.exec(`PRAGMA user_version=${SCHEMA_VERSION}; COMMIT;`);
}

function versionOf(database: DatabaseSync): number {
  return Number((database.prepare("PRAGMA user_version").get() as { user_version: number }).user_version);
}

function tooNew(path: string, version: number): CaissonError {
  return new CaissonError("unsupported", `the log ${path} was written by a newer Caisson (schema ${version}, ours is ${SCHEMA_VERSION})`, {
    hint: "Update Caisson, or set CAISSON_HOME to another folder.",
  });
}

/** Checks for a full disk ourselves: SQLite reports one only while it writes rows, not while it creates its files. */
function isFull(path: string): boolean {
  const disk = ignoring("the caller throws its first error", () => statfsSync(dirname(path)));
  return disk !== undefined && (disk.bavail === 0 || (disk.files > 0 && disk.ffree === 0));
}

function noSpace(path: string, cause: unknown): CaissonError {
  return new CaissonError("no_space", `opening ${path}: the disk is full`, {
    hint: "Free some space. No acknowledged event is lost.",
    cause,
  });
}
