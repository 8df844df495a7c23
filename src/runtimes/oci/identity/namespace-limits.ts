import { readFileSync } from "node:fs";
import { ifErrnoSync, UNREACHABLE } from "../../../lib/failures.ts";
import type { PlanRecord } from "../launch/launcher.ts";

/**
 * How much of the kernel's limits per user a sandbox's user namespace may use: the name in /proc/sys/user, and the
 * share of the machine's own limit.
 */
const shares = [
  { name: "max_inotify_instances", file: "/proc/sys/fs/inotify/max_user_instances", share: 1 / 4, least: 16 },
  { name: "max_inotify_watches", file: "/proc/sys/fs/inotify/max_user_watches", share: 1 / 2, least: 4_096 },
];

/**
 * Returns records that limit how much one sandbox uses of its creator's share. Code inside cannot create user
 * namespaces, which would start a fresh count.
 */
export function namespaceLimits(): PlanRecord[] {
  return [
    ["userns-limit", "max_user_namespaces", 0],
    ...shares.flatMap(({ name, file, share, least }): PlanRecord[] => {
      const most = readNumber(file);
      return most === null ? [] : [["userns-limit", name, Math.max(least, Math.floor(most * share))]];
    }),
  ];
}

function readNumber(file: string): number | null {
  return ifErrnoSync(() => Number(readFileSync(file, "latin1")), UNREACHABLE, null);
}
