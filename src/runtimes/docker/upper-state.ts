import { createHash } from "node:crypto";
import { lstat, opendir } from "node:fs/promises";
import { join } from "node:path";

/** What a container's writable layer contains: its names, and when each last changed. */
export interface UpperState {
  digest: string;
  /** When each entry last changed, whatever programs set as its times. */
  changedMs: number[];
}

/** Beyond this, looking would cost more than storing. */
const ENTRIES_MAX = 200_000;

/**
 * Looks into the folder of a container's writable layer on the host, without opening any file in it. Null if it cannot
 * be read: the engine stores layers otherwise, or for another user.
 */
export async function upperState(folder: string | null): Promise<UpperState | null> {
  if (folder === null) return null;
  const changedMs: number[] = [];
  const lines: string[] = [];
  try {
    for (const folders = [folder]; folders.length > 0; ) {
      const parent = folders.pop() as string;
      for await (const { name } of await opendir(parent)) {
        if (lines.length >= ENTRIES_MAX) return null;
        const path = join(parent, name);
        const status = await lstat(path, { bigint: true });
        changedMs.push(Number(status.ctimeNs / 1_000_000n));
        lines.push(`${path}\0${status.ino}\0${status.ctimeNs}`);
        if (status.isDirectory()) folders.push(path);
      }
    }
  } catch {
    // A program inside may remove what we are about to look at.
    return null;
  }
  return { digest: createHash("sha256").update(lines.sort().join("\n")).digest("hex"), changedMs };
}
