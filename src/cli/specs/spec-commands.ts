import { resolve } from "node:path";
import { CaissonError } from "../../contract/error/error.ts";
import { GatePhase, WrittenPhase } from "../../contract/spec/spec.ts";
import type { SpecSummary, SpecView } from "../../contract/spec/spec-verbs.ts";
import { defined } from "../../lib/defined.ts";
import { jsonOrNull } from "../../lib/failures.ts";
import { showDuration } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import type { JobKind } from "../durable/job-commands.ts";
import { parseChoice, parseCount } from "../options/option-values.ts";
import { ownedSince } from "../options/parse-list-filter.ts";
import { printResult } from "../print-result.ts";
import { readTextFile, readTextInput } from "../runs/read-task-text.ts";
import { type Line, line, lines } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";
import { nextLines, specLines } from "./spec-lines.ts";

export const specKind: JobKind<SpecView, SpecView, SpecSummary> = {
  verb: "spec",
  verbs: ({ specs }) => specs,
  idOf: ({ spec }) => spec,
  list: async ({ station }, args) => (await station.specs.list(ownedSince(args))).items,
  rows: specRows,
  lines: specLines,
  reportCancelled: (context, args, view) =>
    printSpec(context, args, { view, text: line`${view.spec} was cancelled; the phases written so far stay` }),
  resume: async (context, args) => await (await import("./spec-run.ts")).resume(context, args),
  describeRemoved: (spec) => ({ text: line`${spec} removed` }),
  reportsEachRemoval: true,
};

function specRows(specs: readonly SpecSummary[]): Line | Line[] {
  const rows = specs.map(({ spec, name, status, phase, updatedAt, title }) => [
    ...[spec, name ?? "", status, phase, `${showDuration(Date.now() - Date.parse(updatedAt))} ago`, title],
  ]);
  return rows.length === 0 ? line`No specs yet.` : table([["SPEC", "NAME", "STATUS", "PHASE", "CHANGED", "IDEA"], ...rows]);
}

/** `caisson spec approve SPEC` */
export async function approve(context: CliContext, args: ParsedArguments): Promise<number> {
  return await decide(context, args, { approved: true, text: "" });
}

/** `caisson spec reject SPEC WORDS…` */
export async function reject(context: CliContext, args: ParsedArguments): Promise<number> {
  return await decide(context, args, { approved: false, text: args.positionals.slice(1).join(" ") });
}

async function decide(context: CliContext, args: ParsedArguments, decision: { approved: boolean; text: string }): Promise<number> {
  const phase = args.option("phase");
  const version = defined({
    phase: phase === undefined ? undefined : parseChoice(...GatePhase.options)("phase", phase),
    version: countOf(args, "version"),
  });
  const view = await context.station.specs.decide(specOf(args), { ...decision, ...version, by: "user" });
  const decided = view.decisions.at(-1);
  return await printSpec(context, args, {
    view,
    text: line`${decided?.phase ?? ""} (version ${decided?.version ?? 0}) ${decision.approved ? "is approved" : "will be rewritten with your comment"}`,
  });
}

/** `caisson spec edit SPEC PHASE FILE` */
export async function edit(context: CliContext, args: ParsedArguments): Promise<number> {
  const [spec = "", phaseName = "", file = ""] = args.positionals;
  const phase = parseChoice(...WrittenPhase.options)("PHASE", phaseName);
  const text = file === "-" ? await readTextInput(context, "phase") : await readTextFile(resolve(context.cwd, file), file, "phase");
  const data = jsonOrNull(text);
  if (data === null) throw new CaissonError("invalid", `${file === "-" ? "standard input" : file} is not JSON`);
  const view = await context.station.specs.edit(spec, { phase, data: data as never, by: "user" });
  return await printSpec(context, args, {
    view,
    text: line`${phase} is now version ${view.version}, by you; the phases after it are stale`,
  });
}

/** `caisson spec diff SPEC` */
export async function diff(context: CliContext, args: ParsedArguments): Promise<number> {
  const { specs } = context.station;
  const difference = await specs.diff(specOf(args), defined({ from: countOf(args, "from"), to: countOf(args, "to") }));
  const { from, to, diff: text } = difference;
  const result = text === "" ? { note: line`versions ${from} and ${to} are the same` } : { text: lines(text) };
  return await printResult(context, args, { json: difference, ...result });
}

/** `caisson spec export SPEC` */
export async function exportSpec(context: CliContext, args: ParsedArguments): Promise<number> {
  const formatOption = args.option("format");
  const format = formatOption === undefined ? undefined : parseChoice("markdown", "json")("format", formatOption);
  const exported = await context.station.specs.export(specOf(args), defined({ format, version: countOf(args, "version") }));
  return await printResult(context, args, { json: exported, text: lines(exported.text) });
}

function printSpec(context: CliContext, args: ParsedArguments, { view, text }: { view: SpecView; text: Line }): Promise<number> {
  return printResult(context, args, { json: view, text: [text, ...nextLines(view)] });
}

const specOf = (args: ParsedArguments): string => args.positionals[0] ?? "";

function countOf(args: ParsedArguments, option: string): number | undefined {
  const text = args.option(option);
  return text === undefined ? undefined : parseCount(option, text);
}
