import type { DatabaseSync } from "node:sqlite";
import { ignore } from "../../lib/failures.ts";
import type { Projection } from "../projection.ts";

export type EndRow = { stream: string; last_seq: number; at: string };

/** Tracks the streams whose heads must be rebuilt: their last writer stored no head, or one of another version. */
export function createStaleness(database: DatabaseSync) {
  const find = database.prepare("SELECT version FROM projections WHERE prefix = ?");
  const put = database.prepare("INSERT INTO projections VALUES (?, ?) ON CONFLICT (prefix) DO UPDATE SET version = excluded.version");
  const mark = database.prepare(
    "INSERT OR IGNORE INTO stale_heads SELECT s.stream FROM streams s LEFT JOIN heads h ON h.stream = s.stream " +
      "WHERE s.stream >= ? AND s.stream < ? AND s.last_seq > 0 AND (h.stream IS NULL OR h.seq <> s.last_seq OR h.version <> ?)",
  );
  // The join order is forced: SQLite does not know that `stale_heads` is usually empty, and would scan all streams.
  const select = database.prepare(
    "SELECT s.stream, s.last_seq, s.at FROM stale_heads d CROSS JOIN streams s ON s.stream = d.stream WHERE d.stream >= ? AND d.stream < ?",
  );
  const registered = new Set<string>();
  const versionOf = (prefix: string) => (find.get(prefix) as { version: number } | undefined)?.version;
  /** Call in a transaction. Afterwards a trigger marks the heads that fall behind. */
  const register = ({ prefix, version }: Projection): void => {
    if (registered.has(prefix)) return;
    registered.add(prefix);
    if (versionOf(prefix) === version) return;
    mark.run(prefix, endOfPrefix(prefix), version);
    put.run(prefix, version);
  };
  return {
    register,
    async ends(
      prefix: string,
      options: { projection: Projection | null; change: <Result>(work: () => Result) => Promise<Result> },
    ): Promise<EndRow[]> {
      const { projection } = options;
      if (projection === null) return [];
      if (versionOf(projection.prefix) !== projection.version) {
        registered.delete(projection.prefix);
        await ignore(
          options.change(() => register(projection)),
          "a read-only log still shows its heads",
        );
      }
      return select.all(prefix, endOfPrefix(prefix)) as unknown as EndRow[];
    },
  };
}

/** Returns the first string after all strings with this prefix. */
export function endOfPrefix(prefix: string): string {
  return `${prefix}\u{10ffff}`;
}
