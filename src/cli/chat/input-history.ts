import { appendFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { isErrno } from "../../lib/is-errno.ts";
import { jsonOrNull } from "../../lib/json-or-null.ts";
import { readRegularFile } from "../../lib/read-regular-file.ts";

const INPUTS_MAX = 1000;
const FILE_BYTES_MAX = 16 * 1024 * 1024;

/** What somebody typed earlier, in whatever folder: one JSON text a line, readable by its user alone. */
export interface InputHistory {
  /** Oldest first. */
  readonly inputs: readonly string[];
  /** One that begins with a space is not kept, as in shells. Never throws: it is a convenience. */
  add(input: string): Promise<void>;
}

export async function openInputHistory({ stateDir }: { stateDir: string }): Promise<InputHistory> {
  const path = join(stateDir, "chat-history");
  const { inputs, isOverfull } = await readInputs(path);
  const newest = inputs.slice(-INPUTS_MAX);
  if (isOverfull || inputs.length > 2 * INPUTS_MAX) await replace(path, newest).catch(() => undefined);
  return {
    inputs: newest,
    async add(input) {
      if (input.trim() === "" || input.startsWith(" ")) return;
      // One write of a whole line: several chats may add at once.
      await appendFile(path, lineOf(input), { mode: 0o600 }).catch(() => undefined);
    },
  };
}

const lineOf = (input: string) => `${JSON.stringify(input)}\n`;

async function readInputs(path: string): Promise<{ inputs: string[]; isOverfull: boolean }> {
  try {
    const file = await readRegularFile(path, { bytesMax: FILE_BYTES_MAX });
    if (typeof file === "string") return { inputs: [], isOverfull: file === "too large" };
    const lines = file.bytes.toString("utf8").split("\n");
    // A line that was cut off by a crash is none.
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
