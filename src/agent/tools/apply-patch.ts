import { z } from "zod";
import { CaissonError } from "../../contract/error.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { Tool, ToolResult } from "../tool.ts";
import { EDIT_BYTES_MAX } from "./limits.ts";
import { applyHunks, type FilePatch, parsePatch } from "./patch-format.ts";
import { countLines, readTextFile, readTextIfThere } from "./text-file.ts";
import { absolutePath, shownPath } from "./workspace-path.ts";

const Arguments = z.strictObject({ patch: z.string().min(1).max(2_000_000) });

/** What one file will be: null for gone. */
interface Planned {
  path: string;
  before: string | null;
  after: string | null;
}

/** Works out every file first and writes only when all of it fits, so that a patch is applied whole or not at all. */
export const applyPatchTool: Tool<z.infer<typeof Arguments>> = {
  name: "apply_patch",
  description:
    "Changes several files at once. The patch is either a unified diff, or *** Begin Patch, then *** Add File: PATH (lines with +), *** Update File: PATH (optional *** Move to: PATH, hunks that begin with @@), *** Delete File: PATH, then *** End Patch. It is applied whole or not at all.",
  parameters: Arguments,
  parallel: false,
  repeatable: false,
  subject: (args) => `apply_patch:${subjectOf(args.patch)}`,
  async run(args, context) {
    const patches = parsePatch(args.patch);
    let planned: Planned[];
    try {
      planned = await plan(patches, context.sandbox);
    } catch (error) {
      if (context.resumed && (await wasApplied(patches, context.sandbox))) return { outcome: "ok", text: "The patch was applied." };
      throw error;
    }
    for (const file of planned) {
      if (file.after === null) await context.sandbox.remove(absolutePath(file.path));
      else await context.sandbox.writeFile(absolutePath(file.path), Buffer.from(file.after), { parents: true });
    }
    return summary(planned);
  },
};

async function plan(patches: readonly FilePatch[], sandbox: Sandbox): Promise<Planned[]> {
  const planned = new Map<string, Planned>();
  const current = async (path: string) =>
    planned.get(absolutePath(path))?.after ?? (await readTextFile(sandbox, absolutePath(path), { bytesMax: EDIT_BYTES_MAX }));
  const put = (path: string, before: string | null, after: string | null) => {
    const key = absolutePath(path);
    planned.set(key, { path, before: planned.get(key)?.before ?? before, after });
  };
  for (const patch of patches) {
    if (patch.kind === "add") {
      const there = await readTextIfThere(sandbox, absolutePath(patch.path), { bytesMax: EDIT_BYTES_MAX });
      if (there !== null && !planned.has(absolutePath(patch.path)))
        throw new CaissonError("exists", `${patch.path} exists already; update it instead.`);
      put(patch.path, null, patch.content);
    } else if (patch.kind === "delete") put(patch.path, await current(patch.path), null);
    else {
      const before = await current(patch.path);
      const after = applyHunks(before, patch.hunks, patch.path);
      if (patch.moveTo === null) put(patch.path, before, after);
      else {
        put(patch.path, before, null);
        put(patch.moveTo, null, after);
      }
    }
  }
  return [...planned.values()];
}

/** After a crash: whether what the patch adds is there and what it removes is gone. */
async function wasApplied(patches: readonly FilePatch[], sandbox: Sandbox): Promise<boolean> {
  for (const patch of patches) {
    const target = patch.kind === "update" ? (patch.moveTo ?? patch.path) : patch.path;
    const text = await readTextIfThere(sandbox, absolutePath(target), { bytesMax: EDIT_BYTES_MAX });
    if (patch.kind === "delete" ? text !== null : text === null) return false;
    if (patch.kind === "add" && text !== patch.content) return false;
    if (
      patch.kind === "update" &&
      !patch.hunks.every((hunk) =>
        text?.includes(
          hunk.lines
            .filter((line) => line.sign !== "-")
            .map((line) => line.text)
            .join("\n"),
        ),
      )
    ) {
      return false;
    }
  }
  return true;
}

function summary(planned: readonly Planned[]): ToolResult {
  const files = planned.map((file) => {
    const kind = file.after === null ? ("removed" as const) : file.before === null ? ("added" as const) : ("modified" as const);
    return { path: shownPath(file.path), kind, ...countLines(file.before, file.after) };
  });
  const text = files.map((file) => `${file.kind} ${file.path} (+${file.linesAdded} −${file.linesRemoved})`).join("\n");
  return { outcome: "ok", text, files };
}

function subjectOf(patch: string): string {
  try {
    return parsePatch(patch)
      .map((file) => shownPath(file.path))
      .join(" ");
  } catch {
    return "?";
  }
}
