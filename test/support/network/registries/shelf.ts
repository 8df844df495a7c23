import { createHash } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

export interface Item {
  type: string;
  body: Buffer;
}

/** The content of a registry by path. Some items depend on what the client accepts. */
export type Shelf = Map<string, Item | ((headers: IncomingHttpHeaders) => Item)>;

export function hash(algorithm: "sha1" | "sha256" | "sha512", bytes: Buffer, encoding: "hex" | "base64" = "hex"): string {
  return createHash(algorithm).update(bytes).digest(encoding);
}

export function jsonItem(value: unknown, type = "application/json"): Item {
  return { type, body: Buffer.from(JSON.stringify(value)) };
}

export function textItem(text: string, type = "text/plain"): Item {
  return { type, body: Buffer.from(text) };
}

export function fileItem(body: Buffer): Item {
  return { type: "application/octet-stream", body };
}
