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
  const ofRuns = new Set(records.filter((record) => record.spec.labels.run !== undefined).map((record) => record.runtime));
  if (ofRuns.size > 0) await finishEndedRuns(context, [...ofRuns]);
}

/** Sandboxes of runs are kept, so that they outlive the program; those of ended runs are nobody's any more. */
async function finishEndedRuns(context: CliContext, names: readonly string[]): Promise<void> {
  const [{ openStation }, { finishRuns }] = await Promise.all([import("./station.ts"), import("../station/finish-runs.ts")]);
  await using station = openStation(context);
  const known = names.filter((name) => context.runtimes.names.includes(name));
  const runtimes = await Promise.all(known.map((name) => context.runtimes.get(name)));
  await finishRuns({ ...station, runtimes });
}

/** Removes sessions that were never finished. Comes before a command, which may want to make one of the same name. */
export async function sweepSessions(context: CliContext): Promise<void> {
  const [{ openStation }, { sweepUnfinished }] = await Promise.all([import("./station.ts"), import("../station/new-run.ts")]);
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
