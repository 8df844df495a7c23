import { readFileSync } from "node:fs";

let read: string | undefined;

/** Returns the id of the machine's current boot, which no process outlives. */
export function bootId(): string {
  read ??= readFileSync("/proc/sys/kernel/random/boot_id", "latin1").trim();
  return read;
}
