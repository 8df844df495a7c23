import { closeSync, openSync, write } from "node:fs";
import { join } from "node:path";
import { ifErrnoSync, UNREACHABLE } from "../../../lib/failures.ts";
import { type CgroupParents, readOwnCgroups } from "./cgroup-parents.ts";

const EVERY_MS = 5;

export interface QuickMigration {
  /** Keeps moves fast until the returned function is called. */
  hold(groups: CgroupParents): () => void;
}

/**
 * Speeds up moves between control groups. The kernel completes a move only after a grace period of 5 ms or more on all
 * processors; a move shortly after another need not wait. A start has two moves: the launcher's, and that of the
 * sandbox's work. So during a start this process repeatedly moves itself into the group that it is already in, and the
 * grace period passes while other things are done. Concurrent starts share it.
 */
export function createQuickMigration(): QuickMigration {
  let holders = 0;
  let moving = false;
  const end = (fd: number) => {
    moving = false;
    closeSync(fd);
  };
  // A pool thread writes this immediately, even if the main thread is busy. Nothing depends on its success.
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

/**
 * Opens our group's process list for writing. Null if we may not, or if another process has moved us since: we must not
 * move ourselves back.
 */
function ownProcesses({ parents, ownCgroups }: CgroupParents): number | null {
  const own = parents.find((parent) => parent.own !== null)?.own;
  if (own == null || readOwnCgroups() !== ownCgroups) return null;
  return ifErrnoSync(() => openSync(join(own, "cgroup.procs"), "w"), [...UNREACHABLE, "EROFS", "ENODEV"], null);
}
