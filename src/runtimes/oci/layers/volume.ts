import { execFile } from "node:child_process";
import { existsSync, renameSync, rmSync } from "node:fs";
import { open, readdir, statfs } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { CaissonError } from "../../../contract/error/error.ts";
import { ABSENT, ifErrno, isErrno } from "../../../lib/failures.ts";
import { showBytes } from "../../../lib/quantity.ts";
import { findProgram } from "../discover.ts";
import { createLauncher } from "../launch/launcher.ts";
import { isBtrfs } from "./live-tree.ts";

const IMAGE_NAME = "volume.btrfs";
/** What is in the volume: snapshots work only within one file system. */
const FOLDERS = ["sandboxes", "sessions", "layers"];

export interface VolumeOptions {
  stateDir: string;
  guestPath: string;
  /** Where programs are looked up. */
  path: string;
  /** The size of a new volume. Without one, only an existing volume is mounted. */
  bytes?: number | undefined;
}

/**
 * Mounts the state folder's volume if it is not mounted, and first creates it if its size is configured. Its room is
 * allocated at once, so that the disk cannot fill up below it. Throws `unsupported`, `no_space`, and `conflict` if
 * there are sessions outside it.
 */
export async function openVolume(options: VolumeOptions): Promise<void> {
  const { stateDir, guestPath, path } = options;
  const image = join(stateDir, IMAGE_NAME);
  if (await areMounted(stateDir)) return;
  // Without the volume, its sessions would seem to have been removed.
  if (process.getuid?.() !== 0)
    throw new CaissonError("unsupported", "only root can mount the volume of the state folder", {
      hint: existsSync(image)
        ? `Run a command as root once after each boot.`
        : "Remove volumeBytes from the configuration, or run as root.",
    });
  if (!existsSync(image)) {
    if (await isBtrfs(stateDir)) return;
    await createImage(options, image);
  }
  const launch = createLauncher({ guestPath, path });
  await launch({ what: "volume", plan: [["volume", image, stateDir], ...FOLDERS.map((name) => ["argument", name] as const)] });
}

async function areMounted(stateDir: string): Promise<boolean> {
  if (!existsSync(join(stateDir, IMAGE_NAME))) return false;
  const mounted = await Promise.all(FOLDERS.map((name) => ifErrno(isBtrfs(join(stateDir, name)), ABSENT, false)));
  return mounted.every((each) => each);
}

async function createImage({ stateDir, bytes = 0, path }: VolumeOptions, image: string): Promise<void> {
  for (const name of FOLDERS) {
    if ((await ifErrno(readdir(join(stateDir, name)), ABSENT, [])).length === 0) continue;
    throw new CaissonError("conflict", `the state folder ${stateDir} has ${name} already, which a new volume would hide`, {
      hint: "Remove volumeBytes from the configuration, or set CAISSON_HOME to a new folder.",
    });
  }
  const mkfs = findProgram("mkfs.btrfs", path) ?? findProgram("mkfs.btrfs", "/usr/sbin:/sbin");
  if (mkfs === null)
    throw new CaissonError("unsupported", "mkfs.btrfs is not installed, which a volume requires", {
      hint: "Run `apt install btrfs-progs`.",
    });
  const { bavail, bsize } = await statfs(stateDir);
  if (bytes > bavail * bsize)
    throw new CaissonError("no_space", `a volume of ${showBytes(bytes)} does not fit: ${showBytes(bavail * bsize)} are free`, {
      hint: "Reduce volumeBytes in the configuration.",
    });
  const draft = `${image}.${process.pid}`;
  try {
    await (await open(draft, "wx", 0o600)).close();
    await promisify(execFile)("fallocate", ["-l", String(bytes), draft]);
    await promisify(execFile)(mkfs, ["-q", draft]);
    // Another process may have created it meanwhile.
    if (!existsSync(image)) renameSync(draft, image);
  } catch (cause) {
    if (isErrno(cause, "ENOSPC")) throw new CaissonError("no_space", `a volume of ${showBytes(bytes)} does not fit`, { cause });
    throw new CaissonError("unavailable", `could not create a volume of ${showBytes(bytes)}`, { cause });
  } finally {
    rmSync(draft, { force: true });
  }
}
