import { execFileSync } from "node:child_process";
import { chownSync, mkdtempSync, rmSync, statfsSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

export interface SmallDisk {
  folder: string;
  freeBytes(): number;
  freeFiles(): number;
  remove(): void;
}

/** Mounts a file system of 400 MB and 40,000 files, for tests that fill it. Needs root. */
export function mountSmallDisk(owner?: { uid: number; gid: number }): SmallDisk {
  const disk = mountDisk({ bytes: 400 * 1024 ** 2, mkfs: ["mkfs.ext4", "-q", "-m", "0", "-N", "40000"] });
  if (owner !== undefined) chownSync(disk.folder, owner.uid, owner.gid);
  return disk;
}

/** Mounts a file system with subvolumes. Needs root. */
export const mountBtrfs = () => mountDisk({ bytes: 2 * 1024 ** 3, mkfs: ["mkfs.btrfs", "-q"] });

function mountDisk({ bytes, mkfs: [program, ...options] }: { bytes: number; mkfs: [string, ...string[]] }): SmallDisk {
  const folder = mkdtempSync(join(tmpdir(), "caisson-test-"));
  const image = `${folder}.image`;
  execFileSync("truncate", ["-s", String(bytes), image]);
  execFileSync(program, [...options, image]);
  execFileSync("mount", ["-o", "loop", image, folder]);
  return {
    folder,
    freeBytes() {
      const { bavail, bsize } = statfsSync(folder);
      return bavail * bsize;
    },
    freeFiles: () => statfsSync(folder).ffree,
    remove() {
      execFileSync("umount", [folder]);
      for (const path of [folder, image]) rmSync(path, { recursive: true, force: true });
    },
  };
}
