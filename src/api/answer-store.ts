import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { CaissonError } from "../contract/error/error.ts";
import { openMendedDatabase } from "../lib/private-database.ts";

export const answerLimits = {
  /** How long a key identifies its request. */
  keptMs: 24 * 3_600_000,
  /** The most keys of one caller. The oldest are dropped first. */
  perCallerMax: 10_000,
  /** The longest stored answer. For a longer answer, only the status is stored. */
  bodyCharactersMax: 64 * 1024,
  tidyMs: 60_000,
} as const;

const SQLITE_FULL = 13;

/** An answer. `body` is null if the answer had no body, or if it was not stored. */
export interface KeptAnswer {
  status: number;
  body: string | null;
  /** Whether the answer can be repeated. */
  isWhole: boolean;
}

export interface AskedOnce {
  caller: string;
  key: string;
  /** The digest of the whole request: a key identifies exactly one. */
  digest: string;
}

export type BegunCall = { kind: "first"; keep(answer: KeptAnswer): void; forget(): void } | { kind: "again"; answer: KeptAnswer };

/**
 * Stores requests that carry an idempotency key, with their answers, so that a repeated request has no further effect.
 */
export interface AnswerStore extends Disposable {
  /**
   * Records the request durably before it returns. Throws `conflict` if the key belongs to a different request, or if
   * the station stopped during the first request, so that its outcome is unknown. Throws `busy` while the first request
   * is in progress, and `no_space`.
   */
  begin(request: AskedOnce): BegunCall;
}

interface Row {
  digest: string;
  status: number | null;
  body: string | null;
  whole: number;
}

interface AnswersOptions {
  path: string;
  now?: () => number;
  /** Receives the new path of a damaged file. Earlier requests with keys may then be executed again. */
  onDamaged?: (aside: string) => void;
}

/** Opens the store in a separate file: only the station uses it, and answers are needed for a day only. */
export function openAnswerStore({ path, now = Date.now, onDamaged = () => {} }: AnswersOptions): AnswerStore {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const mended = openMendedDatabase(path, { prepare, onDamaged });
  const underWay = new Set<string>();
  let tidyAt = 0;
  const writeNote = (write: (statements: Statements) => unknown) => noteOf(() => mended.use(write));
  return {
    begin(request) {
      if (now() >= tidyAt) {
        mended.use((statements) => tidy(statements, now()));
        tidyAt = now() + answerLimits.tidyMs;
      }
      const { caller, key, digest } = request;
      const id = `${caller} ${key}`;
      const since = now() - answerLimits.keptMs;
      const row = mended.use(({ find }) => find.get(caller, key, since)) as unknown as Row | undefined;
      if (row !== undefined) return { kind: "again", answer: knownAnswer(row, { digest, isUnderWay: underWay.has(id) }) };
      writeNote(({ begin }) => begin.run(caller, key, digest, now()));
      underWay.add(id);
      return {
        kind: "first",
        keep({ status, body, isWhole }) {
          underWay.delete(id);
          const fits = body === null || body.length <= answerLimits.bodyCharactersMax;
          // Written without waiting for the disk, unlike the beginning. If a power cut loses it, the outcome is
          // unknown, and the next answer says so.
          writeNote(({ database, keep }) => {
            database.exec("PRAGMA synchronous = NORMAL");
            try {
              return keep.run(status, fits ? body : null, isWhole && fits ? 1 : 0, caller, key);
            } finally {
              database.exec("PRAGMA synchronous = FULL");
            }
          });
        },
        forget() {
          underWay.delete(id);
          writeNote(({ forget }) => forget.run(caller, key));
        },
      };
    },
    [Symbol.dispose]() {
      mended.close();
    },
  };
}

/** Opens the store with the first call that has a key. */
export function lazyAnswers(path: string, { onDefect }: { onDefect: (error: unknown) => void }): { open(): AnswerStore; close(): void } {
  let opened: AnswerStore | undefined;
  const onDamaged = (aside: string) =>
    onDefect(new CaissonError("lost", `the file of stored answers was damaged, and was moved to ${aside}`));
  return {
    open: () => (opened ??= openAnswerStore({ path, onDamaged })),
    close: () => opened?.[Symbol.dispose](),
  };
}

function knownAnswer(row: Row, { digest, isUnderWay }: { digest: string; isUnderWay: boolean }): KeptAnswer {
  if (row.digest !== digest) {
    throw new CaissonError("conflict", "this Idempotency-Key was already used for a different request", {
      hint: "Use a new key for each request.",
    });
  }
  if (isUnderWay) {
    throw new CaissonError("busy", "the first request with this Idempotency-Key is still in progress", {
      hint: "Try again in a moment.",
      details: { retryAfterSeconds: 1 },
    });
  }
  if (row.status !== null) return { status: row.status, body: row.body, isWhole: row.whole === 1 };
  throw new CaissonError("conflict", "the station stopped during this request; it may have taken effect", {
    hint: "Check the current state. To repeat the request, use a new key.",
    details: { interrupted: true },
  });
}

type Statements = Record<"find" | "begin" | "keep" | "forget" | "expire" | "crowded" | "trim", StatementSync> & { database: DatabaseSync };

function prepare(database: DatabaseSync): Statements {
  database.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;");
  database.exec(`CREATE TABLE IF NOT EXISTS answers (
    caller TEXT NOT NULL, key TEXT NOT NULL, digest TEXT NOT NULL, at INTEGER NOT NULL, status INTEGER, body TEXT, whole INTEGER NOT NULL,
    PRIMARY KEY (caller, key)) STRICT, WITHOUT ROWID;
    CREATE INDEX IF NOT EXISTS answers_at ON answers (caller, at);`);
  return {
    database,
    find: database.prepare("SELECT digest, status, body, whole FROM answers WHERE caller = ? AND key = ? AND at > ?"),
    begin: database.prepare("INSERT OR REPLACE INTO answers (caller, key, digest, at, whole) VALUES (?, ?, ?, ?, 0)"),
    keep: database.prepare("UPDATE answers SET status = ?, body = ?, whole = ? WHERE caller = ? AND key = ?"),
    forget: database.prepare("DELETE FROM answers WHERE caller = ? AND key = ?"),
    expire: database.prepare("DELETE FROM answers WHERE at <= ?"),
    crowded: database.prepare("SELECT caller FROM answers GROUP BY caller HAVING count(*) > ?"),
    trim: database.prepare(
      "DELETE FROM answers WHERE caller = ? AND key IN (SELECT key FROM answers WHERE caller = ? ORDER BY at DESC LIMIT -1 OFFSET ?)",
    ),
  };
}

function tidy({ expire, crowded, trim }: Statements, now: number): void {
  expire.run(now - answerLimits.keptMs);
  for (const { caller } of crowded.all(answerLimits.perCallerMax) as { caller: string }[]) {
    trim.run(caller, caller, answerLimits.perCallerMax);
  }
}

function noteOf(write: () => unknown): void {
  try {
    write();
  } catch (error) {
    if ((error as { errcode?: unknown }).errcode !== SQLITE_FULL) throw error;
    throw new CaissonError("no_space", "the disk has no room to record the request", { cause: error });
  }
}
