import type { ListSnapshots } from "../../contract/sandbox/sandbox-verbs.ts";

/** The filters that lists of sandboxes and of snapshots share. */
type SnapshotFilter = Pick<ListSnapshots, "runtime" | "name" | "owner" | "createdAfter" | "createdBefore">;

/** Returns whether a sandbox or snapshot matches the filters of a list. Absent filters match everything. */
export function matchesFilter(
  item: { runtime: string; name?: string | null | undefined; owner: string; createdAt: string },
  { runtime, name, owner, createdAfter, createdBefore }: SnapshotFilter,
): boolean {
  const at = Date.parse(item.createdAt);
  return (
    (runtime === undefined || item.runtime === runtime) &&
    (name === undefined || item.name === name) &&
    (owner === undefined || item.owner === owner) &&
    (createdAfter === undefined || at >= Date.parse(createdAfter)) &&
    (createdBefore === undefined || at < Date.parse(createdBefore))
  );
}
