import { CaissonError } from "../../contract/error.ts";
import type { MergeEvent } from "../../contract/merge-event.ts";
import { type MergeView, StartMerge } from "../../contract/merge-verbs.ts";
import { defined } from "../../lib/defined.ts";
import { showDuration } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { checkOptions } from "../options/option-names.ts";
import { dim, type Line, line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";
import { conflictLines, mergeLines, progressLine } from "./merge-view.ts";

/** It waits for a person. */
const WAITS = 2;

/** `caisson merge RUN|SESSION…` */
export async function merge(context: CliContext, given: ParsedArguments): Promise<number> {
  const request = checkOptions(StartMerge, {
    sessions: [...given.positionals],
    ...defined({
      conflicts: given.option("conflicts") as "ask" | "agent" | "stop" | undefined,
      agent: given.option("agent"),
      model: given.option("model") ?? context.config.models.default,
      name: given.option("name"),
    }),
  });
  const { id } = await context.station.merges.start(request);
  return await followed(context, given, id);
}

/** `caisson merge resume MERGE` */
export async function resume(context: CliContext, given: ParsedArguments): Promise<number> {
  const { merges } = context.station;
  const view = await merges.get(given.positionals[0] ?? "");
  const take = given.options("take").map(parseTake);
  const agent = given.flag("agent");
  if (take.length > 0 && agent) throw new CaissonError("invalid", "--take and --agent do not go together");
  const isAnswer = take.length > 0 || agent;
  const isAsked = view.waits?.person != null;
  if (isAnswer && !isAsked) throw new CaissonError("conflict", `the merge ${view.id} waits for nobody's resolution`);
  // One that was paused first asks again: nobody may have looked at it since.
  if (view.paused !== null || !isAsked) await merges.resume(view.id, { by: "user" });
  if (isAsked && (isAnswer || view.paused === null)) await merges.resolve(view.id, { take, agent }, { by: "user" });
  return await followed(context, given, view.id, view.seq + 1);
}

export async function ls(context: CliContext, given: ParsedArguments): Promise<number> {
  const owner = given.option("owner");
  const { items } = await context.station.merges.list(defined({ owner }));
  if (given.flag("json")) {
    await context.stdout.printJson(items);
    return 0;
  }
  const rows = items.map((each) => [
    each.id,
    each.finish ?? (each.waits?.person == null ? each.status : "waits for you"),
    `${showDuration(Date.now() - Date.parse(each.updatedAt))} ago`,
    each.title,
  ]);
  await context.stdout.print(rows.length === 0 ? line`No merge yet.` : table([["MERGE", "STATUS", "CHANGED", "WHAT"], ...rows]));
  return 0;
}

export async function show(context: CliContext, given: ParsedArguments): Promise<number> {
  const view = await context.station.merges.get(given.positionals[0] ?? "");
  await (given.flag("json") ? context.stdout.printJson(view) : context.stdout.print(mergeLines(view)));
  return 0;
}

export async function cancel(context: CliContext, given: ParsedArguments): Promise<number> {
  const { merges } = context.station;
  const { id } = await merges.cancel(given.positionals[0] ?? "", { by: "user" });
  const view = await merges.wait(id, { signal: context.interruption.signal });
  await (given.flag("json") ? context.stdout.printJson(view) : context.stdout.print(line`${id} was cancelled`));
  return 0;
}

export async function pause(context: CliContext, given: ParsedArguments): Promise<number> {
  const view = await context.station.merges.pause(given.positionals[0] ?? "", { by: "user" });
  await (given.flag("json")
    ? context.stdout.printJson(view)
    : context.stderr.print(line`caisson: nothing more of ${view.id} is begun until: caisson merge resume ${view.id}`));
  return 0;
}

export async function remove(context: CliContext, given: ParsedArguments): Promise<number> {
  for (const word of given.positionals) {
    const { id } = await context.station.merges.get(word);
    await context.station.merges.remove(id);
    await context.stdout.print(line`${id}`);
  }
  return 0;
}

async function followed(context: CliContext, given: ParsedArguments, id: string, fromSeq = 1): Promise<number> {
  const { merges } = context.station;
  const isJson = given.flag("json");
  if (given.flag("detach")) {
    await (isJson ? context.stdout.printJson({ merge: id }) : context.stdout.print(line`${id}`));
    return 0;
  }
  if (!isJson) await context.stdout.print(dim(id));
  const over = new AbortController();
  const shown = tell(context, id, { fromSeq, isJson, signal: over.signal });
  try {
    const view = await merges.wait(id, { orPerson: true, signal: context.interruption.signal });
    over.abort();
    await shown;
    await (isJson ? context.stdout.printJson(view) : context.stdout.print(outcome(view)));
    return view.finish === "completed" ? 0 : view.finish === null ? WAITS : 1;
  } finally {
    over.abort();
    await shown;
  }
}

async function tell(context: CliContext, id: string, options: { fromSeq: number; isJson: boolean; signal: AbortSignal }): Promise<void> {
  const { fromSeq, isJson, signal } = options;
  try {
    for await (const event of context.station.merges.events(id, { fromSeq, follow: true, signal })) {
      const told = isJson ? null : progressLine(event as unknown as MergeEvent);
      if (told !== null) await context.stderr.print(told);
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
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
