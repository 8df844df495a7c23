import type { DatabaseSync } from "node:sqlite";
import type { Projection } from "../projection.ts";
import { createHeadIndex, termsOf } from "./head-index.ts";

export interface HeadRow {
  stream: string;
  seq: number;
  version: number;
  open: number;
  head: string;
  damage: string | null;
}

/** A head row with the time of the stream's last event. */
export type DatedHead = HeadRow & { at: string };

/** The rows of heads, and the index of closed ones. All methods but `find` need a transaction. */
export function createHeadRows(database: DatabaseSync) {
  const find = database.prepare("SELECT stream, seq, version, open, head, damage FROM heads WHERE stream = ?");
  const put = database.prepare(
    "INSERT INTO heads (stream, seq, version, open, head, damage) VALUES (?, ?, ?, ?, ?, ?) " +
      "ON CONFLICT (stream) DO UPDATE SET seq = excluded.seq, version = excluded.version, open = excluded.open, head = excluded.head, " +
      "damage = excluded.damage WHERE excluded.seq > heads.seq OR excluded.version <> heads.version",
  );
  // For a stream that stays open. It writes no indexed column, so no index pages are rewritten.
  const stay = database.prepare(
    "UPDATE heads SET seq = ?, head = ?, damage = coalesce(damage, ?) WHERE stream = ? AND seq = ? AND version = ?",
  );
  const move = database.prepare(
    "UPDATE heads SET seq = ?, open = ?, head = ?, damage = coalesce(damage, ?) WHERE stream = ? AND seq = ? AND version = ?",
  );
  const settle = database.prepare(
    "DELETE FROM stale_heads WHERE stream = ? AND EXISTS " +
      "(SELECT 1 FROM streams s JOIN heads h ON h.stream = s.stream WHERE s.stream = stale_heads.stream AND h.seq = s.last_seq)",
  );
  const index = createHeadIndex(database);
  return {
    index,
    find: (stream: string) => find.get(stream) as unknown as HeadRow | undefined,
    store(row: DatedHead, projection: Projection): void {
      if (put.run(row.stream, row.seq, row.version, row.open, row.head, row.damage).changes > 0) {
        index.put(row.stream, indexedOf(row, projection));
      }
      settle.run(row.stream);
    },
    /** Returns whether the stored row had the expected sequence and version. */
    advance(row: DatedHead, { projection, afterSeq, wasOpen }: { projection: Projection; afterSeq: number; wasOpen: boolean }): boolean {
      const { stream, seq, version, open, head, damage } = row;
      if (wasOpen && open === 1) return stay.run(seq, head, damage, stream, afterSeq, version).changes > 0;
      if (move.run(seq, open, head, damage, stream, afterSeq, version).changes === 0) return false;
      index.put(stream, indexedOf(row, projection));
      return true;
    },
    remove(stream: string): void {
      index.remove(stream);
      database.prepare("DELETE FROM heads WHERE stream = ?").run(stream);
      database.prepare("DELETE FROM stale_heads WHERE stream = ?").run(stream);
    },
  };
}

/** Returns no terms for an open stream. */
function indexedOf(row: DatedHead, projection: Projection): { terms: string[] | null; at: string } {
  const isIndexed = row.open === 0 && projection.indexed !== undefined;
  return { terms: isIndexed ? termsOf(projection, row.head) : null, at: row.at };
}
