import { lstat } from "node:fs/promises";
import { join } from "node:path";
import { ABSENT, ifErrno } from "../lib/failures.ts";

/**
 * Returns a stamp of the record in a sandbox's folder, which changes with every write because each record is a new
 * file. Returns null if there is no record.
 */
export async function recordStamp(dir: string): Promise<string | null> {
  const stat = await ifErrno(lstat(join(dir, "sandbox.json"), { bigint: true }), ABSENT, null);
  return stat === null ? null : `${stat.ino} ${stat.mtimeNs}`;
}
