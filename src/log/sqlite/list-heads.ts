import type { DatabaseSync } from "node:sqlite";
import { compareHeads, type HeadCursor, type HeadFilter, passesFilter } from "../head-filter.ts";
import type { Projection } from "../projection.ts";
import { askedTerms, type createHeadIndex } from "./head-index.ts";
import type { DatedHead } from "./head-rows.ts";
import { endOfPrefix } from "./stale-heads.ts";

interface Listing {
  database: DatabaseSync;
  index: ReturnType<typeof createHeadIndex>;
  projection: Projection | null;
  page: { after?: HeadCursor; limit: number };
}

/** Returns a page of the stored heads, and their total. */
export async function listHeads(filter: HeadFilter, options: Listing): Promise<{ heads: DatedHead[]; total: number; isMinimum: boolean }> {
  const { index, projection, page } = options;
  if (Object.values(filter.where ?? {}).some((values) => values.length === 0)) return { heads: [], total: 0, isMinimum: false };
  const terms = filter.open === true ? null : askedTerms(projection, filter);
  if (terms === null) return scanHeads(filter, options);
  const open = filter.open === false ? { heads: [], total: 0, isMinimum: false } : scanHeads({ ...filter, open: true }, options);
  const { termGroups, rest } = terms;
  const isPlain = Object.keys(rest).length === 0 && filter.matches === undefined;
  const ofRest: HeadFilter = { prefix: filter.prefix, where: rest, ...(filter.matches && { matches: filter.matches }) };
  const passes = isPlain ? null : (row: DatedHead) => passesAlone(row, ofRest, projection);
  const times = filter.updated === undefined ? {} : { updated: filter.updated };
  const closed = await index.page(termGroups, { ...page, ...times, passes });
  const heads = [...open.heads, ...closed].sort(compareHeads).slice(0, page.limit);
  // If heads are checked one by one, the count covers only those checked so far.
  const counted = isPlain ? index.count(termGroups, times) : { total: closed.length, isMinimum: closed.length >= page.limit };
  return { heads, total: open.total + counted.total, isMinimum: counted.isMinimum };
}

/** Scans heads one by one: open ones, those of another prefix, or those of a kind without terms. */
function scanHeads(filter: HeadFilter, { database, projection, page }: Listing): { heads: DatedHead[]; total: number; isMinimum: boolean } {
  const { after, limit } = page;
  const { conditions, values } = conditionsOf(filter);
  // Forces the index. SQLite does not know how few heads are open, and would scan all of them.
  const index = filter.open === true ? "INDEXED BY heads_open" : "";
  const rows = database
    .prepare(
      `SELECT h.stream, h.seq, h.version, h.open, h.head, h.damage, s.at FROM heads h ${index} JOIN streams s ON s.stream = h.stream ` +
        `WHERE ${conditions.join(" AND ")} ORDER BY s.at DESC, h.stream`,
    )
    .all(...values) as unknown as DatedHead[];
  const isLookedAt = filter.terms !== undefined || filter.updated !== undefined || filter.matches !== undefined;
  const passing = isLookedAt ? rows.filter((row) => passesAlone(row, { ...filter, where: {} }, projection)) : rows;
  const rest = after === undefined ? passing : passing.filter((row) => compareHeads(row, after) > 0);
  return { heads: rest.slice(0, limit), total: passing.length, isMinimum: false };
}

function passesAlone(row: DatedHead, filter: HeadFilter, projection: Projection | null): boolean {
  const head = { head: JSON.parse(row.head), at: row.at, isOpen: row.open === 1 };
  return passesFilter(head, filter, (facts) => projection?.terms?.(facts) ?? []);
}

/** Builds the SQL conditions; the table of heads is `h`. `open` is a literal, so that SQLite uses the partial index. */
function conditionsOf({ prefix, open, where = {} }: HeadFilter): { conditions: string[]; values: string[] } {
  const conditions = ["h.stream >= ? AND h.stream < ?"];
  const values: string[] = [prefix, endOfPrefix(prefix)];
  if (open !== undefined) conditions.push(`h.open = ${open ? 1 : 0}`);
  for (const [path, wanted] of Object.entries(where)) {
    const texts = wanted.filter((value) => value !== null);
    const field = "json_extract(h.head, ?)";
    const isOneOf = `${field} IN (${texts.map(() => "?").join(", ")})`;
    conditions.push(wanted.includes(null) ? `(${isOneOf} OR ${field} IS NULL)` : isOneOf);
    values.push(`$.${path}`, ...texts, ...(wanted.includes(null) ? [`$.${path}`] : []));
  }
  return { conditions, values };
}
