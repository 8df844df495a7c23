import { isUtf8 } from "node:buffer";

/** Text when it is whole UTF-8, else base64: a character that a chunk's end cuts in two is not lost. */
export function textOrBase64(data: Uint8Array): { encoding: "utf8" | "base64"; text: string } {
  const bytes = Buffer.from(data.buffer, data.byteOffset, data.byteLength);
  const encoding = isUtf8(bytes) ? "utf8" : "base64";
  return { encoding, text: bytes.toString(encoding) };
}
