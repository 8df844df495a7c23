import { appendFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ignore, isErrno, jsonOrNull } from "../../lib/failures.ts";
import { readRegularFile } from "../../lib/read-regular-file.ts";

const INPUTS_MAX = 1000;
const FILE_BYTES_MAX = 16 * 1024 * 1024;

/** Earlier input from any folder: one JSON string per line, readable only by the user. */
export interface InputHistory {
  /** Oldest first. */
  readonly inputs: readonly string[];
  /** Stores an input, unless it begins with a space, as in a shell. Never throws: the history is a convenience. */
  add(input: string): Promise<void>;
}

export async function openInputHistory({ stateDir }: { stateDir: string }): Promise<InputHistory> {
  const path = join(stateDir, "chat-history");
  const { inputs, isOverfull } = await readInputs(path);
  const newest = inputs.slice(-INPUTS_MAX);
  if (isOverfull || inputs.length > 2 * INPUTS_MAX) await ignore(replace(path, newest), "the history is a convenience");
  return {
    inputs: newest,
    async add(input) {
      if (input.trim() === "" || input.startsWith(" ")) return;
      // Writes a whole line at once because several chats may write at the same time.
      await ignore(appendFile(path, lineOf(input), { mode: 0o600 }), "the history is a convenience");
    },
  };
}

const lineOf = (input: string) => `${JSON.stringify(input)}\n`;

async function readInputs(path: string): Promise<{ inputs: string[]; isOverfull: boolean }> {
  try {
    const file = await readRegularFile(path, { bytesMax: FILE_BYTES_MAX });
    if (typeof file === "string") return { inputs: [], isOverfull: file === "too large" };
    const lines = file.bytes.toString("utf8").split("\n");
    // Lines that a crash cut off are skipped.
    return { inputs: lines.map(jsonOrNull).filter((input) => typeof input === "string"), isOverfull: false };
  } catch (error) {
    if (isErrno(error, "ENOENT", "EACCES", "EPERM", "EIO", "ENXIO")) return { inputs: [], isOverfull: false };
    throw error;
  }
}

async function replace(path: string, inputs: readonly string[]): Promise<void> {
  const part = `${path}.part-${process.pid}`;
  await writeFile(part, inputs.map(lineOf).join(""), { mode: 0o600 });
  await rename(part, path);
}
