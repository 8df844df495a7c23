import { readFileSync, writeFileSync } from "node:fs";
import { ifErrnoSync, UNREACHABLE } from "../../../lib/failures.ts";

/** Errors for a group that no longer exists, or a file that this kernel does not support. */
const unsupported = [...UNREACHABLE, "ENODEV", "EOPNOTSUPP", "ENOTSUP", "EINVAL", "EBUSY"];

/**
 * Returns the text of a control file, or null if it does not exist. Other failures throw: they must not make a group
 * look empty.
 */
export function read(path: string): string | null {
  return ifErrnoSync(() => readFileSync(path, "latin1"), unsupported, null);
}

/** Returns the number from a line `name number` of a control file's text. */
export function field(text: string | null, name: string): number | null {
  const line = text?.split("\n").find((candidate) => candidate.startsWith(`${name} `));
  return line === undefined ? null : Number(line.slice(name.length + 1));
}

export function put(path: string, value: number | string): void {
  writeFileSync(path, String(value));
}

export function putIfThere(path: string, value: number | string): void {
  ifErrnoSync(() => writeFileSync(path, String(value), { flag: "r+" }), unsupported, undefined);
}
