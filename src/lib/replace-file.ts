import { open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { randomLetters } from "./new-id.ts";

/** Atomic, and on the disk before it is in place: a crash leaves the old file or the new one. */
export async function replaceFile(dir: string, name: string, text: string): Promise<void> {
  const temporary = join(dir, `${name}.${randomLetters(8)}.tmp`);
  try {
    await writeSynced(temporary, text);
    await rename(temporary, join(dir, name));
  } catch (error) {
    await rm(temporary, { force: true });
    throw error;
  }
}

/** A new file. Resolves when it is on the disk. */
export async function writeSynced(path: string, text: string): Promise<void> {
  const handle = await open(path, "wx", 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
}
