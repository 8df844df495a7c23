import type { DatabaseSync } from "node:sqlite";
import type { Damage } from "../log.ts";
import { chainSum } from "./commit.ts";

/** Maximum number of damages in a report. A log with more is lost anyway, and the report stays readable. */
const DAMAGES_MAX = 100;

interface Row {
  seq: number;
  type: string;
  version: number;
  at: string;
  data: string;
  sum: number;
}

/**
 * Reads every row of every stream and verifies the chain of checksums. An unreadable stream does not hide the others.
 */
export function checkDatabase(database: DatabaseSync): Damage[] {
  const damages: Damage[] = [];
  let streams: { stream: string; last_seq: number; last_sum: number }[];
  try {
    streams = database.prepare("SELECT stream, last_seq, last_sum FROM streams").all() as unknown as typeof streams;
  } catch {
    return [{ stream: null, fromSeq: null, text: "The list of streams cannot be read." }];
  }
  for (const stream of streams) {
    if (damages.length >= DAMAGES_MAX) break;
    const damage = checkStream(database, stream);
    if (damage) damages.push(damage);
  }
  return damages;
}

function checkStream(database: DatabaseSync, stream: { stream: string; last_seq: number; last_sum: number }): Damage | null {
  let expected = 1;
  let sum = 0;
  try {
    const rows = database
      .prepare("SELECT seq, type, version, at, data, sum FROM events WHERE stream = ? ORDER BY seq")
      .iterate(stream.stream);
    for (const row of rows as Iterable<unknown> as Iterable<Row>) {
      // A compacted stream begins at a later event, with a new chain.
      if (expected === 1 && row.seq > 1 && chainSum(0, row) === row.sum) expected = row.seq;
      if (row.seq !== expected) return { stream: stream.stream, fromSeq: expected, text: `Event ${expected} is missing.` };
      sum = chainSum(sum, row);
      if (sum !== row.sum) return { stream: stream.stream, fromSeq: expected, text: `Event ${expected} is not what was written.` };
      expected += 1;
    }
  } catch {
    return { stream: stream.stream, fromSeq: expected, text: `Event ${expected} and everything after it cannot be read.` };
  }
  if (expected - 1 !== stream.last_seq || sum !== stream.last_sum) {
    return {
      stream: stream.stream,
      fromSeq: expected,
      text: `The end is missing: the stream has ${expected - 1} of ${stream.last_seq} events.`,
    };
  }
  return null;
}
