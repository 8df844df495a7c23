import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { Runtime } from "../../sandbox/runtime.ts";
import { isToSweep } from "../../sandbox/store.ts";
import type { RemoveContext } from "./remove-sandbox.ts";

/** The runtime that keeps its snapshots in the state folder. */
const SNAPSHOT_RUNTIME = "oci";

/** Removes what programs that were killed left behind. Two looks into folders when there is nothing. */
export async function sweepSandboxes(
  options: RemoveContext & { stateDir: string; finishRuns: (runtimes: readonly Runtime[]) => Promise<void> },
): Promise<void> {
  const { stateDir, store, runtimes } = options;
  const [sandboxes, snapshots] = await Promise.all(["sandboxes", "snapshots"].map((name) => readdir(join(stateDir, name)).catch(() => [])));
  // Names that begin with a dot are snapshots that somebody makes or removes, or died over.
  const unfinishedSnapshots = snapshots?.some((name) => name.startsWith(".")) ? [SNAPSHOT_RUNTIME] : [];
  if (sandboxes?.length === 0 && unfinishedSnapshots.length === 0) return;
  const { records, damaged } = await store.list();
  const toSweep = new Set([...records.filter(isToSweep).map((record) => record.runtime), ...unfinishedSnapshots]);
  for (const name of toSweep) if (runtimes.names.includes(name)) await (await runtimes.get(name)).sweep();
  const lost = damaged.filter(({ beforeBoot }) => beforeBoot);
  if (lost.length > 0) {
    const { removeWithoutRecord } = await import("./remove-sandbox.ts");
    // Nothing of them can live, and nobody can ever open them: a power cut took their records.
    for (const { id } of lost) await removeWithoutRecord(id, options);
  }
  // Sandboxes of runs are kept, so that they outlive the program; those of ended runs are nobody's any more.
  const ofRuns = new Set(records.filter((record) => record.spec.labels.run !== undefined).map((record) => record.runtime));
  const known = [...ofRuns].filter((name) => runtimes.names.includes(name));
  if (known.length > 0) await options.finishRuns(await Promise.all(known.map((name) => runtimes.get(name))));
}

/** Removes the sandboxes that this process made and does not mean to keep. */
export async function removeOwn({ store, runtimes }: RemoveContext): Promise<void> {
  const self = store.ownerOf();
  const { records } = await store.list();
  for (const record of records) {
    if (record.owner?.pid !== self.pid || record.owner.startTicks !== self.startTicks || record.state === "completing") continue;
    const runtime = await runtimes.get(record.runtime);
    // One in the middle of its creation cannot be opened; its creator's process is about to end, and the next command
    // sweeps it.
    const sandbox = await runtime.open(record.id).catch(() => null);
    await sandbox?.destroy();
  }
}
