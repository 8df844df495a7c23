import { CaissonError } from "../../contract/error.ts";
import { SnapshotId } from "../../contract/ids.ts";
import type { SnapshotView } from "../../contract/sandbox-verbs.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { RuntimeSet } from "../../sandbox/runtime-set.ts";

interface FoundSnapshot {
  snapshot: SnapshotView;
  runtime: Runtime;
}

/** A runtime that cannot be used at all (no engine runs) has no snapshots to show. */
export async function everySnapshot(runtimes: RuntimeSet): Promise<FoundSnapshot[]> {
  const found: FoundSnapshot[] = [];
  for (const name of runtimes.names) {
    const runtime = await runtimes.get(name);
    try {
      for (const snapshot of await runtime.snapshots()) found.push({ snapshot: { ...snapshot, runtime: runtime.name }, runtime });
    } catch (error) {
      if (!(error instanceof CaissonError) || (error.code !== "unavailable" && error.code !== "unsupported")) throw error;
    }
  }
  return found;
}

/** Throws `invalid` for what is not an id, `not_found`. */
export async function findSnapshot(runtimes: RuntimeSet, text: string): Promise<FoundSnapshot> {
  const id = SnapshotId.safeParse(text);
  if (!id.success) {
    throw new CaissonError("invalid", `${JSON.stringify(text)} is not a snapshot's id`, { hint: "An id looks like sn_k3v7q2m5x4ab." });
  }
  const found = (await everySnapshot(runtimes)).find(({ snapshot }) => snapshot.id === id.data);
  if (found !== undefined) return found;
  throw new CaissonError("not_found", `there is no snapshot ${text}`, { hint: "`caisson snapshot ls` lists them." });
}
