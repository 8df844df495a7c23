import { z } from "zod";
import { CaissonError } from "../../contract/error/error.ts";
import { ignore, jsonOrNull } from "../../lib/failures.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { ToolContext } from "../tool.ts";
import { outputFolder } from "./command.ts";
import { readTextIfThere } from "./text-file.ts";

/**
 * The planned content of one file. Null means that it does not exist. `before` is undefined if the old content is not
 * text and cannot be restored.
 */
export interface PlannedWrite {
  path: string;
  before: string | null | undefined;
  after: string | null;
}

const Plan = z.object({ ref: z.string(), files: z.array(z.object({ path: z.string(), after: z.string().nullable() })) });
/** Twice the limit of a patch and its files. */
const PLAN_BYTES_MAX = 256 * 1024 * 1024;

/**
 * Writes all files or none. Stores the plan inside the sandbox first. After a crash, the process that resumes the call
 * completes the plan with `resumeWrites` and does not have to guess which files were written. If a write fails,
 * restores the files and throws the error.
 */
export async function writePlanned(context: ToolContext, files: readonly PlannedWrite[]): Promise<void> {
  const plan = { ref: context.ref(), files: files.map(({ path, after }) => ({ path, after })) };
  await context.sandbox.writeFile(planFile(context), Buffer.from(JSON.stringify(plan)), { parents: true, mode: 0o600 });
  const done: PlannedWrite[] = [];
  try {
    // Removals go last, since a file that is not text could not be restored.
    for (const file of [...files].sort((a, b) => Number(a.after === null) - Number(b.after === null))) {
      await writeOrRemove(context.sandbox, file.path, file.after);
      done.push(file);
    }
  } catch (error) {
    await putBack(context, done);
    throw error;
  }
}

/** Returns whether this call had a plan, after writing its files as planned. */
export async function resumeWrites(context: ToolContext): Promise<boolean> {
  const text = await readTextIfThere(context.sandbox, planFile(context), { bytesMax: PLAN_BYTES_MAX });
  const plan = text === null ? null : Plan.safeParse(jsonOrNull(text)).data;
  if (plan?.ref !== context.ref()) return false;
  for (const file of plan.files) await writeOrRemove(context.sandbox, file.path, file.after);
  return true;
}

/** One plan file for the whole run: only the newest call can be resumed. */
const planFile = (context: ToolContext) => `${outputFolder(context)}/planned-writes.json`;

async function writeOrRemove(sandbox: Sandbox, path: string, content: string | null): Promise<void> {
  if (content !== null) await sandbox.writeFile(path, Buffer.from(content), { parents: true });
  else await sandbox.remove(path).catch(unless("not_found"));
}

async function putBack(context: ToolContext, done: readonly PlannedWrite[]): Promise<void> {
  for (const { path, before } of [...done].reverse()) {
    if (before !== undefined) await ignore(writeOrRemove(context.sandbox, path, before), "the caller reports the write that failed first");
  }
  await ignore(context.sandbox.remove(planFile(context)), "the next plan replaces it");
}

const unless = (code: string) => (error: unknown) => {
  if (!(error instanceof CaissonError) || error.code !== code) throw error;
};
