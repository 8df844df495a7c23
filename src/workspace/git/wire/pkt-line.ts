import { CaissonError } from "../../../contract/error/error.ts";

/** The bytes of a line's length, in hexadecimal. The length includes them. */
const PREFIX_BYTES = 4;
const LINE_BYTES_MAX = 65_520;

/** A line of git's wire protocol; null for the flush that ends a list of lines. */
export type PktLine = Buffer | null;

export const FLUSH = Buffer.from("0000");

/** Encodes a line. Throws `too_large` if it does not fit. */
export function pktLine(content: string | Buffer): Buffer {
  const bytes = Buffer.from(content);
  const length = bytes.length + PREFIX_BYTES;
  if (length > LINE_BYTES_MAX) throw new CaissonError("too_large", `a line of git's protocol has at most ${LINE_BYTES_MAX} bytes`);
  return Buffer.concat([Buffer.from(length.toString(16).padStart(PREFIX_BYTES, "0")), bytes]);
}

/**
 * Reads the lines at the start of an answer, and returns them with the rest. `until` returns true for the last line to
 * read; without it everything is read as lines. Throws `protocol` for malformed or truncated lines.
 */
export function readPktLines(
  bytes: Buffer,
  { linesMax, until = () => false }: { linesMax: number; until?: (line: PktLine) => boolean },
): { lines: PktLine[]; rest: Buffer } {
  const lines: PktLine[] = [];
  let at = 0;
  while (at < bytes.length) {
    if (lines.length >= linesMax) throw new CaissonError("protocol", `the remote sent more than ${linesMax} lines`);
    const { line, end } = lineAt(bytes, at);
    lines.push(line);
    at = end;
    if (until(line)) break;
  }
  return { lines, rest: bytes.subarray(at) };
}

function lineAt(bytes: Buffer, at: number): { line: PktLine; end: number } {
  const prefix = bytes.toString("latin1", at, at + PREFIX_BYTES);
  if (!/^[0-9a-f]{4}$/i.test(prefix)) throw new CaissonError("protocol", "the remote does not speak git's protocol");
  const length = Number.parseInt(prefix, 16);
  if (length === 0) return { line: null, end: at + PREFIX_BYTES };
  if (length < PREFIX_BYTES || length > LINE_BYTES_MAX || at + length > bytes.length)
    throw new CaissonError("protocol", "the remote sent a line that is truncated or has an invalid length");
  return { line: bytes.subarray(at + PREFIX_BYTES, at + length), end: at + length };
}

/** Returns a line's text without the line end. */
export function lineText(line: Buffer): string {
  return line.toString("utf8").replace(/\n$/, "");
}
