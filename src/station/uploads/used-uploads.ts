import { realpathSync } from "node:fs";
import { CaissonError } from "../../contract/error.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { Store } from "../../sandbox/store.ts";
import { uploadOfTree } from "../../sandbox/uploaded-tree.ts";
import type { SessionStore } from "../../workspace/sessions.ts";

/** The uploads that something is made of: sessions, sandboxes, and snapshots of them. */
export async function usedUploads(options: {
  stateDir: string;
  store: Pick<Store, "list">;
  sessions: Pick<SessionStore, "list">;
  runtimes: () => Promise<readonly Runtime[]>;
}): Promise<Set<string>> {
  const stateDir = realpathSync(options.stateDir);
  const [sessions, { records }, snapshots] = await Promise.all([options.sessions.list(), options.store.list(), snapshotsOf(options)]);
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

/** One whose engine does not run keeps nothing in the state folder. */
function ifUnavailable(error: unknown): [] {
  if (error instanceof CaissonError && error.code === "unavailable") return [];
  throw error;
}

async function snapshotsOf({ runtimes }: { runtimes: () => Promise<readonly Runtime[]> }): Promise<string[]> {
  const found = await Promise.all((await runtimes()).map((runtime) => runtime.snapshots().catch(ifUnavailable)));
  return found.flat().flatMap(({ workspaceFolder }) => workspaceFolder ?? []);
}
