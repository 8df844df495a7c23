import type { DatabaseSync } from "node:sqlite";
import { compareHeads, type HeadCursor, type HeadFilter, matchesHead } from "../head-filter.ts";
import type { StoredEvent, StreamHead } from "../log.ts";
import { type FindProjection, type Projection, project } from "../projection.ts";
import type { Appended } from "./commit.ts";

interface HeadRow {
  stream: string;
  seq: number;
  version: number;
  open: number;
  head: string;
  damage: string | null;
}

type EndRow = { stream: string; last_seq: number; at: string };
type DatedHead = HeadRow & { at: string };

/** Events folded at a time when a head is made again. */
const PAGE = 2000;
/** Heads remembered between two appends of ours; beyond it the one that waited longest is read again. */
const REMEMBERED_MAX = 1000;

interface HeadsOptions {
  database: DatabaseSync;
  projectionOf: FindProjection;
  read: (stream: string, fromSeq: number, limit: number) => StoredEvent[];
  change: <Result>(work: () => Result) => Promise<Result>;
}

/**
 * The heads of streams: kept with each append, and made again from the events where an older Caisson, or none of ours,
 * appended last.
 */
export function createHeads(options: HeadsOptions) {
  const { database, projectionOf } = options;
  const find = database.prepare("SELECT stream, seq, version, open, head, damage FROM heads WHERE stream = ?");
  const findRow = (stream: string) => find.get(stream) as unknown as HeadRow | undefined;
  const put = database.prepare(
    "INSERT INTO heads (stream, seq, version, open, head, damage) VALUES (?, ?, ?, ?, ?, ?) " +
      "ON CONFLICT (stream) DO UPDATE SET seq = excluded.seq, version = excluded.version, open = excluded.open, head = excluded.head, " +
      "damage = excluded.damage WHERE excluded.seq > heads.seq OR excluded.version <> heads.version",
  );
  const move = database.prepare(
    "UPDATE heads SET seq = ?, open = ?, head = ?, damage = coalesce(damage, ?) WHERE stream = ? AND seq = ? AND version = ?",
  );
  const remembered = new Map<string, { end: Appended["end"]; made: ReturnType<typeof project> }>();
  /** What the head is before an append: as our own last append left it, unless somebody else came in between. */
  const before = (stream: string, after: Appended["after"], projection: Projection): ReturnType<typeof project> | null => {
    const known = remembered.get(stream);
    remembered.delete(stream);
    if (known !== undefined && known.end.seq === after.seq && known.end.sum === after.sum) return known.made;
    const row = findRow(stream);
    return row?.seq === after.seq && row.version === projection.version ? { head: JSON.parse(row.head), damage: row.damage } : null;
  };
  const store = (row: HeadRow) => put.run(row.stream, row.seq, row.version, row.open, row.head, row.damage);
  const ends = database.prepare("SELECT stream, last_seq, at FROM streams WHERE stream = ?");

  /** From the first event on, without writing anything. */
  const make = ({ stream, last_seq, at }: EndRow): DatedHead | null => {
    const projection = projectionOf(stream);
    if (projection === null) return null;
    let made = project(projection, { head: null, damage: null }, []);
    for (let fromSeq = 1; fromSeq <= last_seq; ) {
      const page = readable(() => options.read(stream, fromSeq, PAGE));
      made = project(projection, made, page ?? []);
      if (page === null || page.length === 0) {
        made.damage ??= `nothing can be read from event ${fromSeq} on`;
        break;
      }
      fromSeq = (page.at(-1)?.seq ?? fromSeq) + 1;
    }
    return { ...rowOf(projection, { stream, seq: last_seq }, made), at };
  };
  const makeAndStore = async (end: EndRow): Promise<DatedHead | null> => {
    const made = make(end);
    // A log that cannot be written to is shown all the same.
    if (made !== null) await options.change(() => store(made)).catch(() => undefined);
    return made;
  };
  const current = async (stream: string): Promise<DatedHead | null> => {
    const projection = projectionOf(stream);
    const end = ends.get(stream) as EndRow | undefined;
    if (projection === null || end === undefined || end.last_seq === 0) return null;
    const row = findRow(stream);
    return row?.seq === end.last_seq && row.version === projection.version ? { ...row, at: end.at } : await makeAndStore(end);
  };
  return {
    /** In the transaction of an append. One that is behind, or of another version, is made again when asked for. */
    advance(stream: string, { after, end, at, events }: Appended): void {
      const projection = projectionOf(stream);
      if (projection === null) return;
      const from = after.seq === 0 ? { head: null, damage: null } : before(stream, after, projection);
      if (from === null) return;
      const made = project(
        projection,
        from,
        events.map((event, index) => ({ ...event, at, seq: after.seq + index + 1 })),
      );
      const row = rowOf(projection, { stream, seq: end.seq }, made);
      if (after.seq === 0) store(row);
      else if (move.run(row.seq, row.open, row.head, row.damage, stream, after.seq, row.version).changes === 0) return;
      // Somebody may repair the damage; then the row says so.
      if (made.damage !== null) return;
      if (remembered.size >= REMEMBERED_MAX) remembered.delete(remembered.keys().next().value ?? "");
      remembered.set(stream, { end, made });
    },
    remove(stream: string): void {
      database.prepare("DELETE FROM heads WHERE stream = ?").run(stream);
    },
    async head(stream: string): Promise<StreamHead | null> {
      const row = await current(stream);
      return row === null ? null : toHead(row);
    },
    async list({ after, limit, ...filter }: HeadFilter & { after?: HeadCursor; limit: number }) {
      const made = new Map<string, DatedHead>();
      for (const end of staleEnds(database, filter.prefix, projectionOf(filter.prefix)?.version ?? 0)) {
        const row = await makeAndStore(end);
        if (row !== null) made.set(end.stream, row);
      }
      const page = after === undefined ? { limit } : { after, limit };
      const known = selectHeads(database, filter, page).filter((row) => !made.has(row.stream));
      const passing = [...made.values()].filter((row) => passes(row, filter));
      const fresh = after === undefined ? passing : passing.filter((row) => compareHeads(row, after) > 0);
      const newestFirst = [...known, ...fresh].sort(compareHeads).slice(0, limit);
      return { heads: newestFirst.map(toHead), total: Math.max(countHeads(database, filter), known.length + passing.length) };
    },
    async noteDamage(stream: string, damage: string | null): Promise<void> {
      if ((await current(stream)) === null) return;
      await options.change(() => database.prepare("UPDATE heads SET damage = ? WHERE stream = ?").run(damage, stream));
    },
  };
}

