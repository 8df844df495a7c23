import type { StateView } from "../../../sandbox/state-places.ts";
import type { PlanRecord } from "../launch/launcher.ts";

/**
 * Returns records that hide the state folder in a lower layer, and the names of the layers to put right above that
 * layer. Both are empty if the state folder is not visible in `folder`.
 */
export function maskRecords(options: { state: StateView; folder: string; layer: string }): { records: PlanRecord[]; names: string[] } {
  const { state, folder, layer } = options;
  const name = `mask-${layer}`;
  const places = state.placesIn(folder, { mountsBelow: false });
  return {
    records: places.map(({ path, device, inode }): PlanRecord => ["mask", name, layer, path, String(device), String(inode)]),
    names: places.length === 0 ? [] : [name],
  };
}

/** Returns records that cover the state folder in a folder that is mounted as it is, including all mounts below it. */
export function coverRecords(options: { state: StateView; folder: string; target: string }): PlanRecord[] {
  const { state, folder, target } = options;
  return state
    .placesIn(folder, { mountsBelow: true })
    .map(({ path, device, inode }): PlanRecord => ["cover", target, path, String(device), String(inode)]);
}
