import { open, readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { ABSENT, ifErrno } from "./failures.ts";
import { randomLetters } from "./new-id.ts";
import { lstatOrNull } from "./paths.ts";
import { hasEnded, processStat } from "./process-stat.ts";

const TEMPORARY = /\.(?:(\d{1,10})-(\d{1,18})-)?[a-z2-7]{8}\.tmp$/;
/** The age at which we remove a temporary file whose name does not identify its process. */
const TEMPORARY_AGE_MS_MAX = 3_600_000;

let ownTicks: number | undefined;

/** Returns a temporary name next to the file it will replace, with this process's id and start time. */
export function temporaryName(path: string): string {
  ownTicks ??= processStat(process.pid)?.startTicks ?? 0;
  return `${path}.${process.pid}-${ownTicks}-${randomLetters(8)}.tmp`;
}

/** Removes the temporary files that dead processes left in a folder. */
export async function sweepTemporaries(dir: string): Promise<void> {
  const entries = await ifErrno(readdir(dir, { withFileTypes: true }), [...ABSENT, "EACCES"], []);
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

/** Replaces a file atomically and durably: a crash leaves either the old file or the new one. */
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

/** Creates a file, and resolves when its content is on disk. */
export async function writeSynced(path: string, text: string): Promise<void> {
  const handle = await open(path, "wx", 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
}