/** In SQL; the table of heads is `h`. */
function conditionsOf({ prefix, open, where = {} }: HeadFilter): { conditions: string[]; values: (string | number)[] } {
  const conditions = ["substr(h.stream, 1, ?) = ?"];
  const values: (string | number)[] = [prefix.length, prefix];
  if (open !== undefined) {
    conditions.push("h.open = ?");
    values.push(open ? 1 : 0);
  }
  for (const [path, wanted] of Object.entries(where)) {
    const texts = wanted.filter((value) => value !== null);
    const field = "json_extract(h.head, ?)";
    const isOneOf = `${field} IN (${texts.map(() => "?").join(", ")})`;
    conditions.push(wanted.includes(null) ? `(${isOneOf} OR ${field} IS NULL)` : isOneOf);
    values.push(`$.${path}`, ...texts, ...(wanted.includes(null) ? [`$.${path}`] : []));
  }
  return { conditions, values };
}

function passes(row: HeadRow, { open, where }: HeadFilter): boolean {
  return (open === undefined || row.open === (open ? 1 : 0)) && matchesHead(JSON.parse(row.head), where);
}

function rowOf(projection: Projection, end: { stream: string; seq: number }, made: ReturnType<typeof project>): HeadRow {
  const open = projection.isOpen(made.head) ? 1 : 0;
  return { ...end, version: projection.version, open, head: JSON.stringify(made.head), damage: made.damage };
}

function toHead({ stream, seq, at, head, damage }: DatedHead): StreamHead {
  return { stream, seq, at, head: JSON.parse(head), damage };
}

function readable<Result>(read: () => Result): Result | null {
  try {
    return read();
  } catch {
    return null;
  }
}

/** Of streams to which somebody appended who keeps no heads, or other ones. */
function staleEnds(database: DatabaseSync, prefix: string, version: number): EndRow[] {
  return database
    .prepare(
      "SELECT s.stream, s.last_seq, s.at FROM streams s LEFT JOIN heads h ON h.stream = s.stream WHERE substr(s.stream, 1, ?) = ? " +
        "AND s.last_seq > 0 AND (h.stream IS NULL OR h.seq <> s.last_seq OR h.version <> ?)",
    )
    .all(prefix.length, prefix, version) as unknown as EndRow[];
}

function selectHeads(database: DatabaseSync, filter: HeadFilter, page: { after?: HeadCursor; limit: number }): DatedHead[] {
  const { conditions, values } = conditionsOf(filter);
  const { after } = page;
  if (after !== undefined) conditions.push("(s.at < ? OR (s.at = ? AND h.stream > ?))");
  return database
    .prepare(
      "SELECT h.stream, h.seq, h.version, h.open, h.head, h.damage, s.at FROM heads h JOIN streams s ON s.stream = h.stream " +
        `WHERE ${conditions.join(" AND ")} ORDER BY s.at DESC, h.stream LIMIT ?`,
    )
    .all(...values, ...(after === undefined ? [] : [after.at, after.at, after.stream]), page.limit) as unknown as DatedHead[];
}

function countHeads(database: DatabaseSync, filter: HeadFilter): number {
  const { conditions, values } = conditionsOf(filter);
  const row = database.prepare(`SELECT count(*) AS total FROM heads h WHERE ${conditions.join(" AND ")}`).get(...values);
  return (row as { total: number }).total;
}
