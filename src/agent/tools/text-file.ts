import { isUtf8 } from "node:buffer";
import { CaissonError } from "../../contract/error/error.ts";
import { foundOrNull } from "../../contract/error/found-or-null.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";

/**
 * Reads a text file of bounded size. Throws `too_large`, `invalid` if it is not UTF-8 text, and the errors of
 * `readFile`.
 */
export async function readTextFile(sandbox: Sandbox, path: string, options: { bytesMax: number }): Promise<string> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of await sandbox.readFile(path)) {
    bytes += piece.length;
    if (bytes > options.bytesMax) throw new CaissonError("too_large", `${path} is larger than ${options.bytesMax} bytes`);
    pieces.push(piece);
  }
  const whole = Buffer.concat(pieces);
  // Bytes that are not UTF-8 would change when the file is written back.
  if (whole.includes(0) || !isUtf8(whole)) {
    throw new CaissonError("invalid", `${path} is not a UTF-8 text file`, { hint: "Change it with bash." });
  }
  return whole.toString("utf8");
}

/** Returns null if the file does not exist. */
export async function readTextIfThere(sandbox: Sandbox, path: string, options: { bytesMax: number }): Promise<string | null> {
  return await foundOrNull(readTextFile(sandbox, path, options));
}

/**
 * Counts added and removed lines by comparing how often each line occurs. That suffices for a summary and needs no
 * diff.
 */
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
