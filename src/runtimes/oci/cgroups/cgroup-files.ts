import { readFileSync, writeFileSync } from "node:fs";

/** The text of a control file; null where there is none. */
export function read(path: string): string | null {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return null;
  }
}

/** A line `name number` of such a text. */
export function field(text: string | null, name: string): number | null {
  const line = text?.split("\n").find((candidate) => candidate.startsWith(`${name} `));
  return line === undefined ? null : Number(line.slice(name.length + 1));
}

export function put(path: string, value: number | string): void {
  writeFileSync(path, String(value));
}

export function putIfThere(path: string, value: number | string): void {
  try {
    writeFileSync(path, String(value), { flag: "r+" });
  } catch {
    // Kernels without swap accounting have no such file; a group may have been removed by another sweep meanwhile.
  }
}
