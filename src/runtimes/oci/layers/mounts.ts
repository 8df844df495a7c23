import { CaissonError } from "../../../contract/error.ts";
import type { FolderMount, SandboxSpec } from "../../../contract/sandbox.ts";
import { isWithin } from "../../../sandbox/shared-folders.ts";
import type { StateView } from "../../../sandbox/state-places.ts";
import type { Basis } from "../details.ts";
import type { Identity } from "../identity/identity.ts";
import type { PlanRecord } from "../launch/launcher.ts";
import { coverRecords } from "./cover-state.ts";
import { ownersMap, type RootBind } from "./layers.ts";

/**
 * Adds the overlaid mounts of a spec, whose changes are part of the sandbox's own files. A snapshot keeps those
 * changes; they are seen again where the same folder is mounted at the same place, and a folder that is not asked for
 * again is not there. Throws `invalid` for a place that the template needs.
 */
export function withMounts(basis: Basis, spec: Pick<SandboxSpec, "mounts">): Basis {
  const others = basis.root.binds.filter(({ ids }) => ids !== "mount");
  for (const { target } of spec.mounts) refuseTaken(target, others);
  const overlays = spec.mounts
    .filter(({ access }) => access === "overlay")
    .map(({ path: source, target }): RootBind => {
      const known = basis.root.binds.find((bind) => bind.ids === "mount" && bind.source === source && bind.target === target);
      return known ?? { source, target, kind: "folder", writable: true, layers: [], ids: "mount" };
    });
  return { ...basis, root: { ...basis.root, binds: [...others, ...overlays] } };
}

function refuseTaken(target: string, binds: readonly RootBind[]): void {
  const taken = binds.find((bind) => isWithin(target, bind.target) || isWithin(bind.target, target));
  if (taken === undefined) return;
  throw new CaissonError("invalid", `no folder can be mounted at ${target}: the machine's own ${taken.target} is there`, {
    hint: "Choose another path, such as /mnt/data.",
  });
}

/** Records that mount the folders that are given as they are. */
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
