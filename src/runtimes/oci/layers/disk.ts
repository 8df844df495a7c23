import { execFile } from "node:child_process";
import { existsSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { rename, statfs, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { z } from "zod";
import { CaissonError } from "../../../contract/error/error.ts";
import type { Limits, SandboxConfig } from "../../../contract/sandbox/sandbox.ts";
import { ifErrnoSync, jsonOrNull, UNREACHABLE } from "../../../lib/failures.ts";
import { showBytes } from "../../../lib/quantity.ts";
import { tmpfsSize } from "../../../sandbox/tmpfs-size.ts";
import type { OciDetails } from "../details.ts";
import type { PlanRecord } from "../launch/launcher.ts";
import type { OciContext } from "../oci-context.ts";
import { LASTING_PREFIX, layerOf } from "./layer-of.ts";
import { liveDir } from "./live-tree.ts";

export const DISK_NAME = "disk.ext4";
const NEXT_DISK_NAME = "disk-next.ext4";
const PARTS_NAME = "disk-parts.json";
/** A sandbox's file system may contain at most one file per this many bytes, even if it is large. */
const BYTES_PER_FILE = 4096;

/** Where changes that outlive their sandbox are stored: in a plain folder, on a separate disk in it, or nowhere yet. */
export interface LayerState {
  /** The size of its disk, or null if it has none. */
  diskBytes: number | null;
  /** Whether there are changes in the folder itself, on the host's disk. */
  inFolder: boolean;
}

/** Returns null for a workspace without a layer. */
export function layerState(config: Pick<SandboxConfig, "workspace">): LayerState | null {
  const layer = layerOf(config);
  if (layer === undefined) return null;
  return {
    diskBytes: statSync(join(layer, DISK_NAME), { throwIfNoEntry: false })?.size ?? null,
    inFolder: existsSync(join(liveDir(layer), "upper")),
  };
}

/** Returns how a sandbox's disk is limited. Its limits must be known to be enforceable. */
export function diskKind(limits: Pick<Limits, "diskBytes">, options: { rootless: boolean }): OciDetails["disk"] {
  if (limits.diskBytes === null) return "none";
  return options.rootless ? "memory" : "image";
}

/**
 * Returns records that mount the disk. On a layer's disk, they first remove what sandboxes of earlier versions left
 * next to the session's files: it belonged to those sandboxes alone.
 */
export function diskRecords(details: Pick<OciDetails, "disk">, record: { spec: SandboxConfig; limits: Limits }): PlanRecord[] {
  switch (details.disk) {
    case "none":
      return [];
    case "memory":
      return [["disk-tmpfs", tmpfsSize(record.limits.diskBytes ?? 0).join(",")]];
    case "image": {
      const layer = layerOf(record.spec);
      if (layer === undefined) return [["disk-image", DISK_NAME]];
      return [
        ["disk-image", join(layer, DISK_NAME)],
        ["disk-keep", LASTING_PREFIX],
      ];
    }
  }
}

/**
 * Creates a sparse image. One that is removed with its sandbox is formatted without slow features; one that stores a
 * session's files has a journal. The image gets its name when it is complete. Throws `unavailable`, `no_space`.
 */
export async function makeDisk(oci: OciContext, record: { id: string; spec: SandboxConfig; limits: Limits }): Promise<void> {
  const layer = layerOf(record.spec);
  const path = join(layer ?? oci.store.dir(record.id), DISK_NAME);
  if (layer !== undefined && existsSync(path)) return;
  await refuseLarger(record.limits.diskBytes ?? 0, dirname(path));
  const part = `${path}.part`;
  rmSync(part, { force: true });
  await format(oci, { path: part, bytes: record.limits.diskBytes ?? 0, journal: layer !== undefined });
  renameSync(part, path);
}

/**
 * Refuses an image larger than the free space: being sparse, it would promise space that does not exist, and fill the
 * host's disk.
 */
async function refuseLarger(bytes: number, folder: string): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  if (bytes <= bavail * bsize) return;
  throw new CaissonError(
    "no_space",
    `a disk of ${showBytes(bytes)} does not fit: only ${showBytes(bavail * bsize)} are free in ${folder}`,
    {
      hint: "Request a smaller disk, or leave the limit out: programs are then ended before the machine's disk is full.",
    },
  );
}

/** Whether a layer is on a separate disk. */
export const hasLayerDisk = (layer: string) => existsSync(join(layer, DISK_NAME));

/** The record that mounts the disk in a folder to read it, even while a sandbox uses it. */
export const liveDisk = (dir: string): PlanRecord => ["disk-live", join(dir, DISK_NAME)];

/** Creates an empty disk of the same size, which a restore puts in place of a layer's own. Null without one. */
export async function makeNextDisk(oci: OciContext, layer: string): Promise<string | null> {
  if (!hasLayerDisk(layer)) return null;
  await format(oci, { path: join(layer, NEXT_DISK_NAME), bytes: statSync(join(layer, DISK_NAME)).size, journal: true });
  return NEXT_DISK_NAME;
}

/** Creates an empty disk in a layer that has the size of another layer's, if that has one. */
export async function makeDiskLike(oci: OciContext, from: string, to: string): Promise<void> {
  if (!hasLayerDisk(from)) return;
  const part = join(to, `${DISK_NAME}.part`);
  const bytes = statSync(join(from, DISK_NAME)).size;
  await refuseLarger(bytes, to);
  await format(oci, { path: part, bytes, journal: true });
  renameSync(part, join(to, DISK_NAME));
}

export function removeLayerDisk(layer: string): void {
  for (const name of [DISK_NAME, `${DISK_NAME}.part`, NEXT_DISK_NAME, PARTS_NAME]) rmSync(join(layer, name), { force: true });
}

/** Notes which parts of a machine are on a layer's disk, since the host does not look into it. */
export async function noteDiskParts(layer: string, names: readonly string[]): Promise<void> {
  const known = diskParts(layer);
  if (names.every((name) => known.includes(name))) return;
  const draft = join(layer, `${PARTS_NAME}.tmp`);
  await writeFile(draft, JSON.stringify([...new Set([...known, ...names])]), { mode: 0o600 });
  await rename(draft, join(layer, PARTS_NAME));
}

/** Returns the parts of a machine that a layer's disk may have. */
export function diskParts(layer: string): string[] {
  const text = ifErrnoSync(() => readFileSync(join(layer, PARTS_NAME), "utf8"), UNREACHABLE, "");
  const parsed = z.array(z.string()).safeParse(jsonOrNull(text));
  // Those that sandboxes of earlier versions wrote.
  return parsed.success ? parsed.data : ["home", "workspace"];
}

async function format(oci: OciContext, disk: { path: string; bytes: number; journal: boolean }): Promise<void> {
  const mkfs = oci.mkfs();
  if (mkfs === null) throw new CaissonError("unsupported", "mkfs.ext4 is not installed");
  const kibibytes = Math.floor(disk.bytes / 1024);
  const features = ["-O", `${disk.journal ? "" : "^has_journal,"}^resize_inode`, "-E", "lazy_itable_init=1,nodiscard"];
  const sizes = ["-i", String(BYTES_PER_FILE), "-m", "0"];
  try {
    await promisify(execFile)(mkfs, [...features, ...sizes, "-F", "-q", disk.path, `${kibibytes}k`]);
  } catch (cause) {
    rmSync(disk.path, { force: true });
    throw new CaissonError("unavailable", `could not create a disk of ${kibibytes} KiB`, { cause });
  }
}
