import { CaissonError } from "../../contract/error/error.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import { ChosenName, type SnapshotId } from "../../contract/ids.ts";
import { ListSnapshots, type SnapshotList, SnapshotSandbox, type SnapshotView } from "../../contract/sandbox/sandbox-verbs.ts";
import { LOCAL_OWNER } from "../../contract/token/owner.ts";
import { defined } from "../../lib/defined.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { SnapshotOptions } from "../../sandbox/sandbox.ts";
import { isIdPrefix, oneOf } from "../names/one-of.ts";
import { pageOf } from "../pages.ts";
import { BUILD_SNAPSHOT } from "../vocabulary/station-names.ts";
import { matchesFilter } from "./matches-filter.ts";

interface FoundSnapshot {
  snapshot: SnapshotView;
  runtime: Runtime;
}

/** Lists the snapshots of all runtimes. A runtime that is unavailable, for example without an engine, has none. */
export async function everySnapshot(runtimes: readonly Runtime[]): Promise<FoundSnapshot[]> {
  const found: FoundSnapshot[] = [];
  for (const runtime of runtimes) {
    try {
      for (const snapshot of await runtime.snapshots())
        found.push({ snapshot: { ...snapshot, owner: snapshot.owner ?? LOCAL_OWNER, runtime: runtime.name }, runtime });
    } catch (error) {
      if (!(error instanceof CaissonError) || (error.code !== "unavailable" && error.code !== "unsupported")) throw error;
    }
  }
  return found;
}

/** See `SandboxVerbs.snapshots`. */
export async function listSnapshots(request: ListSnapshots, runtimes: readonly Runtime[]): Promise<SnapshotList> {
  const query = parseRequest(ListSnapshots, request, "a list of snapshots");
  const { sandbox, cursor, limit } = query;
  const passing = (await everySnapshot(runtimes))
    .map(({ snapshot }) => snapshot)
    .filter(
      (snapshot) => !isOfBuild(snapshot) && matchesFilter(snapshot, query) && (sandbox === undefined || snapshot.sandbox === sandbox),
    );
  const endOf = ({ createdAt, id }: SnapshotView) => [createdAt, id] as const;
  const { items, next } = pageOf(passing, { what: "snapshots", endOf, newestFirst: false, cursor, limit });
  return { snapshots: items, next };
}

/** Whether a template build took the snapshot. Users see templates and the build cache instead. */
export const isOfBuild = ({ name }: Pick<SnapshotView, "name">) => BUILD_SNAPSHOT.test(name ?? "");

/** Finds a snapshot by id, id prefix or name. Throws `invalid` for an ambiguous or malformed word, and `not_found`. */
export async function findSnapshot(runtimes: readonly Runtime[], word: string): Promise<FoundSnapshot> {
  const isId = isIdPrefix("sn", word);
  if (!isId && !ChosenName.safeParse(word).success) {
    throw new CaissonError("invalid", `${JSON.stringify(word)} is not a snapshot id or name`, {
      hint: "An id looks like sn_k3v7q2m5x4ab, and a unique prefix is enough; `caisson snapshot ls` lists them.",
    });
  }
  const all = await everySnapshot(runtimes);
  const found = all.filter(({ snapshot: { id, name } }) => (isId ? id.startsWith(word) : name === word));
  // A name of the machine's own user takes precedence.
  const own = isId ? [] : found.filter(({ snapshot }) => snapshot.owner === LOCAL_OWNER);
  const matching = own.length > 0 ? own : found;
  const candidates = matching.map(({ snapshot }) => snapshot);
  const id = oneOf(word, candidates, { what: "snapshot", listedBy: "caisson snapshot ls" });
  return matching.find(({ snapshot }) => snapshot.id === id) as FoundSnapshot;
}

/** See `SandboxVerbs.snapshot`. */
export async function keepSnapshot(
  runtimes: readonly Runtime[],
  { owner, ...request }: SnapshotSandbox & { owner: string },
  take: (options: SnapshotOptions) => Promise<SnapshotId>,
): Promise<SnapshotView> {
  const { name, memory } = parseRequest(SnapshotSandbox, request, "a snapshot");
  if (name !== undefined) await refuseTakenName(runtimes, { name, owner });
  const id = await take(defined({ name, memory }));
  return (await findSnapshot(runtimes, id)).snapshot;
}

/** Throws `exists` for a name that another snapshot of the same owner has. */
async function refuseTakenName(runtimes: readonly Runtime[], { name, owner }: { name: string; owner: string }): Promise<void> {
  const holder = (await everySnapshot(runtimes)).find(({ snapshot }) => snapshot.name === name && snapshot.owner === owner);
  if (holder === undefined) return;
  throw new CaissonError("exists", `the snapshot ${holder.snapshot.id} already has the name ${name}`, {
    hint: `Choose another name, or remove that snapshot: caisson snapshot rm ${name}`,
  });
}
