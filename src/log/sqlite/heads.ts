import type { DatabaseSync } from "node:sqlite";
import { ignore, ignoring } from "../../lib/failures.ts";
import { createPauses } from "../../lib/pauses.ts";
import { compareHeads, type HeadCursor, type HeadFilter, passesFilter } from "../head-filter.ts";
import type { StoredEvent, StreamHead } from "../log.ts";
import { type FindProjection, type Projection, project } from "../projection.ts";
import type { ReadBudget } from "../subscription.ts";
import type { Appended } from "./commit.ts";
import { createHeadRows, type DatedHead, type HeadRow } from "./head-rows.ts";
import { listHeads } from "./list-heads.ts";
import { createStaleness, type EndRow } from "./stale-heads.ts";

/** Events to fold at a time when rebuilding a head, and their maximum bytes. */
const PAGE = 2000;
const PAGE_BYTES = 4 * 1024 ** 2;
/** Heads to keep in memory between two of our appends. Beyond this the oldest one is read again. */
const REMEMBERED_MAX = 1000;

interface HeadsOptions {
  database: DatabaseSync;
  projectionOf: FindProjection;
  read: (stream: string, fromSeq: number, budget: ReadBudget) => StoredEvent[];
  change: <Result>(work: () => Result) => Promise<Result>;
}

/**
 * The heads of streams. They are updated with each append, and rebuilt from the events if an older Caisson or another
 * program appended last.
 */
export function createHeads(options: HeadsOptions) {
  const { database, projectionOf } = options;
  const rows = createHeadRows(database);
  const remembered = new Map<string, { end: Appended["end"]; made: ReturnType<typeof project> }>();
  /** Returns the head before an append: from memory if our append was the last, otherwise from the store. */
  const before = (stream: string, after: Appended["after"], projection: Projection): ReturnType<typeof project> | null => {
    const known = remembered.get(stream);
    remembered.delete(stream);
    if (known !== undefined && known.end.seq === after.seq && known.end.sum === after.sum) return known.made;
    const row = rows.find(stream);
    return row?.seq === after.seq && row.version === projection.version ? { head: JSON.parse(row.head), damage: row.damage } : null;
  };
  const staleness = createStaleness(database);
  const ends = database.prepare("SELECT stream, last_seq, at FROM streams WHERE stream = ?");

  /** Rebuilds a head from the first event on, without writing anything. */
  const make = async ({ stream, last_seq, at }: EndRow): Promise<DatedHead | null> => {
    const projection = projectionOf(stream);
    if (projection === null) return null;
    const pause = createPauses();
    let headState = project(projection, { head: null, damage: null }, []);
    for (let fromSeq = 1; fromSeq <= last_seq; ) {
      const page = ignoring("noted as damage below", () => options.read(stream, fromSeq, { limit: PAGE, bytes: PAGE_BYTES })) ?? null;
      headState = project(projection, headState, page ?? []);
      if (page === null || page.length === 0) {
        headState.damage ??= `event ${fromSeq} and everything after it cannot be read`;
        break;
      }
      fromSeq = (page.at(-1)?.seq ?? fromSeq) + 1;
      await pause();
    }
    return { ...rowOf(projection, { stream, seq: last_seq }, headState), at };
  };
  const makeAndStore = async (end: EndRow): Promise<DatedHead | null> => {
    const rebuiltHead = await make(end);
    const projection = projectionOf(end.stream);
    if (rebuiltHead === null || projection === null) return rebuiltHead;
    const storing = options.change(() => rows.store(rebuiltHead, projection));
    await ignore(storing, "a read-only log still shows its heads");
    return rebuiltHead;
  };
  const current = async (stream: string): Promise<DatedHead | null> => {
    const projection = projectionOf(stream);
    const end = ends.get(stream) as EndRow | undefined;
    if (projection === null || end === undefined || end.last_seq === 0) return null;
    const row = rows.find(stream);
    return row?.seq === end.last_seq && row.version === projection.version ? { ...row, at: end.at } : await makeAndStore(end);
  };
  return {
    /** Call in the transaction of an append. A head that is behind is rebuilt when it is read. */
    advance(stream: string, { after, end, at, events }: Appended): void {
      const projection = projectionOf(stream);
      if (projection === null) return;
      staleness.register(projection);
      const from = after.seq === 0 ? { head: null, damage: null } : before(stream, after, projection);
      if (from === null) return;
      const wasOpen = from.head === null || projection.isOpen(from.head);
      const headState = project(
        projection,
        from,
        events.map((event, index) => ({ ...event, at, seq: after.seq + index + 1 })),
      );
      const row = { ...rowOf(projection, { stream, seq: end.seq }, headState), at };
      if (after.seq === 0) rows.store(row, projection);
      else if (!rows.advance(row, { projection, afterSeq: after.seq, wasOpen })) return;
      // We do not remember a damaged head: another process may repair it, so the stored row must be read again.
      if (headState.damage !== null) return;
      if (remembered.size >= REMEMBERED_MAX) remembered.delete(remembered.keys().next().value ?? "");
      remembered.set(stream, { end, made: headState });
    },
    remove: rows.remove,
    async head(stream: string): Promise<StreamHead | null> {
      const row = await current(stream);
      return row === null ? null : toHead(row);
    },
    async list({ after, limit, ...filter }: HeadFilter & { after?: HeadCursor; limit: number }) {
      const projection = projectionOf(filter.prefix);
      const rebuiltHeads = new Map<string, DatedHead>();
      for (const end of await staleness.ends(filter.prefix, { projection, change: options.change })) {
        const row = await makeAndStore(end);
        if (row !== null) rebuiltHeads.set(end.stream, row);
      }
      const page = { ...(after !== undefined && { after }), limit };
      const known = await listHeads(filter, { database, index: rows.index, projection, page });
      // Rebuilt heads that could not be stored, in a read-only log.
      const fresh = [...rebuiltHeads.values()].filter(
        (row) => !known.heads.some(({ stream }) => stream === row.stream) && passes(row, filter, projection),
      );
      const rest = after === undefined ? fresh : fresh.filter((row) => compareHeads(row, after) > 0);
      const newestFirst = [...known.heads, ...rest].sort(compareHeads).slice(0, limit);
      const heads = await toHeads(newestFirst);
      return { heads, total: Math.max(known.total, newestFirst.length), isMinimum: known.isMinimum };
    },
    async noteDamage(stream: string, damage: string | null): Promise<void> {
      if ((await current(stream)) === null) return;
      await options.change(() => database.prepare("UPDATE heads SET damage = ? WHERE stream = ?").run(damage, stream));
    },
  };
}

function rowOf(projection: Projection, end: { stream: string; seq: number }, headState: ReturnType<typeof project>): HeadRow {
  const open = projection.isOpen(headState.head) ? 1 : 0;
  return { ...end, version: projection.version, open, head: JSON.stringify(headState.head), damage: headState.damage };
}

function toHead({ stream, seq, at, head, damage }: DatedHead): StreamHead {
  return { stream, seq, at, head: JSON.parse(head), damage };
}

/** Pauses between rows: each one is parsed, and there may be a thousand. */
async function toHeads(rows: readonly DatedHead[]): Promise<StreamHead[]> {
  const heads: StreamHead[] = [];
  const pause = createPauses();
  for (const row of rows) {
    heads.push(toHead(row));
    await pause();
  }
  return heads;
}

function passes(row: DatedHead, filter: HeadFilter, projection: Projection | null): boolean {
  return passesFilter(
    { head: JSON.parse(row.head), at: row.at, isOpen: row.open === 1 },
    filter,
    (head) => projection?.terms?.(head) ?? [],
  );
}
