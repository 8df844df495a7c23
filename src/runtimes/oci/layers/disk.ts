import { execFile } from "node:child_process";
import { existsSync, renameSync, rmSync, statSync } from "node:fs";
import { statfs } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { CaissonError } from "../../../contract/error.ts";
import type { Limits, SandboxSpec } from "../../../contract/sandbox.ts";
import { showBytes } from "../../../lib/quantity.ts";
import { tmpfsSize } from "../../../sandbox/tmpfs-size.ts";
import type { OciDetails } from "../details.ts";
import type { PlanRecord } from "../launch/launcher.ts";
import type { OciContext } from "../oci-context.ts";

const DISK_NAME = "disk.ext4";
/** What a file system of a sandbox's may hold at most: one file for each so many bytes, also where it is large. */
const BYTES_PER_FILE = 4096;

/**
 * What keeps the changes of a workspace beyond its sandbox: a plain folder, a disk of its own in it, or nothing yet.
 */
export interface LayerState {
  /** The size of its own disk; null: it has none. */
  diskBytes: number | null;
  /** Whether there are changes in the folder itself, on the host's disk. */
  inFolder: boolean;
}

/** Null for a workspace without a layer. */
export function layerState(spec: Pick<SandboxSpec, "workspace">): LayerState | null {
  const layer = layerOf(spec);
  if (layer === undefined) return null;
  return {
    diskBytes: statSync(join(layer, DISK_NAME), { throwIfNoEntry: false })?.size ?? null,
    inFolder: existsSync(join(layer, "upper")),
  };
}

/** How a sandbox's disk is limited, once its limits are known to be enforceable. */
export function diskKind(limits: Pick<Limits, "diskBytes">, options: { rootless: boolean }): OciDetails["disk"] {
  if (limits.diskBytes === null) return "none";
  return options.rootless ? "memory" : "image";
}

/**
 * Records that mount it. What an earlier sandbox left on a layer's disk beside the workspace goes first: it was that
 * sandbox's own.
 */
export function diskRecords(details: Pick<OciDetails, "disk">, record: { spec: SandboxSpec; limits: Limits }): PlanRecord[] {
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
        ["disk-keep", "workspace-"],
      ];
    }
  }
}

/**
 * A sparse image. One that goes with its sandbox is formatted without what takes time; one that keeps a session's files
 * has a journal, and is shown under its name when it is whole. Throws `unavailable`, `no_space`.
 */
export async function makeDisk(oci: OciContext, record: { id: string; spec: SandboxSpec; limits: Limits }): Promise<void> {
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
 * An image is sparse: one that is larger than what is free would promise what is not there, and fill the host's disk on
 * the way.
 */
async function refuseLarger(bytes: number, folder: string): Promise<void> {
  const { bavail, bsize } = await statfs(folder);
  if (bytes <= bavail * bsize) return;
  throw new CaissonError("no_space", `a disk of ${showBytes(bytes)} does not fit: ${showBytes(bavail * bsize)} are free in ${folder}`, {
    hint: "Ask for a smaller disk, or leave the limit out: work is then ended before the machine's disk is full.",
  });
}

/** Whether what is written to a layer is on a disk of its own. */
export const hasLayerDisk = (layer: string) => existsSync(join(layer, DISK_NAME));

export function removeLayerDisk(layer: string): void {
  for (const name of [DISK_NAME, `${DISK_NAME}.part`]) rmSync(join(layer, name), { force: true });
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
    throw new CaissonError("unavailable", `a disk of ${kibibytes} KiB could not be made`, { cause });
  }
}

function layerOf({ workspace }: Pick<SandboxSpec, "workspace">): string | undefined {
  return workspace.kind === "folder" ? workspace.layer : undefined;
}
