import { CaissonError } from "../../contract/error.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";

/** Reads a text file of bounded size. Throws `too_large`, `invalid` for what is not text, and what `readFile` throws. */
export async function readTextFile(sandbox: Sandbox, path: string, options: { bytesMax: number }): Promise<string> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of await sandbox.readFile(path)) {
    bytes += piece.length;
    if (bytes > options.bytesMax) throw new CaissonError("too_large", `${path} is longer than ${options.bytesMax} bytes.`);
    pieces.push(piece);
  }
  const whole = Buffer.concat(pieces);
  if (whole.includes(0)) throw new CaissonError("invalid", `${path} is not a text file.`);
  return whole.toString("utf8");
}

/** Null for a file that is not there. */
export async function readTextIfThere(sandbox: Sandbox, path: string, options: { bytesMax: number }): Promise<string | null> {
  try {
    return await readTextFile(sandbox, path, options);
  } catch (error) {
    if (error instanceof CaissonError && error.code === "not_found") return null;
    throw error;
  }
}

/** Lines added and removed, by counting lines that occur in only one of the two: what a summary needs, not a diff. */
export function countLines(before: string | null, after: string | null): { linesAdded: number; linesRemoved: number } {
  const counts = new Map<string, number>();
  for (const line of before === null || before === "" ? [] : before.split("\n")) counts.set(line, (counts.get(line) ?? 0) - 1);
  for (const line of after === null || after === "" ? [] : after.split("\n")) counts.set(line, (counts.get(line) ?? 0) + 1);
  let linesAdded = 0;
  let linesRemoved = 0;
  for (const count of counts.values()) {
    if (count > 0) linesAdded += count;
    else linesRemoved -= count;
  }
  return { linesAdded, linesRemoved };
}
