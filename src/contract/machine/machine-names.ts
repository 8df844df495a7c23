/**
 * Parsers for words of a request that may name something on the station's machine. The code that acts on them and the
 * checks on callers use the same parsers.
 */

/** Parses an agent reference: a name, or the path of a file. */
export function parseAgentReference(text: string): { kind: "name"; name: string } | { kind: "file"; path: string } {
  return text.endsWith(".prompt") || text.includes("/") ? { kind: "file", path: text } : { kind: "name", name: text };
}

export type ShipRemote = { kind: "folder"; path: string } | { kind: "address"; address: string };

/**
 * Parses a ship's destination: a bare repository of the machine, or an address. Returns null for an invalid file
 * address.
 */
export function parseShipRemote(text: string): ShipRemote | null {
  if (!/^file:/i.test(text)) return text.startsWith("/") ? { kind: "folder", path: text } : { kind: "address", address: text };
  const path = /^file:\/\/(\/.*)$/is.exec(text)?.[1];
  try {
    return path === undefined ? null : { kind: "folder", path: decodeURIComponent(path) };
  } catch {
    return null;
  }
}
