import { lstat } from "node:fs/promises";
import { join } from "node:path";

/** Of the record in a sandbox's folder; changes with it, since each record is a new file. Null: there is none. */
export async function recordStamp(dir: string): Promise<string | null> {
  const stat = await lstat(join(dir, "sandbox.json"), { bigint: true }).catch(() => null);
  return stat === null ? null : `${stat.ino} ${stat.mtimeNs}`;
}
