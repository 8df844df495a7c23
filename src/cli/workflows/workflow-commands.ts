import { resolve } from "node:path";
import type { JobView } from "../../contract/durable/durable-job.ts";
import { CaissonError } from "../../contract/error/error.ts";
import type { JsonValue } from "../../contract/json-value.ts";
import type { WorkflowView } from "../../contract/workflow/workflow-verbs.ts";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import type { JobKind } from "../durable/job-commands.ts";
import { cleanupFrom } from "../options/workspace-options.ts";
import { printResult } from "../print-result.ts";
import { line } from "../terminal/line.ts";
import { jsonOrText, readWorkflowFile, workflowInputs } from "./workflow-file.ts";
import { eventLine, waitLines, workflowLines, workflowRows } from "./workflow-view.ts";

const LISTED_MAX = 1000;
const exitCodes = { completed: 0, failed: 1, timed_out: 124, cancelled: 130 } as const;

/** `caisson workflow validate FILE` */
export async function validateWorkflow(context: CliContext, args: ParsedArguments): Promise<number> {
  const [file = ""] = args.positionals;
  const { problems } = await context.station.workflows.validate((await readWorkflowFile(file, context)) as JsonValue);
  if (args.flag("json")) await context.stdout.printJson({ problems });
  else if (problems.length === 0) await context.stderr.print(line`caisson: ${file} is a valid workflow`);
  else {
    for (const { path, text, hint } of problems) {
      await context.stdout.print(line`${path === "" ? file : path}: ${text}`);
      if (hint !== undefined) await context.stdout.print(line`  ${hint}`);
    }
  }
  return problems.length === 0 ? 0 : 1;
}

/** `caisson workflow run FILE` */
export async function runWorkflow(context: CliContext, args: ParsedArguments): Promise<number> {
  const [file = ""] = args.positionals;
  const isDetached = args.flag("detach");
  if (isDetached && context.target.kind === "here") {
    throw new CaissonError("unavailable", "no station is running that could continue it", { hint: "Start one: caisson up --detach" });
  }
  const workspace = args.option("workspace");
  const [cron, overlap] = [args.option("cron"), args.option("overlap")];
  if (overlap !== undefined && cron === undefined) throw new CaissonError("invalid", "--overlap requires --cron");
  const view = await context.station.workflows.start({
    definition: (await readWorkflowFile(file, context)) as never,
    input: workflowInputs(args) as never,
    ...defined({ model: args.option("model"), cleanup: cleanupFrom(args) }),
    ...(cron !== undefined && { schedule: { cron, ...defined({ overlap: overlap as "skip" | "queue" | undefined }) } }),
    ...(workspace !== undefined && { source: { kind: "folder" as const, path: resolve(context.cwd, workspace) } }),
  });
  if (isDetached) return await printResult(context, args, { json: view, text: line`${view.id}` });
  if (!args.flag("json")) await context.stderr.print(line`caisson: started the workflow ${view.title}: ${view.id}`);
  return await follow(context, args, { id: view.id, fromSeq: 1 });
}

export const workflowKind: JobKind<WorkflowView, WorkflowView, JobView> = {
  verb: "workflow",
  verbs: ({ workflows }) => workflows,
  idOf: ({ id }) => id,
  async list({ station }, args) {
    const { items } = await station.workflows.list({
      limit: LISTED_MAX,
      ...(!args.flag("all") && { state: "open" as const }),
      ...(args.flag("waiting") && { needsPerson: true }),
    });
    return items;
  },
  rows: (items) => (items.length === 0 ? [] : workflowRows(items)),
  lines: workflowLines,
  async reportCancelled(context, args, { id }) {
    const view = await context.station.workflows.wait(id, { signal: context.interruption.signal });
    return await printResult(context, args, { json: view, note: line`${id} has ended (${view.finish ?? "not yet"})` });
  },
  async resume(context, args) {
    const { id, seq } = await context.station.workflows.resume(args.positionals[0] ?? "", { by: "user" });
    return await follow(context, args, { id, fromSeq: seq + 1 });
  },
};

/** `caisson workflow retry WORKFLOW` */
export async function retryWorkflow(context: CliContext, args: ParsedArguments): Promise<number> {
  const before = await context.station.workflows.get(args.positionals[0] ?? "");
  const { id } = await context.station.workflows.retry(before.id, { by: "user" });
  return await follow(context, args, { id, fromSeq: before.seq + 1 });
}

/** `caisson workflow signal WORKFLOW SIGNAL` */
export async function signalWorkflow(context: CliContext, args: ParsedArguments): Promise<number> {
  const [word = "", name = ""] = args.positionals;
  const data = args.option("data");
  const view = await context.station.workflows.signal(word, {
    name,
    data: (data === undefined ? null : jsonOrText(data)) as never,
    by: "user",
    ...defined({ key: args.option("key") }),
  });
  return await printResult(context, args, { json: view, note: line`sent the signal ${name} to ${view.id}` });
}

/** `caisson workflow approve WORKFLOW` */
export async function approveStep(context: CliContext, args: ParsedArguments): Promise<number> {
  const approved = !args.flag("deny");
  const view = await context.station.workflows.approve(args.positionals[0] ?? "", {
    approved,
    by: "user",
    ...defined({ text: args.option("text"), path: args.option("step") }),
  });
  return await printResult(context, args, { json: view, note: line`answered ${view.id} with ${approved ? "yes" : "no"}` });
}

/** Prints events as they occur, until the workflow ends. */
async function follow(context: CliContext, args: ParsedArguments, { id, fromSeq }: { id: string; fromSeq: number }): Promise<number> {
  const { workflows } = context.station;
  const isJson = args.flag("json");
  for await (const event of workflows.events(id, { fromSeq, follow: true })) {
    if (isJson) await context.stdout.printJson(event);
    else {
      const text = eventLine(event);
      if (text !== null) await context.stderr.print(text);
      if (event.type === "driven.waiting") await context.stderr.print(waitLines(await workflows.get(id)));
    }
  }
  return await report(context, await workflows.get(id), isJson);
}

async function report(context: CliContext, view: WorkflowView, isJson: boolean): Promise<number> {
  const { finish, text, id, output } = view;
  if (isJson) await context.stdout.printJson(view);
  else {
    await context.stderr.print(
      line`caisson: ${id} ${finish === "timed_out" ? "timed out" : (finish ?? "continues")}${text === null ? "" : `: ${text}`}`,
    );
    if (finish === "failed") await context.stderr.print(line`hint: Fix the problem, then run: caisson workflow retry ${id}`);
    if (output !== null) await context.stdout.printJson(output);
  }
  return finish === null ? 0 : exitCodes[finish];
}
