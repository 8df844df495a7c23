import type { DatabaseSync } from "node:sqlite";
import type { NewEvent, StoredEvent, StreamHead } from "../log.ts";
import { project, projectionOf } from "../projection.ts";

interface HeadRow {
  stream: string;
  seq: number;
  version: number;
  open: number;
  at: string;
  head: string;
  damage: string | null;
}

/** Events folded at a time when a head is made again. */
const PAGE = 2000;

/** The heads of streams: kept with each append, and made again from the events where an older Caisson, or none of ours, appended last. */
export function createHeads(options: {
  database: DatabaseSync;
  read: (stream: string, fromSeq: number, limit: number) => StoredEvent[];
  change: <Result>(work: () => Result) => Promise<Result>;
}) {
  const { database } = options;
  const find = database.prepare("SELECT stream, seq, version, open, at, head, damage FROM heads WHERE stream = ?");
  const put = database.prepare(
    "INSERT INTO heads (stream, seq, version, open, at, head, damage) VALUES (?, ?, ?, ?, ?, ?, ?) " +
      "ON CONFLICT (stream) DO UPDATE SET seq = excluded.seq, version = excluded.version, open = excluded.open, at = excluded.at, " +
      "head = excluded.head, damage = excluded.damage WHERE excluded.seq > heads.seq OR excluded.version <> heads.version",
  );
  const store = (row: HeadRow) => put.run(row.stream, row.seq, row.version, row.open, row.at, row.head, row.damage);
  const ends = database.prepare("SELECT last_seq, at FROM streams WHERE stream = ?");
  const endOf = (stream: string) => ends.get(stream) as { last_seq: number; at: string } | undefined;

  /** From the first event on, without writing anything. */
  const make = (stream: string, end: { last_seq: number; at: string }): HeadRow | null => {
    const projection = projectionOf(stream);
    if (projection === null) return null;
    let made = project(projection, { head: null, damage: null }, []);
    for (let fromSeq = 1; fromSeq <= end.last_seq; ) {
      const page = readable(() => options.read(stream, fromSeq, PAGE));
      made = project(projection, made, page ?? []);
      if (page === null || page.length === 0) {
        made.damage ??= `nothing can be read from event ${fromSeq} on`;
        break;
      }
      fromSeq = (page.at(-1)?.seq ?? fromSeq) + 1;
    }
    const { version } = projection;
    return { stream, seq: end.last_seq, version, ...columns(projection.isOpen(made.head), made), at: end.at };
  };
  /** A log that cannot be written to is shown all the same. */
  const makeAndStore = async (stream: string): Promise<HeadRow | null> => {
    const end = endOf(stream);
    const made = end && end.last_seq > 0 ? make(stream, end) : null;
    if (made !== null) await options.change(() => store(made)).catch(() => undefined);
    return made;
  };
  const current = async (stream: string): Promise<HeadRow | null> => {
    const projection = projectionOf(stream);
    const end = endOf(stream);
    if (projection === null || end === undefined || end.last_seq === 0) return null;
    const row = find.get(stream) as unknown as HeadRow | undefined;
    return row !== undefined && row.seq === end.last_seq && row.version === projection.version ? row : await makeAndStore(stream);
  };

  return {
    /** In the transaction of an append. */
    advance(stream: string, appended: { afterSeq: number; at: string; events: readonly NewEvent[] }): void {
      const projection = projectionOf(stream);
      if (projection === null) return;
      const { afterSeq, at } = appended;
      const row = find.get(stream) as unknown as HeadRow | undefined;
      // Whoever asks for it next makes it again.
      if (afterSeq > 0 && (row?.seq !== afterSeq || row.version !== projection.version)) return;
      const events = appended.events.map((event, index) => ({ ...event, at, seq: afterSeq + index + 1 }));
      const from = row === undefined || afterSeq === 0 ? { head: null, damage: null } : { head: JSON.parse(row.head), damage: row.damage };
      const made = project(projection, from, events);
      const { version } = projection;
      store({ stream, seq: afterSeq + events.length, version, ...columns(projection.isOpen(made.head), made), at });
    },
    remove(stream: string): void {
      database.prepare("DELETE FROM heads WHERE stream = ?").run(stream);
    },
    async head(stream: string): Promise<StreamHead | null> {
      const row = await current(stream);
      return row === null ? null : toHead(row);
    },
    async list({ prefix, open, limit }: { prefix: string; open: boolean; limit: number }) {
      const version = projectionOf(prefix)?.version ?? 0;
      const stale = database
        .prepare(
          "SELECT s.stream FROM streams s LEFT JOIN heads h ON h.stream = s.stream WHERE substr(s.stream, 1, ?) = ? AND s.last_seq > 0 " +
            "AND (h.stream IS NULL OR h.seq <> s.last_seq OR h.version <> ?)",
        )
        .all(prefix.length, prefix, version) as unknown as { stream: string }[];
      const made = new Map<string, HeadRow>();
      for (const { stream } of stale) {
        const row = await makeAndStore(stream);
        if (row !== null) made.set(stream, row);
      }
      const wanted = open ? 1 : 0;
      const rows = database
        .prepare(
          "SELECT stream, seq, version, open, at, head, damage FROM heads WHERE open = ? AND substr(stream, 1, ?) = ? ORDER BY at DESC, stream LIMIT ?",
        )
        .all(wanted, prefix.length, prefix, limit) as unknown as HeadRow[];
      const known = rows.filter((row) => !made.has(row.stream));
      const fresh = [...made.values()].filter((row) => row.open === wanted);
      const counted = database
        .prepare("SELECT count(*) AS total FROM heads WHERE open = ? AND substr(stream, 1, ?) = ?")
        .get(wanted, prefix.length, prefix) as { total: number };
      const newestFirst = [...known, ...fresh].sort((a, b) => (a.at === b.at ? 0 : a.at < b.at ? 1 : -1));
      return { heads: newestFirst.slice(0, limit).map(toHead), total: Math.max(counted.total, newestFirst.length) };
    },
    async noteDamage(stream: string, damage: string | null): Promise<void> {
      if ((await current(stream)) === null) return;
      await options.change(() => database.prepare("UPDATE heads SET damage = ? WHERE stream = ?").run(damage, stream));
    },
  };
}

function columns(isOpen: boolean, made: { head: unknown; damage: string | null }): Pick<HeadRow, "open" | "head" | "damage"> {
  return { open: isOpen ? 1 : 0, head: JSON.stringify(made.head), damage: made.damage };
}

function toHead(row: HeadRow): StreamHead {
  const { stream, seq, at, damage } = row;
  return { stream, seq, at, head: JSON.parse(row.head), damage };
}

function readable<Result>(read: () => Result): Result | null {
  try {
    return read();
  } catch {
    return null;
  }
}
