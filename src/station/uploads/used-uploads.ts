import { realpathSync } from "node:fs";
import { CaissonError } from "../../contract/error/error.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { Store } from "../../sandbox/store.ts";
import { uploadOfTree } from "../../sandbox/uploaded-tree.ts";
import type { SessionStore } from "../../workspace/sessions.ts";

export type UsedUploads = Pick<ReadonlySet<string>, "has">;

/** Returns the uploads in use by sessions, sandboxes, and snapshots of them. */
export async function usedUploads(options: {
  stateDir: string;
  store: Pick<Store, "list">;
  sessions: Pick<SessionStore, "listAll">;
  runtimes: () => Promise<readonly Runtime[]>;
}): Promise<UsedUploads> {
  const stateDir = realpathSync(options.stateDir);
  const [{ sessions, damaged }, { records }, snapshots] = await Promise.all([
    options.sessions.listAll(),
    options.store.list(),
    snapshotsOf(options),
  ]);
  // We do not know which uploads the damaged sessions use, so we keep all.
  if (damaged.length > 0) return { has: () => true };
  const folders = [
    ...records.flatMap(({ spec: { workspace, mounts } }) => [
      ...(workspace.kind === "folder" ? [workspace.path] : []),
      ...mounts.map(({ path }) => path),
    ]),
    ...snapshots,
  ];
  return new Set([
    ...sessions.flatMap(({ source, uploads }) => [...(source.kind === "upload" ? [source.upload] : []), ...uploads]),
    ...folders.flatMap((folder) => uploadOfTree(stateDir, folder) ?? uploadOfTree(options.stateDir, folder) ?? []),
  ]);
}

/** A runtime whose engine does not run stores nothing in the state folder. */
function ifUnavailable(error: unknown): [] {
  if (error instanceof CaissonError && error.code === "unavailable") return [];
  throw error;
}

async function snapshotsOf({ runtimes }: { runtimes: () => Promise<readonly Runtime[]> }): Promise<string[]> {
  const found = await Promise.all((await runtimes()).map((runtime) => runtime.snapshots().catch(ifUnavailable)));
  return found.flat().flatMap(({ workspaceFolder }) => workspaceFolder ?? []);
}
