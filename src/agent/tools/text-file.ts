import { isUtf8 } from "node:buffer";
import { CaissonError } from "../../contract/error.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";

/**
 * Reads a text file of bounded size. Throws `too_large`, `invalid` for what is not UTF-8 text, and what `readFile`
 * throws.
 */
export async function readTextFile(sandbox: Sandbox, path: string, options: { bytesMax: number }): Promise<string> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of await sandbox.readFile(path)) {
    bytes += piece.length;
    if (bytes > options.bytesMax) throw new CaissonError("too_large", `${path} is longer than ${options.bytesMax} bytes`);
    pieces.push(piece);
  }
  const whole = Buffer.concat(pieces);
  // Written back, what was not UTF-8 would be something else.
  if (whole.includes(0) || !isUtf8(whole)) {
    throw new CaissonError("invalid", `${path} is not a text file in UTF-8`, { hint: "Change it with bash." });
  }
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
  for (const line of linesOf(before)) counts.set(line, (counts.get(line) ?? 0) - 1);
  for (const line of linesOf(after)) counts.set(line, (counts.get(line) ?? 0) + 1);
  let linesAdded = 0;
  let linesRemoved = 0;
  for (const count of counts.values()) {
    if (count > 0) linesAdded += count;
    else linesRemoved -= count;
  }
  return { linesAdded, linesRemoved };
}

function linesOf(text: string | null): string[] {
  if (text === null || text === "") return [];
  return (text.endsWith("\n") ? text.slice(0, -1) : text).split("\n");
}
