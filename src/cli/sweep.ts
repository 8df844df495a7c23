import { readdir } from "node:fs/promises";
import { join } from "node:path";
import type { CliContext } from "./context.ts";

/** Removes what commands that were killed left behind. Two looks into folders when there is nothing. */
export async function sweepOrphans(context: CliContext): Promise<void> {
  const [sandboxes, snapshots] = await Promise.all(
    ["sandboxes", "snapshots"].map((name) => readdir(join(context.stateDir, name)).catch(() => [])),
  );
  // Names that begin with a dot are snapshots that somebody makes or removes, or died over.
  const unfinishedSnapshots = snapshots?.some((name) => name.startsWith(".")) ? [SNAPSHOT_RUNTIME] : [];
  if (sandboxes?.length === 0 && unfinishedSnapshots.length === 0) return;
  const { createStore, isOrphan } = await import("../sandbox/store.ts");
  const store = createStore({ stateDir: context.stateDir });
  const { records, damaged } = await store.list();
  const unfinished = records.filter((record) => ["creating", "completing"].includes(record.state) && !store.ownerAlive(record.owner));
  const runtimes = new Set([...records.filter(isOrphan), ...unfinished].map((record) => record.runtime).concat(unfinishedSnapshots));
  for (const name of runtimes) {
    if (context.runtimes.names.includes(name)) await (await context.runtimes.get(name)).sweep();
  }
  for (const { id, beforeBoot } of damaged) if (beforeBoot) await sweepDamaged(context, id);
  const ofRuns = new Set(records.filter((record) => record.spec.labels.run !== undefined).map((record) => record.runtime));
  if (ofRuns.size > 0) await finishEndedRuns(context, [...ofRuns]);
}

/** The runtime that keeps its snapshots in the state folder. */
const SNAPSHOT_RUNTIME = "oci";

/** Nothing of it can live, and nobody can ever open it: a power cut took its record. */
async function sweepDamaged(context: CliContext, id: string): Promise<void> {
  const [{ createStore }, { removeDamaged }] = await Promise.all([import("../sandbox/store.ts"), import("../sandbox/remove-remains.ts")]);
  const runtimes = await Promise.all(context.runtimes.names.map((name) => context.runtimes.get(name)));
  await removeDamaged(createStore({ stateDir: context.stateDir }), runtimes, id);
}

/** Sandboxes of runs are kept, so that they outlive the program; those of ended runs are nobody's any more. */
async function finishEndedRuns(context: CliContext, names: readonly string[]): Promise<void> {
  const [{ openStation }, { finishRuns }] = await Promise.all([import("./station.ts"), import("../station/runs/finish-runs.ts")]);
  await using station = openStation(context);
  const known = names.filter((name) => context.runtimes.names.includes(name));
  const runtimes = await Promise.all(known.map((name) => context.runtimes.get(name)));
  await finishRuns({ ...station, runtimes });
}

/** Removes sessions that were never finished. Comes before a command, which may want to make one of the same name. */
export async function sweepSessions(context: CliContext): Promise<void> {
  const [{ openStation }, { sweepUnfinished }] = await Promise.all([import("./station.ts"), import("../station/runs/new-run.ts")]);
  await using station = openStation(context);
  await sweepUnfinished(station);
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
