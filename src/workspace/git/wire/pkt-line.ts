import { CaissonError } from "../../../contract/error.ts";

/** The length of a line, in hexadecimal, itself included. */
const PREFIX_BYTES = 4;
const LINE_BYTES_MAX = 65_520;

/** A line of git's wire protocol; null is the flush that ends a list of them. */
export type PktLine = Buffer | null;

export const FLUSH = Buffer.from("0000");

/** Throws `too_large` for more than a line can hold. */
export function pktLine(content: string | Buffer): Buffer {
  const bytes = Buffer.from(content);
  const length = bytes.length + PREFIX_BYTES;
  if (length > LINE_BYTES_MAX) throw new CaissonError("too_large", `a line of git's protocol has ${LINE_BYTES_MAX} bytes at most`);
  return Buffer.concat([Buffer.from(length.toString(16).padStart(PREFIX_BYTES, "0")), bytes]);
}

/**
 * The lines at the beginning of an answer, and what follows them. `until` says of each line whether it is the last one
 * wanted; without it everything is lines. Throws `protocol` for what is no such line, and for one that is cut off.
 */
export function readPktLines(
  bytes: Buffer,
  { linesMax, until = () => false }: { linesMax: number; until?: (line: PktLine) => boolean },
): { lines: PktLine[]; rest: Buffer } {
  const lines: PktLine[] = [];
  let at = 0;
  while (at < bytes.length) {
    if (lines.length >= linesMax) throw new CaissonError("protocol", `the remote wrote more than ${linesMax} lines`);
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
    throw new CaissonError("protocol", "the remote wrote a line that is cut off, or of no possible length");
  return { line: bytes.subarray(at + PREFIX_BYTES, at + length), end: at + length };
}

/** Without the line's end. */
export function lineText(line: Buffer): string {
  return line.toString("utf8").replace(/\n$/, "");
}
