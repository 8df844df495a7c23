/**
 * Words of a request that may name something of the station's machine. The code that acts reads them with these
 * functions, and callers are judged by the same reading.
 */

/** An agent is named, or is the file at a path. */
export function parseAgentReference(text: string): { kind: "name"; name: string } | { kind: "file"; path: string } {
  return text.endsWith(".prompt") || text.includes("/") ? { kind: "file", path: text } : { kind: "name", name: text };
}

/** An OCI runtime is looked up on PATH by its name, or is the program at an absolute path. Null for what is neither. */
export function parseOciRuntime(text: string): { kind: "name"; name: string } | { kind: "file"; path: string } | null {
  if (text.startsWith("/")) return { kind: "file", path: text };
  return /^[A-Za-z0-9][\w.+-]*$/.test(text) ? { kind: "name", name: text } : null;
}

export type ShipRemote = { kind: "folder"; path: string } | { kind: "address"; address: string };

/** Where a ship goes: a bare repository of the machine, or an address. Null for a file's address that is not one. */
export function parseShipRemote(text: string): ShipRemote | null {
  if (!/^file:/i.test(text)) return text.startsWith("/") ? { kind: "folder", path: text } : { kind: "address", address: text };
  const path = /^file:\/\/(\/.*)$/is.exec(text)?.[1];
  try {
    return path === undefined ? null : { kind: "folder", path: decodeURIComponent(path) };
  } catch {
    return null;
  }
}
