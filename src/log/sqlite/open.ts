import { DatabaseSync } from "node:sqlite";
import { CaissonError } from "../../contract/error.ts";
import { SCHEMA_VERSION, schema } from "./schema.ts";

/** SQLite's primary result codes that need an answer of their own; the extended code's low byte is the primary one. */
const BUSY = 5;
const LOCKED = 6;
const CORRUPT = 11;
const FULL = 13;
const NOT_A_DATABASE = 26;

export type SqliteFault = "busy" | "damaged" | "full" | "other";

/** What went wrong, by SQLite's own code, never by its words. */
export function sqliteFault(error: unknown): SqliteFault {
  const code = typeof error === "object" && error !== null && "errcode" in error ? Number(error.errcode) & 0xff : -1;
  if (code === BUSY || code === LOCKED) return "busy";
  if (code === CORRUPT || code === NOT_A_DATABASE) return "damaged";
  if (code === FULL) return "full";
  return "other";
}

export function translateSqlite(error: unknown, what: string): CaissonError {
  if (error instanceof CaissonError) return error;
  switch (sqliteFault(error)) {
    case "busy":
      return new CaissonError("unavailable", `${what}: another process holds the log for too long.`, { cause: error });
    case "damaged":
      return new CaissonError("internal", `${what}: the log file is damaged.`, {
        hint: "Run `caisson logs --check` to see what can still be read.",
        cause: error,
      });
    case "full":
      return new CaissonError("no_space", `${what}: the disk is full.`, {
        hint: "Free some space; nothing that was acknowledged is lost.",
        cause: error,
      });
    case "other":
      return new CaissonError("unavailable", `${what}: the log cannot be used.`, { cause: error });
  }
}

/** How long one statement may wait for another process before the caller gets to do something else and tries again. */
const LOCK_WAIT_MS = 50;

/** Opens or makes the log file. WAL with synchronous=FULL: a commit that returned survives a power cut. */
export function openDatabase(path: string): DatabaseSync {
  try {
    const database = new DatabaseSync(path, { timeout: LOCK_WAIT_MS });
    database.exec("PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; PRAGMA journal_size_limit=67108864;");
    const version = Number((database.prepare("PRAGMA user_version").get() as { user_version: number }).user_version);
    if (version > SCHEMA_VERSION) {
      database.close();
      throw new CaissonError(
        "unsupported",
        `The log ${path} was written by a newer Caisson (schema ${version}, ours is ${SCHEMA_VERSION}).`,
        {
          hint: "Update Caisson, or point CAISSON_HOME to another folder.",
        },
      );
    }
    if (version < SCHEMA_VERSION) database.exec(`BEGIN IMMEDIATE; ${schema} PRAGMA user_version=${SCHEMA_VERSION}; COMMIT;`);
    return database;
  } catch (error) {
    throw translateSqlite(error, `Opening ${path}`);
  }
}
