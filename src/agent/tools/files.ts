import { z } from "zod";
import { CaissonError } from "../../contract/error/error.ts";
import type { Tool } from "../tool.ts";
import { EDIT_BYTES_MAX } from "./limits.ts";
import { resumeWrites, writePlanned } from "./planned-writes.ts";
import { countLines, readTextFile, readTextIfThere } from "./text-file.ts";
import { absolutePath, shownPath } from "./workspace-path.ts";

const Path = z.string().min(1).max(4000).describe("Absolute, or relative to /workspace.");

/** Names of files that hold keys, which other users on the machine must not read. */
const SECRET_NAME = /(^|\/)(\.env[^/]*|[^/]*\.(pem|key|p12|pfx)|id_[a-z0-9]+|\.netrc|\.npmrc|\.pypirc|credentials[^/]*)$/i;

const WriteArguments = z.strictObject({ path: Path, content: z.string().max(EDIT_BYTES_MAX).describe("The whole content of the file.") });

export const writeTool: Tool<z.infer<typeof WriteArguments>> = {
  name: "write",
  description: "Writes a whole file and creates missing parent folders. To change an existing file, prefer edit.",
  parameters: WriteArguments,
  parallel: false,
  repeatable: true,
  files: "listed",
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
  old: z.string().min(1).describe("The text to replace, exactly as in the file, with enough context to be unique."),
  new: z.string().describe("The replacement text."),
  replace_all: z.boolean().optional().describe("Replace every occurrence instead of the only one."),
});

export const editTool: Tool<z.infer<typeof EditArguments>> = {
  name: "edit",
  description: "Replaces a piece of text in a file. The old text must occur exactly once, unless replace_all is set.",
  parameters: EditArguments,
  parallel: false,
  repeatable: false,
  files: "listed",
  resumable: true,
  subject: (args) => `edit:${shownPath(args.path)}`,
  async run(args, context) {
    const path = absolutePath(args.path);
    const displayPath = shownPath(path);
    if (args.old === args.new) return { outcome: "error", text: "The old and the new text are identical." };
    if (context.resumed && (await resumeWrites(context)))
      return { outcome: "ok", text: `Edited ${displayPath}.`, files: [unknownChange(displayPath)] };
    const before = await readTextFile(context.sandbox, path, { bytesMax: EDIT_BYTES_MAX });
    const { old, fresh, count } = findOld(before, args);
    if (count === 0) {
      return {
        outcome: "error",
        text: `The old text does not occur in ${displayPath}. Read the file and copy it exactly, white space included.`,
      };
    }
    if (count > 1 && !args.replace_all) {
      return {
        outcome: "error",
        text: `The old text occurs ${count} times in ${displayPath}. Include more context, or set replace_all.`,
      };
    }
    const after = before.split(old).join(fresh);
    await writePlanned(context, [{ path, before, after }]);
    return {
      outcome: "ok",
      text: count === 1 ? `Edited ${displayPath}.` : `Replaced ${count} occurrences in ${displayPath}.`,
      files: [{ path: displayPath, kind: "modified", ...countLines(before, after) }],
    };
  },
};

/** Finds the old text. In a CRLF file, LF in the model's text matches CRLF. */
function findOld(before: string, args: { old: string; new: string }): { old: string; fresh: string; count: number } {
  const count = occurrences(before, args.old);
  if (count > 0 || !before.includes("\r\n") || args.old.includes("\r\n")) return { old: args.old, fresh: args.new, count };
  const old = args.old.replaceAll("\n", "\r\n");
  return { old, fresh: args.new.replaceAll(/\r?\n/g, "\r\n"), count: occurrences(before, old) };
}

const occurrences = (text: string, piece: string) => text.split(piece).length - 1;
const unknownChange = (path: string) => ({ path, kind: "modified" as const, linesAdded: null, linesRemoved: null });
