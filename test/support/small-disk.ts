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
  const folder = mkdtempSync(join(tmpdir(), "caisson-test-"));
  const image = `${folder}.ext4`;
  execFileSync("truncate", ["-s", "400M", image]);
  execFileSync("mkfs.ext4", ["-q", "-m", "0", "-N", "40000", image]);
  execFileSync("mount", ["-o", "loop", image, folder]);
  if (owner !== undefined) chownSync(folder, owner.uid, owner.gid);
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
