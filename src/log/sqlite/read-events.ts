import type { DatabaseSync } from "node:sqlite";
import { ignoring } from "../../lib/failures.ts";
import type { StoredEvent } from "../log.ts";
import type { ReadBudget } from "../subscription.ts";
import type { TypedRead } from "./feed.ts";
import type { Inherited } from "./inherited.ts";
import { sqliteFault, translateSqlite } from "./open.ts";

interface EventRow {
  seq: number;
  type: string;
  version: number;
  at: string;
  data: string;
}

/** Reads the events of streams, with those that they inherit. */
export function createReader(database: DatabaseSync, inherited: Inherited) {
  const select = database.prepare("SELECT seq, type, version, at, data FROM events WHERE stream = ? AND seq >= ? ORDER BY seq LIMIT ?");
  const selectPart = database.prepare(
    "SELECT seq, type, version, at, data FROM events WHERE stream = ? AND seq >= ? AND seq <= ? ORDER BY seq LIMIT ?",
  );
  const selectTyped = database.prepare(
    "SELECT seq, type, version, at, data FROM events WHERE stream = ? AND seq >= ? AND seq <= ? AND type IN (SELECT value FROM json_each(?)) ORDER BY seq LIMIT ?",
  );
  const readOwn = (stream: string, fromSeq: number, budget: ReadBudget): StoredEvent[] =>
    readRows(stream, { fromSeq, budget }, () => select.iterate(stream, fromSeq, budget.limit) as Iterable<unknown> as Iterable<EventRow>);
  return {
    read(stream: string, fromSeq: number, budget: ReadBudget): StoredEvent[] {
      const events: StoredEvent[] = [];
      const isOver = () => events.length >= budget.limit || (events.length > 0 && (budget.bytes <= 0 || events.at(-1)?.type === "damaged"));
      for (const part of inherited.parts(stream, fromSeq)) {
        const from = Math.max(fromSeq, part.fromSeq);
        const rows = () => selectPart.iterate(part.holder, from, part.toSeq, budget.limit - events.length);
        events.push(...readRows(stream, { fromSeq: from, budget }, () => rows() as Iterable<unknown> as Iterable<EventRow>));
        if (isOver()) return events;
      }
      if (events.length === 0) return readOwn(stream, fromSeq, budget);
      const left: ReadBudget = { limit: budget.limit - events.length, bytes: budget.bytes };
      events.push(...readOwn(stream, fromSeq, left));
      budget.bytes = left.bytes;
      return events;
    },
    /** Reads a stream's own events of some types. */
    readTyped(stream: string, { fromSeq, toSeq, types, budget }: TypedRead): StoredEvent[] {
      const rows = () => selectTyped.iterate(stream, fromSeq, toSeq, types, budget.limit) as Iterable<unknown> as Iterable<EventRow>;
      return readRows(stream, { fromSeq, budget }, rows);
    },
  };
}

/** Reads row by row, so that a damaged row does not hide the rows before it. Deducts each row from the budget. */
function readRows(
  stream: string,
  { fromSeq, budget }: { fromSeq: number; budget: ReadBudget },
  rows: () => Iterable<EventRow>,
): StoredEvent[] {
  const events: StoredEvent[] = [];
  try {
    for (const row of rows()) {
      const { seq, type, version, at } = row;
      const data = jsonOrUndefined(row.data);
      if (data === undefined) events.push({ stream, seq, type, version, at, data: null, damage: `event ${seq} of ${stream} is not JSON` });
      else events.push({ stream, seq, type, version, at, data });
      budget.bytes -= row.data.length;
      if (budget.bytes <= 0) break;
    }
  } catch (error) {
    if (events.length === 0 || sqliteFault(error) !== "damaged") throw translateSqlite(error, `reading ${stream} from ${fromSeq}`);
    const last = events.at(-1);
    const seq = (last?.seq ?? 0) + 1;
    const damage = `event ${seq} of ${stream} and everything after it cannot be read`;
    events.push({ stream, seq, type: "damaged", version: 1, at: last?.at ?? "", data: null, damage });
  }
  return events;
}

function jsonOrUndefined(text: string): StoredEvent["data"] | undefined {
  return ignoring("the caller reports the event as damaged", () => JSON.parse(text));
}
