import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type CgroupParents, readOwnCgroups } from "./cgroup-parents.ts";

const EVERY_MS = 3;

/**
 * The kernel moves a process from group to group only after all processors have passed a quiet point, which takes it 5 ms and more; a move shortly after
 * another need not wait. A start has two: of the launcher, and of the sandbox's work. So this process moves itself to where it is already, and again
 * and again until the start is over: the quiet point passes while other things are done.
 */
export function quickenMigration({ parents, ownCgroups }: CgroupParents): { stop(): void } {
  const own = parents.find((parent) => parent.own !== null)?.own;
  // Somebody may have moved this process since; it must not move itself back.
  let stopped = own == null || readOwnCgroups() !== ownCgroups;
  const keepOn = async () => {
    while (!stopped) {
      await writeFile(join(own ?? "", "cgroup.procs"), String(process.pid));
      await delay(EVERY_MS);
    }
  };
  // Nothing depends on it.
  keepOn().catch(() => {});
  return {
    stop() {
      stopped = true;
    },
  };
}
