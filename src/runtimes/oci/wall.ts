import { existsSync } from "node:fs";
import { join } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import type { SandboxStats } from "../../contract/sandbox/sandbox.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import { configOfFork } from "../../sandbox/sandbox-config.ts";
import type { SandboxRecord } from "../../sandbox/store.ts";
import type { Wall } from "../../sandbox/wall.ts";
import { canFreeze, cgroupFigures, freezeWork } from "./cgroups/cgroup.ts";
import { detailsOf, type OciDetails } from "./details.ts";
import { endSandbox } from "./end-sandbox.ts";
import { conditionOf, refuseWhileHeld } from "./freeze.ts";
import { processesOf } from "./identity/namespace-processes.ts";
import { noteView } from "./launch/launch-plan.ts";
import { layerOf } from "./layers/layer-of.ts";
import { VIEW_NAME } from "./layers/machine.ts";
import { takeSnapshot } from "./layers/snapshot.ts";
import { pauseToDisk } from "./memory/pause-to-disk.ts";
import type { OciContext } from "./oci-context.ts";

export interface WallOptions {
  oci: OciContext;
  record: SandboxRecord;
  details: OciDetails;
  /** Creates a sandbox from a snapshot that is removed with it. */
  forkFrom(snapshot: string, config: SandboxRecord["spec"]): Promise<OwnedSandbox>;
  onEnding(): void;
}

/** Creates the wall of one sandbox: control groups, processes and layers on the host. */
export function createWall(options: WallOptions): Wall {
  const { oci, details } = options;
  let { record } = options;
  const freezes = canFreeze(details.cgroups);
  const setState = async (state: "running" | "paused") => {
    // Done even if nothing seems to change: another process may have changed the state since this handle last read it.
    const current = await oci.store.read(record.id);
    refuseWhileHeld(oci, current);
    await freezeWork(details.cgroups, state === "paused" ? "frozen" : "thawed");
    record = { ...current, state, details: { ...detailsOf(current), frozenBy: null } };
    await oci.store.write(record);
  };
  const refuseWithoutFreezer = () => {
    if (!freezes)
      throw new CaissonError("unsupported", `sandbox ${record.id} has no control group that can freeze it`, {
        hint: "Start Caisson as root, or with a delegated control group (`caisson doctor`).",
      });
  };
  const snapshot = async (snapshotOptions: { name?: string | undefined; hidden: boolean; memory: boolean }) => {
    const current = await oci.store.read(record.id);
    if (snapshotOptions.memory && current.state === "paused")
      throw new CaissonError("conflict", `sandbox ${record.id} is paused`, { hint: "Resume it before storing its processes." });
    // A sandbox of an earlier version has none.
    const dir = layerOf(record.spec) ?? oci.store.dir(record.id);
    if (!existsSync(join(dir, VIEW_NAME))) await noteView(oci, { record, details });
    return await takeSnapshot(oci, { record, details, ...snapshotOptions });
  };
  return {
    stats: async () => statsOf(details),
    condition: () => conditionOf(oci, record.id, details),
    async pause({ toDisk = false } = {}) {
      if (toDisk) return await pauseToDisk(oci, record.id);
      refuseWithoutFreezer();
      await setState("paused");
    },
    async resume() {
      if (freezes) await setState("running");
    },
    snapshot: ({ name, memory = false }) => snapshot({ name, memory, hidden: false }),
    async fork({ memory = false, ...forkOptions }) {
      return options.forkFrom(await snapshot({ memory, hidden: true }), configOfFork(record.spec, forkOptions));
    },
    async release() {
      record = await oci.store.read(record.id);
      // A kept sandbox has no owner from the start.
      if (record.owner === null) return;
      record = { ...record, owner: null };
      await oci.store.write(record);
    },
    destroy() {
      options.onEnding();
      return endSandbox(oci, record, details);
    },
  };
}

/**
 * Returns the figures of the control groups. Without any, only the processes in the sandbox's pid namespace can be
 * counted.
 */
export function statsOf(details: OciDetails): SandboxStats {
  const figures = cgroupFigures(details.cgroups);
  return {
    cpuMs: figures.cpuMs,
    memoryBytes: figures.memoryBytes,
    memoryKills: figures.memoryKills,
    processes: figures.processes ?? (details.guest === null ? 0 : processesOf(details.guest).length),
    diskBytes: null,
    source: "host",
  };
}
