import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import type { DatabaseSync, StatementSync } from "node:sqlite";
import { CaissonError } from "../contract/error.ts";
import { openMendedDatabase } from "../lib/private-database.ts";

export const answerLimits = {
  /** How long a key stands for what was asked with it. */
  keptMs: 24 * 3_600_000,
  /** Of one caller; the oldest go first. */
  perCallerMax: 10_000,
  /** Of a longer answer only that there was one is kept. */
  bodyCharactersMax: 64 * 1024,
  tidyMs: 60_000,
} as const;

const SQLITE_FULL = 13;

/** What was answered; `body` is null where there was none, or where it is not kept. */
export interface KeptAnswer {
  status: number;
  body: string | null;
  /** Whether it can be given again. */
  isWhole: boolean;
}

export interface AskedOnce {
  caller: string;
  key: string;
  /** Of all that was asked: the same key stands for one thing. */
  digest: string;
}

export type Begun = { kind: "first"; keep(answer: KeptAnswer): void; forget(): void } | { kind: "again"; answer: KeptAnswer };

/** What callers asked for with a key of theirs, and how it was answered: asking again does nothing again. */
export interface KeptAnswers extends Disposable {
  /**
   * Durable before it returns. Throws `conflict` for a key that stands for something else, and for one whose outcome
   * nobody knows, because the station ended in the middle; `busy` while the first is under way; `no_space`.
   */
  begin(asked: AskedOnce): Begun;
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
  /** Told where a damaged file was put: what was asked with keys before may be done again. */
  onDamaged?: (aside: string) => void;
}

/** In a file of its own: a station has it alone, and answers need not outlive a day. */
export function openKeptAnswers({ path, now = Date.now, onDamaged = () => {} }: AnswersOptions): KeptAnswers {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const mended = openMendedDatabase(path, { prepare, onDamaged });
  const underWay = new Set<string>();
  let tidyAt = 0;
  const written = (write: (statements: Statements) => unknown) => noteOf(() => mended.use(write));
  return {
    begin(asked) {
      if (now() >= tidyAt) {
        mended.use((statements) => tidy(statements, now()));
        tidyAt = now() + answerLimits.tidyMs;
      }
      const { caller, key, digest } = asked;
      const id = `${caller} ${key}`;
      const since = now() - answerLimits.keptMs;
      const found = mended.use(({ find }) => find.get(caller, key, since)) as unknown as Row | undefined;
      if (found !== undefined) return { kind: "again", answer: knownAnswer(found, { digest, isUnderWay: underWay.has(id) }) };
      written(({ begin }) => begin.run(caller, key, digest, now()));
      underWay.add(id);
      return {
        kind: "first",
        keep({ status, body, isWhole }) {
          underWay.delete(id);
          const fits = body === null || body.length <= answerLimits.bodyCharactersMax;
          // Not waited for as the beginning is: without it, after a power cut, nobody knows how it ended, and that is
          // what is said then.
          written(({ database, keep }) => {
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
          written(({ forget }) => forget.run(caller, key));
        },
      };
    },
    [Symbol.dispose]() {
      mended.close();
    },
  };
}

/** Opened with the first call that has a key. */
export function lazyAnswers(path: string, { onDefect }: { onDefect: (error: unknown) => void }): { open(): KeptAnswers; close(): void } {
  let opened: KeptAnswers | undefined;
  const onDamaged = (aside: string) =>
    onDefect(new CaissonError("lost", `the answers to earlier requests were damaged, and are in ${aside}`));
  return {
    open: () => (opened ??= openKeptAnswers({ path, onDamaged })),
    close: () => opened?.[Symbol.dispose](),
  };
}

function knownAnswer(found: Row, { digest, isUnderWay }: { digest: string; isUnderWay: boolean }): KeptAnswer {
  if (found.digest !== digest) {
    throw new CaissonError("conflict", "this Idempotency-Key was used for something else", { hint: "Use a new key for each request." });
  }
  if (isUnderWay) {
    throw new CaissonError("busy", "the first request with this Idempotency-Key is still under way", {
      hint: "Ask again in a moment.",
      details: { retryAfterSeconds: 1 },
    });
  }
  if (found.status !== null) return { status: found.status, body: found.body, isWhole: found.whole === 1 };
  throw new CaissonError("conflict", "the station ended while it did this, and nobody knows how far it came", {
    hint: "Look at what there is; to do it after all, ask with another key.",
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
    throw new CaissonError("no_space", "there is no room to note what was asked", { cause: error });
  }
}
