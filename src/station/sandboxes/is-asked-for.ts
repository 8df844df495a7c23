import type { ListSnapshots } from "../../contract/sandbox-verbs.ts";

/** What lists of sandboxes and of snapshots are both narrowed by. */
type Asked = Pick<ListSnapshots, "runtime" | "name" | "owner" | "createdAfter" | "createdBefore">;

/** Whether a thing is one of those that a list is asked for; what is absent is not asked about. */
export function isAskedFor(
  thing: { runtime: string; name?: string | null | undefined; owner: string; createdAt: string },
  { runtime, name, owner, createdAfter, createdBefore }: Asked,
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
