import type { JobView } from "../../contract/durable/durable-job.ts";
import { CaissonError } from "../../contract/error/error.ts";
import type { MergeEvent } from "../../contract/merge/merge-event.ts";
import { type MergeView, StartMerge } from "../../contract/merge/merge-verbs.ts";
import { defined } from "../../lib/defined.ts";
import { showDuration } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { followJob } from "../durable/follow-job.ts";
import type { JobKind } from "../durable/job-commands.ts";
import { checkOptions } from "../options/option-names.ts";
import { printResult } from "../print-result.ts";
import { dim, type Line, line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";
import { conflictLines, mergeLines, progressLine } from "./merge-view.ts";

/** The exit code for a merge that waits for a person. */
const WAITS = 2;

/** `caisson merge RUN|SESSION…` */
export async function startMerge(context: CliContext, args: ParsedArguments): Promise<number> {
  const request = checkOptions(StartMerge, {
    sessions: [...args.positionals],
    ...defined({
      conflicts: args.option("conflicts") as "ask" | "agent" | "stop" | undefined,
      agent: args.option("agent"),
      model: args.option("model") ?? context.config.models.default,
      name: args.option("name"),
    }),
  });
  const { id } = await context.station.merges.start(request);
  return await followMerge(context, args, id);
}

/** `caisson merge resume MERGE` */
async function resume(context: CliContext, args: ParsedArguments): Promise<number> {
  const { merges } = context.station;
  const view = await merges.get(args.positionals[0] ?? "");
  const take = args.options("take").map(parseTake);
  const agent = args.flag("agent");
  if (take.length > 0 && agent) throw new CaissonError("invalid", "--take and --agent are mutually exclusive");
  const isAnswer = take.length > 0 || agent;
  const needsPerson = view.waits?.person != null;
  if (isAnswer && !needsPerson) throw new CaissonError("conflict", `the merge ${view.id} is not waiting for a resolution`);
  // Without an answer, a paused merge only resumes and asks again, because the user may not have looked at it since.
  if (view.paused !== null || !needsPerson) await merges.resume(view.id, { by: "user" });
  if (needsPerson && (isAnswer || view.paused === null)) await merges.resolve(view.id, { take, agent }, { by: "user" });
  return await followMerge(context, args, view.id, view.seq + 1);
}

export const mergeKind: JobKind<MergeView, MergeView, JobView> = {
  verb: "merge",
  verbs: ({ merges }) => merges,
  idOf: ({ id }) => id,
  list: async ({ station }, args) => (await station.merges.list(defined({ owner: args.option("owner") }))).items,
  rows: mergeRows,
  lines: mergeLines,
  async reportCancelled(context, args, { id }) {
    const view = await context.station.merges.wait(id, { signal: context.interruption.signal });
    return await printResult(context, args, { json: view, text: line`${id} was cancelled` });
  },
  resume,
};

function mergeRows(items: readonly JobView[]): Line | Line[] {
  const rows = items.map(({ id, finish, waits, status, updatedAt, title }) => [
    id,
    finish ?? (waits?.person == null ? status : "waiting for you"),
    `${showDuration(Date.now() - Date.parse(updatedAt))} ago`,
    title,
  ]);
  return rows.length === 0 ? line`No merges yet.` : table([["MERGE", "STATUS", "CHANGED", "WHAT"], ...rows]);
}

async function followMerge(context: CliContext, args: ParsedArguments, id: string, fromSeq?: number): Promise<number> {
  const { merges } = context.station;
  const view = await followJob(context, args, {
    ...{ id, verb: "merge", fromSeq },
    events: (options) => merges.events(id, options),
    progressLine: (event) => progressLine(event as MergeEvent),
    wait: (options) => merges.wait(id, { ...options, orPerson: true }),
    resultLines: outcome,
  });
  if (view === null || view.finish === "completed") return 0;
  return view.finish === null ? WAITS : 1;
}

function outcome(view: MergeView): Line[] {
  if (view.finish === "completed")
    return [line`Merged into ${view.result ?? ""}`, dim(`caisson diff ${view.result}; caisson apply ${view.result}`)];
  if (view.finish !== null) return [line`Not merged: ${view.text ?? view.finish}`];
  return conflictLines(view);
}

function parseTake(text: string): { path: string; side: "merged" | "theirs" } {
  const [, path, side] = /^([\s\S]+)=(merged|theirs)$/.exec(text) ?? [];
  if (path !== undefined && (side === "merged" || side === "theirs")) return { path, side };
  throw new CaissonError("invalid", `--take: ${JSON.stringify(text)} is not PATH=merged or PATH=theirs`);
}
