import type { DatabaseSync } from "node:sqlite";
import type { CaissonError } from "../../contract/error/error.ts";
import type { PlacedEvent, StoredEvent } from "../log.ts";
import type { ReadBudget } from "../subscription.ts";
import { translateSqlite } from "./open.ts";

/** One append: the events `from_seq` to `to_seq` of a stream. `position` is that of the last event. */
interface FeedRow {
  position: number;
  stream: string;
  from_seq: number;
  to_seq: number;
}

/** A read of some event types. `types` is a JSON array of their names. */
export interface TypedRead {
  fromSeq: number;
  toSeq: number;
  types: string;
  budget: ReadBudget;
}

interface FeedOptions {
  database: DatabaseSync;
  read: (stream: string, fromSeq: number, budget: ReadBudget) => StoredEvent[];
  readTyped: (stream: string, request: TypedRead) => StoredEvent[];
}

/**
 * The order in which the events of all streams became durable. A trigger writes it, so no version of Caisson can append
 * without it.
 */
export function createFeed(options: FeedOptions) {
  const { database } = options;
  const select = database.prepare("SELECT position, stream, from_seq, to_seq FROM feed WHERE position >= ? ORDER BY position LIMIT ?");
  const rowsFrom = (position: number, limit: number): FeedRow[] => {
    try {
      return select.all(position, limit) as unknown as FeedRow[];
    } catch (error) {
      throw translateSqlite(error, "reading appended events");
    }
  };
  return {
    /** Returns events of streams with one of these prefixes from a position on, and the position to continue from. */
    page(
      position: number,
      { prefixes, types, budget }: { prefixes: readonly string[]; types: string | null; budget: ReadBudget },
    ): { events: PlacedEvent[]; next: number } {
      const events: PlacedEvent[] = [];
      const { limit } = budget;
      let next = position;
      for (const row of rowsFrom(position, limit)) {
        const fromSeq = Math.max(row.from_seq, row.to_seq - (row.position - next));
        const left = limit - events.length;
        const read = prefixes.some((prefix) => row.stream.startsWith(prefix))
          ? readAppend(row, { fromSeq, budget, left, types, ...options })
          : [];
        events.push(...read);
        const last = read.at(-1);
        const isCut = read.length === left || budget.bytes <= 0;
        next = last !== undefined && last.seq < row.to_seq && isCut ? last.position + 1 : row.position + 1;
        if (events.length >= limit || budget.bytes <= 0) break;
      }
      return { events, next };
    },
    lastPosition(): number {
      return Number((database.prepare("SELECT max(position) AS last FROM feed").get() as { last: number | null }).last ?? 0);
    },
    /**
     * Removes a stream from the feed. Positions are never reused, since subscribers continue from them, so the very
     * last row stays, without its stream. A new stream of the same name starts over.
     */
    forget(stream: string): void {
      database.prepare("DELETE FROM feed WHERE stream IN (?, '') AND position < (SELECT max(position) FROM feed)").run(stream);
      database.prepare("UPDATE feed SET stream = '' WHERE stream = ? AND position = (SELECT max(position) FROM feed)").run(stream);
    },
  };
}

/** Reads one append. An unreadable append yields one event with its damage, so subscribers still get later events. */
function readAppend(
  row: FeedRow,
  options: Pick<FeedOptions, "read" | "readTyped"> & { fromSeq: number; budget: ReadBudget; left: number; types: string | null },
): PlacedEvent[] {
  const { fromSeq, types } = options;
  const ofAppend: ReadBudget = { limit: Math.min(options.left, row.to_seq - fromSeq + 1), bytes: options.budget.bytes };
  const withPosition = (event: StoredEvent): PlacedEvent => ({ ...event, position: row.position - (row.to_seq - event.seq) });
  try {
    const events =
      types === null
        ? options.read(row.stream, fromSeq, ofAppend)
        : options.readTyped(row.stream, { fromSeq, toSeq: row.to_seq, types, budget: ofAppend });
    options.budget.bytes = ofAppend.bytes;
    return events.map(withPosition);
  } catch (error) {
    const { message } = error as CaissonError;
    return [withPosition({ stream: row.stream, seq: row.to_seq, type: "damaged", version: 1, at: "", data: null, damage: message })];
  }
}
