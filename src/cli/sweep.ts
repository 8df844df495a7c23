import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { CliContext } from "./context.ts";

/** Removes what commands that were killed left behind. One look into a folder when there is nothing. */
export async function sweepOrphans(context: CliContext): Promise<void> {
  const folder = join(context.stateDir, "sandboxes");
  const names = await readdir(folder).catch(() => []);
  if (names.length === 0) return;
  const { createStore, isOrphan } = await import("../sandbox/store.ts");
  const store = createStore({ stateDir: context.stateDir });
  const { records } = await store.list();
  const unfinished = records.filter((record) => ["creating", "completing"].includes(record.state) && !store.ownerAlive(record.owner));
  const runtimes = new Set([...records.filter(isOrphan), ...unfinished].map((record) => record.runtime));
  for (const name of runtimes) {
    if (context.runtimes.names.includes(name)) await (await context.runtimes.get(name)).sweep();
  }
}

/** Removes the sandboxes that this process made and does not mean to keep. */
export async function removeOwn(context: CliContext): Promise<void> {
  const { createStore } = await import("../sandbox/store.ts");
  const store = createStore({ stateDir: context.stateDir });
  const self = store.ownerOf();
  const { records } = await store.list();
  for (const record of records) {
    if (record.owner?.pid !== self.pid || record.owner.startTicks !== self.startTicks || record.state === "completing") continue;
    const runtime = await context.runtimes.get(record.runtime);
    // One in the middle of its creation cannot be opened; its creator's process is about to end, and the next command sweeps it.
    const sandbox = await runtime.open(record.id).catch(() => null);
    await sandbox?.destroy();
  }
}
