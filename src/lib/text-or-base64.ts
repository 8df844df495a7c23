import { isUtf8 } from "node:buffer";

/**
 * Encodes as text if the data is complete UTF-8, otherwise as base64: a character that is split between chunks is not
 * lost.
 */
export function textOrBase64(data: Uint8Array): { encoding: "utf8" | "base64"; text: string } {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  const encoding = isUtf8(bytes) ? "utf8" : "base64";
  return { encoding, text: bytes.toString(encoding) };
}
