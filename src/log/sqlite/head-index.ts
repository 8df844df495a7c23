import type { DatabaseSync } from "node:sqlite";
import { setImmediate as breathe } from "node:timers/promises";
import type { HeadCursor, HeadFilter } from "../head-filter.ts";
import type { Projection } from "../projection.ts";
import type { DatedHead } from "./head-rows.ts";

/** Counting stops here; a count that reaches it is a minimum. */
const COUNT_MAX = 1000;
/** Rows to check before yielding to the event loop, for conditions that no term covers. */
const LOOKED_AT = 500;

/** Alternative terms; a head must have one of them. */
type TermGroup = readonly string[];

/**
 * Indexes the heads of closed streams by their terms, last changed first. Written once, when a stream closes; open
 * streams are few and are scanned.
 */
export function createHeadIndex(database: DatabaseSync) {
  const insert = database.prepare("INSERT OR REPLACE INTO head_terms (term, at, stream) VALUES (?, ?, ?)");
  const drop = database.prepare("DELETE FROM head_terms WHERE term = ? AND at = ? AND stream = ?");
  const indexed = database.prepare("SELECT terms FROM heads WHERE stream = ?");
  const note = database.prepare("UPDATE heads SET terms = ? WHERE stream = ?");
  const remove = (stream: string): void => {
    const { terms = null } = (indexed.get(stream) ?? {}) as { terms?: string | null };
    if (terms === null) return;
    const [at = "", ...all] = JSON.parse(terms) as string[];
    for (const term of all) drop.run(term, at, stream);
    note.run(null, stream);
  };
  return {
    remove,
    /** Call after the row of the head is written. */
    put(stream: string, { terms, at }: { terms: readonly string[] | null; at: string }): void {
      remove(stream);
      if (terms === null) return;
      for (const term of terms) insert.run(term, at, stream);
      note.run(JSON.stringify([at, ...terms]), stream);
    },
    count: (termGroups: readonly TermGroup[], times: Pick<HeadFilter, "updated"> = {}): { total: number; isMinimum: boolean } => {
      const { sql, values } = walk(database, { termGroups, times, after: undefined });
      const row = database.prepare(`SELECT count(*) AS total FROM (SELECT 1 ${sql} LIMIT ?)`).get(...values, COUNT_MAX + 1);
      const { total } = row as { total: number };
      return { total: Math.min(total, COUNT_MAX), isMinimum: total > COUNT_MAX };
    },
    /** Returns the newest heads that pass, up to the limit. */
    async page(
      termGroups: readonly TermGroup[],
      options: Pick<HeadFilter, "updated"> & { after?: HeadCursor; limit: number; passes: ((row: DatedHead) => boolean) | null },
    ): Promise<DatedHead[]> {
      const { limit, passes } = options;
      const found: DatedHead[] = [];
      for (let after = options.after; ; ) {
        const { sql, values } = walk(database, { termGroups, times: options, after });
        const rows = database
          .prepare(
            "SELECT h.stream, h.seq, h.version, h.open, h.head, h.damage, w.at FROM " +
              `(SELECT t.stream AS stream, t.at AS at ${sql} ORDER BY t.at DESC, t.stream LIMIT ?) w ` +
              "JOIN heads h ON h.stream = w.stream ORDER BY w.at DESC, w.stream",
          )
          .all(...values, passes === null ? limit : LOOKED_AT) as unknown as DatedHead[];
        found.push(...(passes === null ? rows : rows.filter(passes)));
        const last = rows.at(-1);
        if (passes === null || found.length >= limit || rows.length < LOOKED_AT || last === undefined) return found.slice(0, limit);
        after = { at: last.at, stream: last.stream };
        await breathe();
      }
    },
  };
}

/**
 * Splits a filter into index terms and the rest, which must be checked on the heads themselves. Returns null if the
 * filter does not cover all heads of a projection with terms.
 */
