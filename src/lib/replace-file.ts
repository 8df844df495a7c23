import { open, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { isErrno } from "./is-errno.ts";
import { lstatOrNull } from "./lstat-or-null.ts";
import { randomLetters } from "./new-id.ts";
import { hasEnded, processStat } from "./process-stat.ts";

const TEMPORARY = /\.(?:(\d{1,10})-(\d{1,18})-)?[a-z2-7]{8}\.tmp$/;
/** Of a file whose name does not say who made it. */
const TEMPORARY_AGE_MS_MAX = 3_600_000;

let ownTicks: number | undefined;

/** Beside a file that it is to replace, named for this process. */
export function temporaryName(path: string): string {
  ownTicks ??= processStat(process.pid)?.startTicks ?? 0;
  return `${path}.${process.pid}-${ownTicks}-${randomLetters(8)}.tmp`;
}

/** Removes from a folder what processes that died were about to put in place of its files. */
export async function sweepTemporaries(dir: string): Promise<void> {
  const entries = await readdir(dir, { withFileTypes: true }).catch((error: unknown) => {
    if (isErrno(error, "ENOENT", "ENOTDIR", "EACCES")) return [];
    throw error;
  });
  for (const entry of entries) {
    const match = entry.isFile() ? TEMPORARY.exec(entry.name) : null;
    if (match !== null && isAbandoned(join(dir, entry.name), match)) await rm(join(dir, entry.name), { force: true });
  }
}

function isAbandoned(path: string, [, pid, startTicks]: RegExpExecArray): boolean {
  if (pid === undefined) return Date.now() - (lstatOrNull(path)?.mtimeMs ?? Date.now()) > TEMPORARY_AGE_MS_MAX;
  const stat = processStat(Number(pid));
  return hasEnded(stat) || stat?.startTicks !== Number(startTicks);
}

/** Atomic, and on the disk before it is in place: a crash leaves the old file or the new one. */
export async function replaceFile(dir: string, name: string, text: string): Promise<void> {
  const temporary = temporaryName(join(dir, name));
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
