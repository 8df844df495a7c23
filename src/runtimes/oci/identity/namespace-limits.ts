import { readFileSync } from "node:fs";
import type { PlanRecord } from "../launch/launcher.ts";

/**
 * What a sandbox's user namespace may use of what the kernel gives each user: the name in /proc/sys/user, and the share
 * of the machine's own limit.
 */
const shares = [
  { name: "max_inotify_instances", file: "/proc/sys/fs/inotify/max_user_instances", share: 1 / 4, least: 16 },
  { name: "max_inotify_watches", file: "/proc/sys/fs/inotify/max_user_watches", share: 1 / 2, least: 4_096 },
];

/**
 * Records that limit what one sandbox uses up of its maker's. Nobody inside makes user namespaces, in which it could be
 * counted anew.
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
  try {
    return Number(readFileSync(file, "latin1"));
  } catch {
    return null;
  }
}
