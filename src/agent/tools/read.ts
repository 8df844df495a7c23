import { z } from "zod";
import { CaissonError } from "../../contract/error/error.ts";
import type { Tool } from "../tool.ts";
import { LINE_CHARACTERS_MAX, READ_CHARACTERS_MAX, READ_COUNT_BYTES_MAX, READ_LINES_MAX } from "./limits.ts";
import { absolutePath, shownPath } from "./workspace-path.ts";

const Arguments = z.strictObject({
  path: z.string().min(1).max(4000).describe("Absolute, or relative to /workspace."),
  offset: z.int().min(1).optional().describe("The first line to show, counted from 1."),
  limit: z.int().min(1).max(READ_LINES_MAX).optional().describe(`The number of lines; at most ${READ_LINES_MAX}.`),
  column: z
    .int()
    .min(1)
    .optional()
    .describe(
      `Shows only the line at offset, starting at this character, at most ${READ_CHARACTERS_MAX} characters: for lines that were cut.`,
    ),
});

/**
 * Streams the file, so its length does not matter: an agent can read many megabytes of command output piece by piece.
 */
export const readTool: Tool<z.infer<typeof Arguments>> = {
  name: "read",
  description: `Reads a text file with line numbers: at most ${READ_LINES_MAX} lines of at most ${LINE_CHARACTERS_MAX} characters, ${READ_CHARACTERS_MAX} characters in total. The result says at which offset, or at which column of a long line, to continue.`,
  parameters: Arguments,
  parallel: true,
  repeatable: true,
  files: "untouched",
  subject: (args) => `read:${shownPath(args.path)}`,
  async run(args, context) {
    const path = absolutePath(args.path);
    const chunks = await context.sandbox.readFile(path);
    const first = args.offset ?? 1;
    const { column } = args;
    if (column !== undefined)
      return { outcome: "ok", text: describeLine(await collect(chunks, { path, first, limit: 1, column }), { first, column }) };
    const found = await collect(chunks, { path, first, limit: args.limit ?? READ_LINES_MAX, column: 1 });
    return { outcome: "ok", text: describeLines(found, first) };
  },
};

interface Found {
  /**
   * Each line's text from the requested column on, cut to the limit. If `ended`, `length` is the length of the whole
   * line.
   */
  lines: { text: string; length: number; ended: boolean }[];
  /** The number of lines read so far. If `ended`, this is the number of lines in the file. */
  seen: number;
  ended: boolean;
}

/** Reads the file once and stores only what is shown. Counts later lines up to `READ_COUNT_BYTES_MAX`. */
async function collect(
  chunks: AsyncIterable<Uint8Array>,
  wanted: { path: string; first: number; limit: number; column: number },
): Promise<Found> {
  const charactersMax = wanted.column > 1 || wanted.limit === 1 ? READ_CHARACTERS_MAX : LINE_CHARACTERS_MAX;
  const decoder = new TextDecoder("utf-8");
  const lines: Found["lines"] = [];
  let line = { text: "", length: 0, ended: false };
  let number = 1;
  let shownCharacters = 0;
  let bytes = 0;
  const full = () => lines.length >= wanted.limit || shownCharacters >= READ_CHARACTERS_MAX;
  const add = (piece: string) => {
    const from = Math.max(0, wanted.column - 1 - line.length);
    if (number >= wanted.first && line.text.length < charactersMax) line.text += piece.slice(from, from + charactersMax - line.text.length);
    line.length += piece.length;
  };
  const endLine = (ended: boolean) => {
    if (number >= wanted.first && !full()) {
      lines.push({ ...line, ended });
      shownCharacters += line.text.length;
    }
    line = { text: "", length: 0, ended: false };
    number += 1;
  };
  const take = (text: string) => {
    let at = 0;
    for (let end = text.indexOf("\n"); end !== -1; end = text.indexOf("\n", at)) {
      add(text.slice(at, end));
      endLine(true);
      at = end + 1;
    }
    add(text.slice(at));
  };
  for await (const chunk of chunks) {
    if (bytes === 0 || !full()) refuseBinary(chunk, wanted.path);
    bytes += chunk.length;
    take(decoder.decode(chunk, { stream: true }));
    if (full() && bytes > READ_COUNT_BYTES_MAX) return { lines, seen: number - 1, ended: false };
  }
  take(decoder.decode());
  if (line.length > 0) endLine(true);
  return { lines, seen: number - 1, ended: true };
}

function refuseBinary(chunk: Uint8Array, path: string): void {
  if (!chunk.includes(0)) return;
  throw new CaissonError("invalid", `${path} is not a text file: it contains a NUL byte`, {
    hint: "Inspect it with bash, for example with file or xxd.",
  });
}

function describeLines(found: Found, first: number): string {
  if (found.lines.length === 0) return found.seen === 0 ? "(the file is empty)" : `(the file has only ${found.seen} lines)`;
  const numberedLines = found.lines.map((line, at) => {
    const text = withoutReturn(line.text.toWellFormed());
    const cut =
      line.length > line.text.length
        ? `… [the line has ${line.length} characters; continue with offset ${first + at} and column ${line.text.length + 1}]`
        : "";
    return `${String(first + at).padStart(6)}\t${text}${cut}`;
  });
  const next = first + found.lines.length;
  const left = found.seen - next + 1;
  if (left <= 0 && found.ended) return numberedLines.join("\n");
  return `${numberedLines.join("\n")}\n\n[${found.ended ? `${left} more ${left === 1 ? "line" : "lines"}` : "more lines follow"}; continue with offset ${next}]`;
}

function describeLine(found: Found, at: { first: number; column: number }): string {
  const [line] = found.lines;
  if (!line) return `(the file has only ${found.seen} lines)`;
  if (line.text === "") return `(line ${at.first} has only ${line.length} characters)`;
  const next = at.column + line.text.length;
  const text = line.text.toWellFormed();
  return next > line.length ? text : `${text}\n\n[${line.length - next + 1} more characters in this line; continue with column ${next}]`;
}

/** Hides CRLF from the model; edit and apply_patch keep the file's line ends. */
const withoutReturn = (text: string) => (text.endsWith("\r") ? text.slice(0, -1) : text);
