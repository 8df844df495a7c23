import { closeSync, openSync, write } from "node:fs";
import { join } from "node:path";
import { type CgroupParents, readOwnCgroups } from "./cgroup-parents.ts";

const EVERY_MS = 5;

export interface QuickMigration {
  /** From now on, until what this gives is called. */
  hold(groups: CgroupParents): () => void;
}

/**
 * The kernel moves a process from group to group only after all processors have passed a quiet point, which takes it 5
 * ms and more; a move shortly after another need not wait. A start has two: of the launcher, and of the sandbox's work.
 * So this process moves itself to where it is already, first of all, and again and again until the start is over: the
 * quiet point passes while other things are done. Starts at the same time share it.
 */
export function createQuickMigration(): QuickMigration {
  let holders = 0;
  let moving = false;
  const end = (fd: number) => {
    moving = false;
    closeSync(fd);
  };
  // A thread takes it at once, whatever this one does next. Nothing depends on its success.
  const move = (fd: number) =>
    write(fd, String(process.pid), (error) => {
      if (error !== null || holders === 0) end(fd);
      else setTimeout(() => (holders === 0 ? end(fd) : move(fd)), EVERY_MS);
    });
  return {
    hold(groups) {
      const file = moving ? null : ownProcesses(groups);
      holders += 1;
      if (file !== null) {
        moving = true;
        move(file);
      }
      return () => {
        holders -= 1;
      };
    },
  };
}

/** To write to; null where this process may not, or has been moved by somebody since: it must not move itself back. */
function ownProcesses({ parents, ownCgroups }: CgroupParents): number | null {
  const own = parents.find((parent) => parent.own !== null)?.own;
  if (own == null || readOwnCgroups() !== ownCgroups) return null;
  try {
    return openSync(join(own, "cgroup.procs"), "w");
  } catch {
    return null;
  }
}