export function askedTerms(
  projection: Projection | null,
  { prefix, where = {}, terms = [] }: HeadFilter,
): { termGroups: TermGroup[]; rest: NonNullable<HeadFilter["where"]> } | null {
  if (projection?.indexed === undefined || prefix !== projection.prefix) return null;
  const { indexed } = projection;
  const entries = Object.entries(where);
  const known = entries.filter(([path]) => indexed.includes(path));
  const rest = Object.fromEntries(entries.filter(([path]) => !indexed.includes(path)));
  const termGroups = [...known.map(([path, values]) => values.map((value) => termOf(path, value))), ...terms.map((term) => [term])];
  return { termGroups: (termGroups.length === 0 ? [[""]] : termGroups).map((each) => each.map((term) => ofKind(projection, term))), rest };
}

/** Returns the terms of a head. Every head has the empty term. */
export function termsOf(projection: Projection, head: DatedHead["head"] | object): string[] {
  const facts = typeof head === "string" ? JSON.parse(head) : head;
  const valueAt = (path: string) =>
    path.split(".").reduce<unknown>((value, name) => (value as Record<string, unknown> | null)?.[name], facts);
  const ofPaths = (projection.indexed ?? []).map((path) => termOf(path, (valueAt(path) as string | null | undefined) ?? null));
  return [...new Set(["", ...ofPaths, ...(projection.terms?.(facts) ?? [])])].map((term) => ofKind(projection, term));
}

/**
 * Keeps the terms of different kinds of streams apart. Those of runs have no prefix, for compatibility with older logs.
 */
const ofKind = ({ prefix }: Projection, term: string) => (prefix === "run/" ? term : `${prefix}${term}`);

const termOf = (path: string, value: string | null) => `${path}=${value ?? ""}`;

/** Builds a query that walks along the rarest terms (`t`) and checks the others. */
function walk(
  database: DatabaseSync,
  { termGroups, times, after }: { termGroups: readonly TermGroup[]; times: Pick<HeadFilter, "updated">; after: HeadCursor | undefined },
): { sql: string; values: (string | number)[] } {
  const oneOf = (name: string, terms: TermGroup) =>
    terms.length === 1 ? `${name}.term = ?` : `${name}.term IN (${terms.map(() => "?").join(", ")})`;
  const sizes = termGroups.map((terms) => ({ terms, size: sizeOf(database, terms) })).sort((left, right) => left.size - right.size);
  // Rows of one term are already sorted by time; rows of several terms must be sorted, so there must be few.
  const first = sizes.find(({ terms, size }) => terms.length === 1 || size <= COUNT_MAX)?.terms ?? [""];
  const others = termGroups.filter((terms) => terms !== first);
  const conditions = [oneOf("t", first)];
  const values: (string | number)[] = [...first];
  for (const terms of others) {
    conditions.push(`EXISTS (SELECT 1 FROM head_terms u WHERE ${oneOf("u", terms)} AND u.at = t.at AND u.stream = t.stream)`);
    values.push(...terms);
  }
  const { from, before } = times.updated ?? {};
  if (from !== undefined) conditions.push("t.at >= ?");
  if (before !== undefined) conditions.push("t.at < ?");
  values.push(...[from, before].filter((time) => time !== undefined));
  if (after !== undefined) {
    conditions.push("t.at <= ? AND (t.at < ? OR t.stream > ?)");
    values.push(after.at, after.at, after.stream);
  }
  return { sql: `FROM head_terms t WHERE ${conditions.join(" AND ")}`, values };
}

function sizeOf(database: DatabaseSync, terms: TermGroup): number {
  if (terms.length === 0) return 0;
  const row = database
    .prepare(`SELECT count(*) AS size FROM (SELECT 1 FROM head_terms WHERE term IN (${terms.map(() => "?").join(", ")}) LIMIT ?)`)
    .get(...terms, COUNT_MAX + 1);
  return (row as { size: number }).size;
}
