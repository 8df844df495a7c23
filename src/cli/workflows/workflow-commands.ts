import { resolve } from "node:path";
import { CaissonError } from "../../contract/error.ts";
import type { WorkflowView } from "../../contract/workflow-verbs.ts";
import { defined } from "../../lib/defined.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { line } from "../terminal/line.ts";
import { readWorkflowFile, workflowInputs } from "./workflow-file.ts";
import { eventLine, waitLines, workflowLines, workflowRows } from "./workflow-view.ts";

const LISTED_MAX = 1000;
const exitCodes = { completed: 0, failed: 1, timed_out: 124, cancelled: 130 } as const;

/** `caisson workflow validate FILE` */
export async function validate(context: CliContext, given: ParsedArguments): Promise<number> {
  const [file = ""] = given.positionals;
  const { problems } = await context.station.workflows.validate(await readWorkflowFile(file, context));
  if (given.flag("json")) await context.stdout.printJson({ problems });
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
export async function run(context: CliContext, given: ParsedArguments): Promise<number> {
  const [file = ""] = given.positionals;
  const isDetached = given.flag("detach");
  if (isDetached && context.target.kind === "here") {
    throw new CaissonError("unavailable", "no station runs here that could go on with it", { hint: "Start one: caisson up --detach" });
  }
  const workspace = given.option("workspace");
  const [cron, overlap] = [given.option("cron"), given.option("overlap")];
  if (overlap !== undefined && cron === undefined) throw new CaissonError("invalid", "--overlap is for --cron");
  const view = await context.station.workflows.start({
    definition: (await readWorkflowFile(file, context)) as never,
    input: workflowInputs(given) as never,
    ...defined({ model: given.option("model") }),
    ...(cron !== undefined && { schedule: { cron, ...defined({ overlap: overlap as "skip" | "queue" | undefined }) } }),
    ...(workspace !== undefined && { source: { kind: "folder" as const, path: resolve(context.cwd, workspace) } }),
  });
  if (isDetached) {
    if (given.flag("json")) await context.stdout.printJson(view);
    else await context.stdout.print(line`${view.id}`);
    return 0;
  }
  if (!given.flag("json")) await context.stderr.print(line`caisson: the workflow ${view.title} is ${view.id}`);
  return await follow(context, given, { id: view.id, fromSeq: 1 });
}

/** `caisson workflow resume WORKFLOW` */
export async function resume(context: CliContext, given: ParsedArguments): Promise<number> {
  const { id, seq } = await context.station.workflows.resume(given.positionals[0] ?? "", { by: "user" });
  return await follow(context, given, { id, fromSeq: seq + 1 });
}

/** `caisson workflow retry WORKFLOW` */
export async function retry(context: CliContext, given: ParsedArguments): Promise<number> {
  const before = await context.station.workflows.get(given.positionals[0] ?? "");
  const { id } = await context.station.workflows.retry(before.id, { by: "user" });
  return await follow(context, given, { id, fromSeq: before.seq + 1 });
}

/** `caisson workflow ls` */
export async function list(context: CliContext, given: ParsedArguments): Promise<number> {
  const { items } = await context.station.workflows.list({
    limit: LISTED_MAX,
    ...(!given.flag("all") && { state: "open" as const }),
    ...(given.flag("waiting") && { needsPerson: true }),
  });
  if (given.flag("json")) await context.stdout.printJson(items);
  else if (items.length > 0) await context.stdout.print(workflowRows(items));
  return 0;
}

/** `caisson workflow show WORKFLOW` */
export async function show(context: CliContext, given: ParsedArguments): Promise<number> {
  const view = await context.station.workflows.get(given.positionals[0] ?? "");
  if (given.flag("json")) await context.stdout.printJson(view, { indent: 2 });
  else await context.stdout.print(workflowLines(view));
  return 0;
}

/** What happens, as it does, until the end. */
async function follow(context: CliContext, given: ParsedArguments, { id, fromSeq }: { id: string; fromSeq: number }): Promise<number> {
  const { workflows } = context.station;
  const isJson = given.flag("json");
  for await (const event of workflows.events(id, { fromSeq, follow: true })) {
    if (isJson) await context.stdout.printJson(event);
    else {
      const shown = eventLine(event);
      if (shown !== null) await context.stderr.print(shown);
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
      line`caisson: ${id} ${finish === "timed_out" ? "timed out" : (finish ?? "goes on")}${text === null ? "" : `: ${text}`}`,
    );
    if (finish === "failed") await context.stderr.print(line`hint: Mend what is wrong, then: caisson workflow retry ${id}`);
    if (output !== null) await context.stdout.printJson(output);
  }
  return finish === null ? 0 : exitCodes[finish];
}
