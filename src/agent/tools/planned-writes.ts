import { z } from "zod";
import { CaissonError } from "../../contract/error.ts";
import { jsonOrNull } from "../../lib/json-or-null.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { ToolContext } from "../tool.ts";
import { outputFolder } from "./command.ts";
import { readTextIfThere } from "./text-file.ts";

/** What one file will be. Null: not there. `before` is undefined where it is not text and cannot be put back. */
export interface PlannedWrite {
  path: string;
  before: string | null | undefined;
  after: string | null;
}

const Plan = z.object({ ref: z.string(), files: z.array(z.object({ path: z.string(), after: z.string().nullable() })) });
/** Twice what a patch and the files it touches may be. */
const PLAN_BYTES_MAX = 256 * 1024 * 1024;

/**
 * Writes files all or none. The plan is kept inside the sandbox first: whoever resumes the call after a crash finishes
 * it from there with `resumeWrites`, instead of guessing from the files how far it came. Throws what writing throws,
 * after putting back what was written.
 */
export async function writePlanned(context: ToolContext, files: readonly PlannedWrite[]): Promise<void> {
  const plan = { ref: context.ref(), files: files.map(({ path, after }) => ({ path, after })) };
  await context.sandbox.writeFile(planFile(context), Buffer.from(JSON.stringify(plan)), { parents: true, mode: 0o600 });
  const done: PlannedWrite[] = [];
  try {
    // What is removed goes last: a file that is not text could not be put back.
    for (const file of [...files].sort((a, b) => Number(a.after === null) - Number(b.after === null))) {
      await put(context.sandbox, file.path, file.after);
      done.push(file);
    }
  } catch (error) {
    await putBack(context, done);
    throw error;
  }
}

/** Whether this call had a plan; then its files are as planned now. */
export async function resumeWrites(context: ToolContext): Promise<boolean> {
  const text = await readTextIfThere(context.sandbox, planFile(context), { bytesMax: PLAN_BYTES_MAX });
  const plan = text === null ? null : Plan.safeParse(jsonOrNull(text)).data;
  if (plan?.ref !== context.ref()) return false;
  for (const file of plan.files) await put(context.sandbox, file.path, file.after);
  return true;
}

/** One for the whole run: only the newest call can be resumed. */
const planFile = (context: ToolContext) => `${outputFolder(context)}/planned-writes.json`;

async function put(sandbox: Sandbox, path: string, content: string | null): Promise<void> {
  if (content !== null) await sandbox.writeFile(path, Buffer.from(content), { parents: true });
  else await sandbox.remove(path).catch(unless("not_found"));
}

async function putBack(context: ToolContext, done: readonly PlannedWrite[]): Promise<void> {
  for (const { path, before } of [...done].reverse()) {
    if (before !== undefined) await put(context.sandbox, path, before).catch(() => undefined);
  }
  await context.sandbox.remove(planFile(context)).catch(() => undefined);
}

const unless = (code: string) => (error: unknown) => {
  if (!(error instanceof CaissonError) || error.code !== code) throw error;
};
