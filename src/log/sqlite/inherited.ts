import type { DatabaseSync } from "node:sqlite";
import { CaissonError } from "../../contract/error/error.ts";
import { randomLetters } from "../../lib/new-id.ts";
import type { Inherits } from "../log.ts";

/** Events that a stream inherits. Their rows are stored under `holder`. */
export interface InheritedPart {
  holder: string;
  fromSeq: number;
  toSeq: number;
  /** The checksum of the last row. */
  sum: number;
}

/** No stream name has this character, so no caller can name the rows that a removed stream leaves to its heirs. */
const HIDDEN = "\n";

/** Returns whether the rows are those of a removed or compacted stream, kept for its heirs. */
export const isHidden = (holder: string): boolean => holder.includes(HIDDEN);

export type Inherited = ReturnType<typeof createInherited>;

/**
 * The events that streams inherit from others. A stream lists every stream whose rows it needs, ancestors included, so
 * a read looks up one level however many forks lie between. All methods but `parts` need a transaction.
 */
export function createInherited(database: DatabaseSync) {
  const select = database.prepare(
    "SELECT holder, from_seq AS fromSeq, to_seq AS toSeq, sum FROM inherited WHERE stream = ? AND to_seq >= ? ORDER BY from_seq",
  );
  const insert = database.prepare("INSERT INTO inherited (stream, from_seq, to_seq, holder, sum) VALUES (?, ?, ?, ?, ?)");
  const drop = database.prepare("DELETE FROM inherited WHERE stream = ?");
  const needed = database.prepare("SELECT coalesce(max(to_seq), 0) AS seq FROM inherited WHERE holder = ?");
  const reassign = database.prepare("UPDATE inherited SET holder = ? WHERE holder = ?");
  const hide = database.prepare("UPDATE events SET stream = ? WHERE stream = ?");
  const erase = database.prepare("DELETE FROM events WHERE stream = ? AND seq > ?");
  const sumAt = database.prepare("SELECT sum FROM events WHERE stream = ? AND seq = ?");
  const end = database.prepare("SELECT last_seq FROM streams WHERE stream = ?");
  const parts = (stream: string, fromSeq: number) => select.all(stream, fromSeq) as unknown as InheritedPart[];
  const lastNeeded = (holder: string) => (needed.get(holder) as { seq: number }).seq;
  return {
    /** Returns the inherited events from a sequence number on, oldest first. */
    parts,
    /** Throws `not_found` if the parent has no such event. */
    begin(stream: string, { stream: parent, seq }: Inherits): void {
      const lastSeq = (end.get(parent) as { last_seq: number } | undefined)?.last_seq ?? 0;
      if (seq > lastSeq || stream === parent) throw noSuchEvent(parent, seq);
      const above = parts(parent, 1);
      const ownFirst = (above.at(-1)?.toSeq ?? 0) + 1;
      const whole = [...above, { holder: parent, fromSeq: ownFirst, toSeq: lastSeq }].filter(({ fromSeq }) => fromSeq <= seq);
      const inheritedParts = whole.map(({ holder, fromSeq, toSeq }): InheritedPart => {
        const last = Math.min(toSeq, seq);
        const row = sumAt.get(holder, last) as { sum: number } | undefined;
        // A compacted stream no longer has its first events.
        if (row === undefined) throw noSuchEvent(parent, last);
        return { holder, fromSeq, toSeq: last, sum: row.sum };
      });
      for (const { holder, fromSeq, toSeq, sum } of inheritedParts) insert.run(stream, fromSeq, toSeq, holder, sum);
    },
    /** Deletes the rows of a stream, and its references to others. Rows that heirs need stay, out of sight. */
    release(stream: string): void {
      const above = new Set(parts(stream, 1).map(({ holder }) => holder));
      drop.run(stream);
      const lastSeq = lastNeeded(stream);
      erase.run(stream, lastSeq);
      if (lastSeq > 0) {
        const hidden = `${stream}${HIDDEN}${randomLetters(12)}`;
        hide.run(hidden, stream);
        reassign.run(hidden, stream);
      }
      for (const holder of above) if (isHidden(holder)) erase.run(holder, lastNeeded(holder));
    },
  };
}

function noSuchEvent(stream: string, seq: number): CaissonError {
  return new CaissonError("not_found", `there is no event ${seq} of ${stream} to inherit`);
}
