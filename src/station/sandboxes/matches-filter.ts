import type { ListSnapshots } from "../../contract/sandbox/sandbox-verbs.ts";

/** The filters that lists of sandboxes and of snapshots share. */
type SnapshotFilter = Pick<ListSnapshots, "runtime" | "name" | "owner" | "createdAfter" | "createdBefore">;

/** Returns whether a thing matches the filters of a list. Absent filters match everything. */
export function isAskedFor(
  thing: { runtime: string; name?: string | null | undefined; owner: string; createdAt: string },
  { runtime, name, owner, createdAfter, createdBefore }: SnapshotFilter,
): boolean {
  const at = Date.parse(thing.createdAt);
  return (
    (runtime === undefined || thing.runtime === runtime) &&
    (name === undefined || thing.name === name) &&
    (owner === undefined || thing.owner === owner) &&
    (createdAfter === undefined || at >= Date.parse(createdAfter)) &&
    (createdBefore === undefined || at < Date.parse(createdBefore))
  );
}
