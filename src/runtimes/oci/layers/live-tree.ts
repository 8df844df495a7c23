import { existsSync, statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { join } from "node:path";
import { CaissonError } from "../../../contract/error/error.ts";
import { createDiskShares } from "../../../sandbox/disk-shares.ts";
import type { OciContext } from "../oci-context.ts";

/*
 * On btrfs, all writable layers of a session are in one subvolume, so that a point is one snapshot of it: its cost does
 * not depend on the number of files. Another session's layers are in a snapshot of that snapshot.
 */

export const LIVE_NAME = "live";
/** The prefix of a subvolume that a restore puts in the place of the current one. */
export const NEXT_PREFIX = "next-";
const BTRFS = 0x9123683e;
/** The inode of every subvolume's top folder. */
const SUBVOLUME_INODE = 256;
const SNAPSHOT_TIMEOUT_MS = 10 * 60_000;

type Launching = Pick<OciContext, "context" | "launch" | "identity">;

export const isBtrfs = async (path: string) => (await statfs(path)).type === BTRFS;

/** Returns the folder with the writable layers of a session. */
export function liveDir(layer: string): string {
  const live = join(layer, LIVE_NAME);
  return existsSync(live) ? live : layer;
}

export const isLiveName = (name: string) => name === LIVE_NAME || name.startsWith(NEXT_PREFIX);

/** Returns the subvolume with a session's writable layers; null if they are in plain folders. */
export function liveTree(layer: string): string | null {
  const live = join(layer, LIVE_NAME);
  return isSubvolume(live) ? live : null;
}

/** A backup or a copy makes plain folders of subvolumes. */
export function isSubvolume(path: string): boolean {
  const found = statSync(path, { throwIfNoEntry: false });
  return found?.isDirectory() === true && found.ino === SUBVOLUME_INODE;
}

/** Whether points of new sessions can be snapshots of subvolumes. Users without root may not look up what changed. */
export async function hasLiveTrees({ context, identity }: Pick<OciContext, "context" | "identity">): Promise<boolean> {
  if (identity().rootless || process.getuid?.() !== 0) return false;
  // The folder may be in a volume.
  const layers = join(context.stateDir, "layers");
  return await isBtrfs(existsSync(layers) ? layers : context.stateDir);
}

/** Creates the subvolume of a session whose layers have not been written yet. */
export async function createLiveTree(oci: Launching, layer: string): Promise<void> {
  if (existsSync(join(layer, LIVE_NAME)) || existsSync(join(layer, "upper")) || !(await hasLiveTrees(oci))) return;
  await oci.launch({ what: "snapshot", plan: [...oci.identity().plan, ["subvolume", join(layer, LIVE_NAME)]] });
}

export interface CopiedTree {
  /** The transaction that made the copy. Later changes of the original, or of the copy, belong to later ones. */
  transaction: number;
  files: number;
  bytes: number;
  hasChanged: boolean;
}

/**
 * Copies a subvolume. `since` is a transaction, and the subvolume as it was then: the result says what changed from
 * there. Throws `too_large`, `no_space`.
 */
export async function copyTreeSince(
  oci: Launching,
  { from, to, since, bytesMax }: { from: string; to: string; since?: { transaction: number; tree: string | null }; bytesMax?: number },
): Promise<CopiedTree> {
  const { stateDir, disk = createDiskShares({ stateDir }) } = oci.context;
  const lines = await disk.write({ what: "the files of a point" }, ({ signal }) =>
    oci.launch({
      what: "snapshot",
      plan: [
        ...oci.identity().plan,
        ["snapshot", from, to],
        ...(since === undefined ? [] : [["since", since.transaction, since.tree ?? "-"] as const]),
        ...(bytesMax === undefined ? [] : [["bytes-max", bytesMax] as const]),
      ],
      signal,
      timeoutMs: SNAPSHOT_TIMEOUT_MS,
    }),
  );
  const find = (pattern: RegExp) => lines.map((line) => pattern.exec(line)).find((match) => match !== null) ?? [];
  const [, transaction] = find(/^transaction (\d+)$/);
  const [, files, bytes, changed] = find(/^part tree (\d+) (\d+) ([01])$/);
  if (transaction === undefined) throw new CaissonError("internal", "the launcher did not report its snapshot");
  return { transaction: Number(transaction), files: Number(files ?? 0), bytes: Number(bytes ?? 0), hasChanged: changed === "1" };
}
