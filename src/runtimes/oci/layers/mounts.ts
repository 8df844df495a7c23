import { CaissonError } from "../../../contract/error/error.ts";
import type { SandboxConfig } from "../../../contract/sandbox/sandbox.ts";
import type { FolderMount } from "../../../contract/sandbox/sandbox-fields.ts";
import { isWithin } from "../../../lib/paths.ts";
import type { StateView } from "../../../sandbox/state-places.ts";
import type { Basis } from "../details.ts";
import type { Identity } from "../identity/identity.ts";
import type { PlanRecord } from "../launch/launcher.ts";
import { coverRecords } from "./cover-state.ts";
import { ownersMap, type RootBind } from "./layers.ts";

/**
 * Adds the overlay mounts of a config, whose changes are part of the sandbox's own files. A snapshot stores those
 * changes. They appear again if the same folder is mounted at the same path; a folder that is not requested again is
 * absent. Throws `invalid` for a path that the template needs.
 */
export function withMounts(basis: Basis, config: Pick<SandboxConfig, "mounts">): Basis {
  const others = basis.root.binds.filter(({ ids }) => ids !== "mount");
  for (const { target } of config.mounts) refuseTaken(target, others);
  const overlays = config.mounts
    .filter(({ access }) => access === "overlay")
    .map(({ path: source, target }): RootBind => {
      const known = basis.root.binds.find((bind) => bind.ids === "mount" && bind.source === source && bind.target === target);
      return known ?? { source, target, kind: "folder", writable: true, layers: [], ids: "mount" };
    });
  return { ...basis, root: { ...basis.root, binds: [...others, ...overlays] } };
}

function refuseTaken(target: string, binds: readonly RootBind[]): void {
  const conflict = binds.find((bind) => isWithin(target, bind.target) || isWithin(bind.target, target));
  if (conflict === undefined) return;
  throw new CaissonError("invalid", `cannot mount a folder at ${target}: the machine's own ${conflict.target} is there`, {
    hint: "Choose another path, such as /mnt/data.",
  });
}

/** Returns records that mount the folders that are shared as they are. */
export function mountRecords(mounts: readonly FolderMount[], options: { identity: Identity; state: StateView }): PlanRecord[] {
  const { identity, state } = options;
  return mounts.flatMap(({ path, target, access }, index): PlanRecord[] => {
    if (access === "overlay") return [];
    const name = `mount-${index}`;
    return [
      ...ownersMap(name, path, { identity, readable: access === "ro" }),
      ["bind", path, target, access === "ro" ? "ro,rec" : "rec", name],
      ...coverRecords({ state, folder: path, target }),
    ];
  });
}
