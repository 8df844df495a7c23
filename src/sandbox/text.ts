import { CaissonError } from "../contract/error/error.ts";
import type { Sandbox } from "./sandbox.ts";

const TEXT_BYTES = 10 * 1024 * 1024;

/**
 * Reads a file as text. Throws what `readFile` throws, and `too_large` above `bytesMax` (default 10 MiB). Invalid UTF-8
 * becomes replacement characters.
 */
export async function readText(sandbox: Sandbox, path: string, options: { user?: string; bytesMax?: number } = {}): Promise<string> {
  const { bytesMax = TEXT_BYTES, ...read } = options;
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of await sandbox.readFile(path, read)) {
    bytes += piece.length;
    if (bytes > bytesMax)
      throw new CaissonError("too_large", `${path} has more than ${bytesMax} bytes`, { hint: "Read part of it with offset and length." });
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString("utf8");
}

export async function writeText(
  sandbox: Sandbox,
  path: string,
  text: string,
  options: { user?: string; mode?: number; parents?: boolean; how?: "replace" | "append" | "create" } = {},
): Promise<void> {
  await sandbox.writeFile(path, Buffer.from(text), options);
}
