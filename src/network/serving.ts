import { readFileSync } from "node:fs";
import { rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Owner, type Store } from "../sandbox/store.ts";

/** Who serves a sandbox's network now: a mark in its folder, which counts as long as the process that made it lives. */
const MARK_NAME = "network-served-by.json";

export async function markServing(folder: string, store: Pick<Store, "ownerOf">): Promise<void> {
  await writeFile(join(folder, MARK_NAME), JSON.stringify(store.ownerOf()), { mode: 0o600 });
}

/** Takes the mark away if it is ours. */
export async function unmarkServing(folder: string, store: Pick<Store, "ownerOf">): Promise<void> {
  const owner = ownerIn(folder);
  if (owner !== null && owner.pid === store.ownerOf().pid) await rm(join(folder, MARK_NAME), { force: true });
}

/** The pid of the process that serves it, if one lives. */
export function servedBy(folder: string, store: Pick<Store, "ownerAlive">): number | null {
  const owner = ownerIn(folder);
  return owner !== null && store.ownerAlive(owner) ? owner.pid : null;
}

function ownerIn(folder: string): Owner | null {
  try {
    return Owner.parse(JSON.parse(readFileSync(join(folder, MARK_NAME), "utf8")));
  } catch {
    return null;
  }
}
