import { resolve } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import { isErrno } from "../../lib/failures.ts";
import { showBytes } from "../../lib/quantity.ts";
import { readRegularFile } from "../../lib/read-regular-file.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";

/** The maximum size of a text; no model reads more at once. */
const TEXT_BYTES_MAX = 1024 * 1024;

/**
 * Returns the text and the words before it. The text comes from the arguments, from standard input (`-`) or from
 * `--task-file FILE`. Several arguments form one text, after up to `wordsBefore` words. Throws `invalid`, `not_found`,
 * `too_large`.
 */
export async function textGiven(
  context: Pick<CliContext, "stdin" | "cwd">,
  args: ParsedArguments,
  { what, wordsBefore }: { what: "task" | "message" | "idea"; wordsBefore: number },
): Promise<{ before: readonly string[]; text: string }> {
  const words = args.positionals;
  const option = what === "idea" ? "idea-file" : "task-file";
  const file = args.option(option);
  if (file !== undefined) {
    if (words.length > wordsBefore)
      throw new CaissonError("invalid", `the ${what} is given twice, as arguments and with --${option}`, { hint: "Remove one of them." });
    return { before: words, text: textOf(await bytesOfFile(resolve(context.cwd, file), `--${option} ${file}`), { what, where: file }) };
  }
  if (words.at(-1) === "-" && words.length <= wordsBefore + 1)
    return { before: words.slice(0, -1), text: textOf(await bytesOfInput(context), { what, where: "standard input" }) };
  const before = words.length > 1 ? words.slice(0, wordsBefore) : [];
  const text = words.slice(before.length).join(" ").trim();
  if (text === "") throw new CaissonError("invalid", `there is no ${what}`, { hint: hints[what] });
  return { before, text };
}

/** Reads a text file that a command names. Throws `invalid`, `not_found`, `denied`, `too_large`. */
export async function readTextFile(path: string, name: string, what: string): Promise<string> {
  return textOf(await bytesOfFile(path, name), { what, where: name });
}

/** Reads the text on standard input. Throws `invalid`, `too_large`. */
export async function readTextInput(context: Pick<CliContext, "stdin">, what: string): Promise<string> {
  return textOf(await bytesOfInput(context), { what, where: "standard input" });
}

const hints = {
  task: 'Add a task: caisson run "fix the failing test". `-` reads it from standard input, --task-file from a file.',
  idea: 'Describe the idea: caisson spec new "a --json flag for every command". `-` reads it from standard input, --idea-file from a file.',
  message: 'Add a message: caisson run --continue "now the tests". `-` reads it from standard input, --task-file from a file.',
};

function textOf(bytes: Buffer, { what, where }: { what: string; where: string }): string {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes).trim();
  } catch (cause) {
    throw new CaissonError("invalid", `the ${what} in ${where} is not UTF-8 text`, { cause });
  }
  if (text.includes("\0")) throw new CaissonError("invalid", `the ${what} in ${where} is not text: it contains NUL characters`);
  if (text === "") throw new CaissonError("invalid", `there is no ${what}: ${where} is empty`);
  return text;
}

async function bytesOfFile(path: string, name: string): Promise<Buffer> {
  try {
    const found = await readRegularFile(path, { bytesMax: TEXT_BYTES_MAX });
    if (found === "too large") throw tooLarge(name);
    if (found === "not a regular file")
      throw new CaissonError("invalid", `${name} is not a file`, { hint: "Pipe the text to standard input and use `-`." });
    return found.bytes;
  } catch (cause) {
    if (cause instanceof CaissonError) throw cause;
    if (isErrno(cause, "ENOENT") || isErrno(cause, "ENOTDIR")) throw new CaissonError("not_found", `${name} does not exist`, { cause });
    throw new CaissonError("denied", `${name} cannot be read`, { cause });
  }
}

async function bytesOfInput({ stdin }: Pick<CliContext, "stdin">): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stdin as AsyncIterable<Buffer | string>) {
    const bytes = Buffer.from(chunk);
    length += bytes.length;
    if (length > TEXT_BYTES_MAX) throw tooLarge("standard input");
    chunks.push(bytes);
  }
  return Buffer.concat(chunks);
}

function tooLarge(where: string): CaissonError {
  return new CaissonError("too_large", `the text in ${where} is larger than ${showBytes(TEXT_BYTES_MAX)}`, {
    hint: "Put long text into a file in the folder, and refer to that file.",
  });
}
