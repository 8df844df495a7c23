import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { ABSENT, ifErrno, ignore } from "../../lib/failures.ts";
import { isRunning } from "../../sandbox/process-identity.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import { isToSweep } from "../../sandbox/store.ts";
import { type RemoveContext, removeWithoutRecord } from "./remove-sandbox.ts";

/** The runtime that stores its snapshots and layers in the state folder. */
const SNAPSHOT_RUNTIME = "oci";

/** Removes what killed programs left behind. Reads only three folders if there is nothing. */
export async function sweepSandboxes(
  options: RemoveContext & { stateDir: string; finishRuns: (runtimes: readonly Runtime[]) => Promise<void> },
): Promise<void> {
  const { stateDir, store, runtimes } = options;
  const [sandboxes, ...stored] = await Promise.all(
    ["sandboxes", "snapshots", "layers"].map((name) => ifErrno(readdir(join(stateDir, name)), ABSENT, [])),
  );
  const unfinishedSnapshots = stored.flat().some(isUnfinished) ? [SNAPSHOT_RUNTIME] : [];
  if (sandboxes?.length === 0 && unfinishedSnapshots.length === 0) return;
  const { records, damaged } = await store.list();
  const toSweep = new Set([...records.filter(isToSweep).map((record) => record.runtime), ...unfinishedSnapshots]);
  for (const name of toSweep) if (runtimes.names.includes(name)) await (await runtimes.get(name)).sweep();
  const lost = damaged.filter(({ beforeBoot }) => beforeBoot);
  if (lost.length > 0) {
    // A power cut destroyed their records. These sandboxes cannot be alive, and cannot be opened.
    for (const { id } of lost) await removeWithoutRecord(id, options);
  }
  // Sandboxes of runs are kept so that they outlive the program. Those of ended runs have no driver left to remove
  // them.
  const ofRuns = new Set(records.filter((record) => record.spec.labels.run !== undefined).map((record) => record.runtime));
  const known = [...ofRuns].filter((name) => runtimes.names.includes(name));
  if (known.length > 0) await options.finishRuns(await Promise.all(known.map((name) => runtimes.get(name))));
}

/**
 * Whether something in the folders of snapshots and layers is being removed, or is of a process that died while it
 * created something: those names begin with a dot and, except for removals, contain the process.
 */
function isUnfinished(name: string): boolean {
  const [, pid, startTicks] = /^\.\w+-(\d{1,10})-(\d{1,18})-/.exec(name) ?? [];
  return name.startsWith(".") && (pid === undefined || !isRunning({ pid: Number(pid), startTicks: Number(startTicks) }));
}

/** Removes the sandboxes that this process created without keeping them. */
export async function removeOwn({ store, runtimes }: RemoveContext): Promise<void> {
  const self = store.thisProcess();
  const { records } = await store.list();
  for (const record of records) {
    if (record.owner?.pid !== self.pid || record.owner.startTicks !== self.startTicks || record.state === "completing") continue;
    const runtime = await runtimes.get(record.runtime);
    // A sandbox in the middle of its creation cannot be opened. Its process is about to end, and the next command
    // sweeps it.
    const sandbox = await ignore(runtime.open(record.id), "the next command sweeps it");
    await sandbox?.destroy();
  }
}
