import type { DatabaseSync } from "node:sqlite";
import type { Projection } from "../projection.ts";

export type EndRow = { stream: string; last_seq: number; at: string };

/** Of which streams the heads have to be made again: whoever appended last keeps none, or other ones. */
export function createStaleness(database: DatabaseSync) {
  const find = database.prepare("SELECT version FROM projections WHERE prefix = ?");
  const put = database.prepare("INSERT INTO projections VALUES (?, ?) ON CONFLICT (prefix) DO UPDATE SET version = excluded.version");
  const mark = database.prepare(
    "INSERT OR IGNORE INTO stale_heads SELECT s.stream FROM streams s LEFT JOIN heads h ON h.stream = s.stream " +
      "WHERE s.stream >= ? AND s.stream < ? AND s.last_seq > 0 AND (h.stream IS NULL OR h.seq <> s.last_seq OR h.version <> ?)",
  );
  // In this order: SQLite, which does not know that there are none as a rule, would walk along all streams.
  const select = database.prepare(
    "SELECT s.stream, s.last_seq, s.at FROM stale_heads d CROSS JOIN streams s ON s.stream = d.stream WHERE d.stream >= ? AND d.stream < ?",
  );
  const registered = new Set<string>();
  const versionOf = (prefix: string) => (find.get(prefix) as { version: number } | undefined)?.version;
  /** In a transaction. From then on a trigger notes whose heads are behind. */
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
        await options.change(() => register(projection)).catch(() => undefined);
      }
      return select.all(prefix, endOfPrefix(prefix)) as unknown as EndRow[];
    },
  };
}

/** The first text after all that begin with this. */
export function endOfPrefix(prefix: string): string {
  return `${prefix}\u{10ffff}`;
}
