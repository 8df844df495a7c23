import type { BestEvent } from "../../contract/best/best-event.ts";
import { type BestView, StartBest } from "../../contract/best/best-verbs.ts";
import type { JobView } from "../../contract/durable/durable-job.ts";
import { defined } from "../../lib/defined.ts";
import { showDuration } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { followJob } from "../durable/follow-job.ts";
import type { JobKind } from "../durable/job-commands.ts";
import { checkOptions } from "../options/option-names.ts";
import { inputsFrom, parseCount, parseDuration } from "../options/option-values.ts";
import { pairs } from "../options/parse-pairs.ts";
import { sourceFrom } from "../options/workspace-source.ts";
import { printResult } from "../print-result.ts";
import { textGiven } from "../runs/read-task-text.ts";
import { budgetsFrom, settingsFrom } from "../runs/run-agent.ts";
import { atStep } from "../sessions/step-of-run.ts";
import { dim, type Line, line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";
import { bestLines, progressLine } from "./best-view.ts";

/** `caisson best "TASK"`, `caisson best RUN[@STEP]` */
export async function startBest(context: CliContext, args: ParsedArguments): Promise<number> {
  const countOf = (option: string) => {
    const text = args.option(option);
    return text === undefined ? undefined : parseCount(option, text);
  };
  const timeout = args.option("grade-timeout");
  const models = args.option("models")?.split(",");
  const request = checkOptions(StartBest, {
    ...(await sourceOf(context, args)),
    budgets: budgetsFrom(args),
    ...defined({
      attempts: countOf("attempts"),
      models: models?.map((name) => name.trim()).filter((name) => name !== ""),
      grade: args.option("grade"),
      gradeTimeoutMs: timeout === undefined ? undefined : parseDuration("grade-timeout", timeout),
      judge: args.option("judge"),
      concurrency: countOf("concurrency"),
    }),
  });
  const { id } = await context.station.bests.start(request);
  return await followBest(context, args, id);
}

/** A word that looks like a run is one; everything else is a task. */
async function sourceOf(context: CliContext, args: ParsedArguments): Promise<Pick<StartBest, "start" | "run">> {
  const [word = ""] = args.positionals;
  if (args.positionals.length === 1 && /^run_[a-z2-7]+(@\d+)?$/.test(word)) {
    const { name, at } = atStep(word);
    return { run: { run: name, ...defined({ step: at, send: args.option("send") }) } };
  }
  const { before, text: task } = await textGiven(context, args, { what: "task", wordsBefore: 1 });
  return {
    start: {
      task,
      agent: before[0] ?? "coder",
      input: inputsFrom(args),
      labels: pairs(context, args.options("label"), "label"),
      settings: settingsFrom(context, args),
      sourceNamed: args.flag("repo"),
      source: await sourceFrom(context, args),
      ...defined({ model: args.option("model") ?? context.config.models.default }),
    },
  };
}

export const bestKind: JobKind<BestView, BestView, JobView> = {
  verb: "best",
  verbs: ({ bests }) => bests,
  idOf: ({ id }) => id,
  list: async ({ station }, args) => (await station.bests.list(defined({ owner: args.option("owner") }))).items,
  rows: bestRows,
  lines: bestLines,
  async reportCancelled(context, args, { id }) {
    const view = await context.station.bests.wait(id, { signal: context.interruption.signal });
    return await printResult(context, args, { json: view, text: line`${id} was cancelled` });
  },
  async resume(context, args) {
    const view = await context.station.bests.resume(args.positionals[0] ?? "", { by: "user" });
    return await followBest(context, args, view.id, view.seq + 1);
  },
};

function bestRows(items: readonly JobView[]): Line | Line[] {
  const rows = items.map(({ id, finish, status, updatedAt, title }) => [
    id,
    finish ?? status,
    `${showDuration(Date.now() - Date.parse(updatedAt))} ago`,
    title,
  ]);
  return rows.length === 0 ? line`No best-ofs yet.` : table([["BEST", "STATUS", "CHANGED", "TASK"], ...rows]);
}

async function followBest(context: CliContext, args: ParsedArguments, id: string, fromSeq?: number): Promise<number> {
  const { bests } = context.station;
  const view = await followJob(context, args, {
    ...{ id, verb: "best", fromSeq },
    events: (options) => bests.events(id, options),
    progressLine: (event) => progressLine(event as BestEvent),
    wait: (options) => bests.wait(id, options),
    resultLines: (ended) => [...bestLines(ended), ...nextLines(ended)],
  });
  return view === null || view.finish === "completed" ? 0 : 1;
}

function nextLines({ winner }: BestView): Line[] {
  if (winner === null) return [];
  return [dim(`caisson diff ${winner.run}; caisson apply ${winner.run}`)];
}
