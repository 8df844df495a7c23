import { z } from "zod";
import { CaissonError } from "../../contract/error.ts";
import type { Tool } from "../tool.ts";
import { EDIT_BYTES_MAX } from "./limits.ts";
import { resumeWrites, writePlanned } from "./planned-writes.ts";
import { countLines, readTextFile, readTextIfThere } from "./text-file.ts";
import { absolutePath, shownPath } from "./workspace-path.ts";

const Path = z.string().min(1).max(4000).describe("Absolute, or relative to /workspace.");

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
  resumable: true,
  subject: (args) => `edit:${shownPath(args.path)}`,
  async run(args, context) {
    const path = absolutePath(args.path);
    const shown = shownPath(path);
    if (args.old === args.new) return { outcome: "error", text: "The old and the new text are the same." };
    if (context.resumed && (await resumeWrites(context))) return { outcome: "ok", text: `Edited ${shown}.`, files: [unknownChange(shown)] };
    const before = await readTextFile(context.sandbox, path, { bytesMax: EDIT_BYTES_MAX });
    const { old, fresh, count } = findOld(before, args);
    if (count === 0) {
      return {
        outcome: "error",
        text: `The old text does not occur in ${shown}. Read the file and copy it exactly, white space included.`,
      };
    }
    if (count > 1 && !args.replace_all) {
      return {
        outcome: "error",
        text: `The old text occurs ${count} times in ${shown}. Give more of what stands around it, or set replace_all.`,
      };
    }
    const after = before.split(old).join(fresh);
    await writePlanned(context, [{ path, before, after }]);
    return {
      outcome: "ok",
      text: count === 1 ? `Edited ${shown}.` : `Replaced ${count} occurrences in ${shown}.`,
      files: [{ path: shown, kind: "modified", ...countLines(before, after) }],
    };
  },
};

/** In a file with CRLF, what a model writes with LF means the same lines. */
function findOld(before: string, args: { old: string; new: string }): { old: string; fresh: string; count: number } {
  const count = occurrences(before, args.old);
  if (count > 0 || !before.includes("\r\n") || args.old.includes("\r\n")) return { old: args.old, fresh: args.new, count };
  const old = args.old.replaceAll("\n", "\r\n");
  return { old, fresh: args.new.replaceAll(/\r?\n/g, "\r\n"), count: occurrences(before, old) };
}

const occurrences = (text: string, piece: string) => text.split(piece).length - 1;
const unknownChange = (path: string) => ({ path, kind: "modified" as const, linesAdded: null, linesRemoved: null });
