import { z } from "zod";
import { CaissonError } from "../../contract/error.ts";
import type { Tool } from "../tool.ts";
import { EDIT_BYTES_MAX, LINE_CHARACTERS_MAX, READ_BYTES_MAX, READ_LINES_MAX } from "./limits.ts";
import { countLines, readTextFile, readTextIfThere } from "./text-file.ts";
import { absolutePath, shownPath } from "./workspace-path.ts";

const Path = z.string().min(1).max(4000).describe("Absolute, or relative to /workspace.");

const ReadArguments = z.strictObject({
  path: Path,
  offset: z.int().min(1).optional().describe("The first line to show, from 1."),
  limit: z.int().min(1).max(READ_LINES_MAX).optional().describe(`How many lines; at most ${READ_LINES_MAX}.`),
});

export const readTool: Tool<z.infer<typeof ReadArguments>> = {
  name: "read",
  description: `Reads a text file with line numbers: at most ${READ_LINES_MAX} lines of at most ${LINE_CHARACTERS_MAX} characters. Use offset and limit for the rest.`,
  parameters: ReadArguments,
  parallel: true,
  repeatable: true,
  subject: (args) => `read:${shownPath(args.path)}`,
  async run(args, context) {
    const text = await readTextFile(context.sandbox, absolutePath(args.path), { bytesMax: READ_BYTES_MAX });
    const lines = text.split("\n");
    if (lines.at(-1) === "") lines.pop();
    const first = (args.offset ?? 1) - 1;
    const shown = lines.slice(first, first + (args.limit ?? READ_LINES_MAX));
    if (shown.length === 0)
      return { outcome: "ok", text: lines.length === 0 ? "(the file is empty)" : `(the file has only ${lines.length} lines)` };
    const numbered = shown.map((line, at) => `${String(first + at + 1).padStart(6)}\t${cutLine(line)}`).join("\n");
    const left = lines.length - first - shown.length;
    return {
      outcome: "ok",
      text: left > 0 ? `${numbered}\n\n[${left} more lines; go on with offset ${first + shown.length + 1}]` : numbered,
    };
  },
};

const cutLine = (line: string) =>
  line.length <= LINE_CHARACTERS_MAX ? line : `${line.slice(0, LINE_CHARACTERS_MAX)}… [${line.length} characters]`;

/** Names of files that hold keys: others on the machine have no business reading them. */
const SECRET_NAME = /(^|\/)(\.env[^/]*|[^/]*\.(pem|key|p12|pfx)|id_[a-z0-9]+|\.netrc|\.npmrc|\.pypirc|credentials[^/]*)$/i;

const WriteArguments = z.strictObject({ path: Path, content: z.string().max(EDIT_BYTES_MAX).describe("The whole content.") });

export const writeTool: Tool<z.infer<typeof WriteArguments>> = {
  name: "write",
  description: "Writes a file, whole; folders on the way are made. Prefer edit for a change to an existing file.",
  parameters: WriteArguments,
  parallel: false,
  repeatable: true,
  subject: (args) => `write:${shownPath(args.path)}`,
  async run(args, context) {
    const path = absolutePath(args.path);
    const before = await readTextIfThere(context.sandbox, path, { bytesMax: EDIT_BYTES_MAX }).catch((error: unknown) => {
      if (error instanceof CaissonError && (error.code === "invalid" || error.code === "too_large")) return "";
      throw error;
    });
    const secret = SECRET_NAME.test(path) ? { mode: 0o600 } : {};
    const { bytes } = await context.sandbox.writeFile(path, Buffer.from(args.content), { parents: true, ...secret });
    const kind = before === null ? "added" : "modified";
    return {
      outcome: "ok",
      text: `Wrote ${bytes} bytes to ${shownPath(path)}.`,
      files: before === args.content ? [] : [{ path: shownPath(path), kind, ...countLines(before, args.content) }],
    };
  },
};

const EditArguments = z.strictObject({
  path: Path,
  old: z.string().min(1).describe("The text to replace, exactly as it stands in the file, with enough around it to be unique."),
  new: z.string().describe("What to put in its place."),
  replace_all: z.boolean().optional().describe("Replace every occurrence instead of the only one."),
});

export const editTool: Tool<z.infer<typeof EditArguments>> = {
  name: "edit",
  description: "Replaces a piece of text in a file. The old text must occur exactly once, unless replace_all is set.",
  parameters: EditArguments,
  parallel: false,
  repeatable: false,
  subject: (args) => `edit:${shownPath(args.path)}`,
  async run(args, context) {
    const path = absolutePath(args.path);
    const before = await readTextFile(context.sandbox, path, { bytesMax: EDIT_BYTES_MAX });
    if (args.old === args.new) return { outcome: "error", text: "The old and the new text are the same." };
    const count = before.split(args.old).length - 1;
    // Begun before a crash: when the old text is gone and the new one is there, it was done.
    if (count === 0 && context.resumed && before.includes(args.new)) return { outcome: "ok", text: `${shownPath(path)} was edited.` };
    if (count === 0)
      return {
        outcome: "error",
        text: `The old text does not occur in ${shownPath(path)}. Read the file and copy it exactly, white space included.`,
      };
    if (count > 1 && !args.replace_all) {
      return {
        outcome: "error",
        text: `The old text occurs ${count} times in ${shownPath(path)}. Give more of what stands around it, or set replace_all.`,
      };
    }
    const after = before.split(args.old).join(args.new);
    await context.sandbox.writeFile(path, Buffer.from(after));
    return {
      outcome: "ok",
      text: count === 1 ? `Edited ${shownPath(path)}.` : `Replaced ${count} occurrences in ${shownPath(path)}.`,
      files: [{ path: shownPath(path), kind: "modified", ...countLines(before, after) }],
    };
  },
};
