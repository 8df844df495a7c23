import { z } from "zod";
import { CaissonError } from "../../contract/error/error.ts";
import { foundOrNull } from "../../contract/error/found-or-null.ts";
import { ignoring } from "../../lib/failures.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { Tool, ToolResult } from "../tool.ts";
import { applyHunks } from "./apply-hunks.ts";
import type { FilePatch } from "./hunk.ts";
import { EDIT_BYTES_MAX } from "./limits.ts";
import { parsePatch } from "./patch-format.ts";
import { type PlannedWrite, resumeWrites, writePlanned } from "./planned-writes.ts";
import { countLines, readTextFile } from "./text-file.ts";
import { absolutePath, shownPath } from "./workspace-path.ts";

const Arguments = z.strictObject({ patch: z.string().min(1).max(2_000_000) });

/** Computes every file first and writes only if all hunks apply, so a patch is applied completely or not at all. */
export const applyPatchTool: Tool<z.infer<typeof Arguments>> = {
  name: "apply_patch",
  description:
    "Changes several files at once. The patch is either a unified diff, or *** Begin Patch, then *** Add File: PATH (lines with +), *** Update File: PATH (optional *** Move to: PATH, hunks that begin with @@), *** Delete File: PATH, then *** End Patch. It is applied completely or not at all.",
  parameters: Arguments,
  parallel: false,
  repeatable: false,
  files: "listed",
  resumable: true,
  subject: (args) => `apply_patch:${subjectOf(args.patch)}`,
  async run(args, context) {
    const patches = parsePatch(args.patch);
    if (context.resumed && (await resumeWrites(context))) {
      return { outcome: "ok", text: "The patch was applied.", files: patches.map(roughChange) };
    }
    const planned = await plan(patches, context.sandbox);
    await writePlanned(context, planned);
    return summary(planned);
  },
};

async function plan(patches: readonly FilePatch[], sandbox: Sandbox): Promise<PlannedWrite[]> {
  const planned = new Map<string, PlannedWrite>();
  const put = (path: string, after: string | null, before: PlannedWrite["before"]) =>
    void planned.set(path, { path, before: planned.has(path) ? planned.get(path)?.before : before, after });
  const current = async (path: string): Promise<string> => {
    const known = planned.get(path);
    if (!known) return await readTextFile(sandbox, path, { bytesMax: EDIT_BYTES_MAX });
    if (known.after !== null) return known.after;
    throw new CaissonError("not_found", `the patch removes ${shownPath(path)} before this change`);
  };
  const mustBeFree = async (path: string) => {
    const known = planned.get(path);
    if (known ? known.after !== null : await exists(sandbox, path))
      throw new CaissonError("exists", `${shownPath(path)} already exists`, { hint: "Update it, or delete it first." });
  };
  for (const patch of patches) {
    const path = absolutePath(patch.path);
    if (patch.kind === "add") {
      await mustBeFree(path);
      put(path, patch.content, null);
    } else if (patch.kind === "delete") put(path, null, await removable(sandbox, path, planned));
    else {
      const before = await current(path);
      const after = applyHunks(before, patch.hunks, shownPath(path));
      put(path, patch.moveTo === null ? after : null, before);
      if (patch.moveTo === null) continue;
      await mustBeFree(absolutePath(patch.moveTo));
      put(absolutePath(patch.moveTo), after, null);
    }
  }
  return [...planned.values()];
}

/** Returns the content of a file to remove, or undefined if it is not text. Such a file may be removed as well. */
async function removable(sandbox: Sandbox, path: string, planned: ReadonlyMap<string, PlannedWrite>): Promise<string | undefined> {
  const known = planned.get(path);
  if (known) return known.after ?? undefined;
  try {
    return await readTextFile(sandbox, path, { bytesMax: EDIT_BYTES_MAX });
  } catch (error) {
    const notText = error instanceof CaissonError && ["invalid", "too_large", "unsupported"].includes(error.code);
    if (!notText || (await sandbox.stat(path)).kind === "directory") throw error;
    return undefined;
  }
}

async function exists(sandbox: Sandbox, path: string): Promise<boolean> {
  return (await foundOrNull(sandbox.stat(path))) !== null;
}

function summary(planned: readonly PlannedWrite[]): ToolResult {
  const files = planned.map((file) => {
    const kind = file.after === null ? ("removed" as const) : file.before === null ? ("added" as const) : ("modified" as const);
    const counts = file.before === undefined ? { linesAdded: null, linesRemoved: null } : countLines(file.before, file.after);
    return { path: shownPath(file.path), kind, ...counts };
  });
  const text = files.map(
    (file) => `${file.kind} ${file.path}${file.linesAdded === null ? "" : ` (+${file.linesAdded} −${file.linesRemoved})`}`,
  );
  return { outcome: "ok", text: text.join("\n"), files };
}

function roughChange(patch: FilePatch) {
  const kind = { add: "added", delete: "removed", update: "modified" } as const;
  return { path: shownPath(patch.path), kind: kind[patch.kind], linesAdded: null, linesRemoved: null };
}

function subjectOf(patch: string): string {
  const files = ignoring("the call itself reports a malformed patch", () => parsePatch(patch));
  const paths = files?.flatMap((file) => (file.kind === "update" && file.moveTo !== null ? [file.path, file.moveTo] : [file.path]));
  return paths?.map(shownPath).join(" ") ?? "?";
}
