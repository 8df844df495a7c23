import type { DatabaseSync } from "node:sqlite";
import { ignoring } from "../../lib/failures.ts";
import type { Damage } from "../log.ts";
import { chainSum } from "./commit.ts";
import { createInherited, type InheritedPart } from "./inherited.ts";

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
  let streams: ({ stream: string } & End)[];
  try {
    streams = database.prepare("SELECT stream, last_seq, last_sum FROM streams").all() as unknown as typeof streams;
  } catch {
    return [{ stream: null, fromSeq: null, text: "The list of streams cannot be read." }];
  }
  const inherited = createInherited(database);
  const found = new Map<string, Damage | null>();
  const damageOf = (holder: string, end: End | null): Damage | null => {
    const known = found.get(holder);
    if (known !== undefined) return known;
    const damage = checkRows(database, holder, { end, firstSeq: (inherited.parts(holder, 1).at(-1)?.toSeq ?? 0) + 1 });
    found.set(holder, damage);
    return damage;
  };
  for (const { stream, ...end } of streams) {
    if (damages.length >= DAMAGES_MAX) break;
    const damage = inheritedDamage(database, stream, { parts: inherited.parts(stream, 1), damageOf }) ?? damageOf(stream, end);
    if (damage) damages.push(damage);
  }
  return damages;
}

/** The end of a stream by its own row. */
interface End {
  last_seq: number;
  last_sum: number;
}

/**
 * Checks the events that a stream inherits. Each holder's rows are one chain, so it is enough that the last inherited
 * row is unchanged and no damage comes before it.
 */
function inheritedDamage(
  database: DatabaseSync,
  stream: string,
  { parts, damageOf }: { parts: readonly InheritedPart[]; damageOf: (holder: string, end: End | null) => Damage | null },
): Damage | null {
  const sumAt = database.prepare("SELECT sum FROM events WHERE stream = ? AND seq = ?");
  const endOf = database.prepare("SELECT last_seq, last_sum FROM streams WHERE stream = ?");
  for (const { holder, toSeq, sum } of parts) {
    const damage = damageOf(holder, (endOf.get(holder) as End | undefined) ?? null);
    if (damage !== null && (damage.fromSeq ?? 0) <= toSeq) return { ...damage, stream };
    const last = ignoring("a row that cannot be read is damage", () => sumAt.get(holder, toSeq) as { sum: number } | undefined);
    if (last?.sum !== sum) return { stream, fromSeq: toSeq, text: `Event ${toSeq} is not what was inherited.` };
  }
  return null;
}

/** Checks the rows of one stream, without those that it inherits. Without its end, only the rows that are there. */
function checkRows(database: DatabaseSync, stream: string, { end, firstSeq }: { end: End | null; firstSeq: number }): Damage | null {
  let expected = firstSeq;
  let sum = 0;
  try {
    const rows = database.prepare("SELECT seq, type, version, at, data, sum FROM events WHERE stream = ? ORDER BY seq").iterate(stream);
    for (const row of rows as Iterable<unknown> as Iterable<Row>) {
      // A compacted stream begins at a later event, with a new chain, as does what a removed one leaves to its heirs.
      if (expected === 1 && row.seq > 1 && chainSum(0, row) === row.sum) expected = row.seq;
      if (row.seq !== expected) return { stream, fromSeq: expected, text: `Event ${expected} is missing.` };
      sum = chainSum(sum, row);
      if (sum !== row.sum) return { stream, fromSeq: expected, text: `Event ${expected} is not what was written.` };
      expected += 1;
    }
  } catch {
    return { stream, fromSeq: expected, text: `Event ${expected} and everything after it cannot be read.` };
  }
  if (end !== null && (expected - 1 !== end.last_seq || sum !== end.last_sum)) {
    return { stream, fromSeq: expected, text: `The end is missing: the stream has ${expected - 1} of ${end.last_seq} events.` };
  }
  return null;
}
