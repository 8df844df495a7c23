import { resolve } from "node:path";
import { CaissonError } from "../../contract/error.ts";
import { GatePhase, WrittenPhase } from "../../contract/spec.ts";
import type { SpecView } from "../../contract/spec-verbs.ts";
import { defined } from "../../lib/defined.ts";
import { jsonOrNull } from "../../lib/json-or-null.ts";
import { showDuration } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { ownedSince } from "../options/list-asked.ts";
import { parseChoice, parseCount } from "../options/option-values.ts";
import { readTextFile, readTextInput } from "../runs/given-text.ts";
import { type Line, line, lines } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";
import { nextLines, specLines } from "./spec-lines.ts";

/** `caisson spec ls` */
export async function list(context: CliContext, given: ParsedArguments): Promise<number> {
  const { items: specs } = await context.station.specs.list(ownedSince(given));
  if (given.flag("json")) {
    await context.stdout.printJson(specs);
    return 0;
  }
  const rows = specs.map(({ spec, name, status, phase, updatedAt, title }) => [
    ...[spec, name ?? "", status, phase, `${showDuration(Date.now() - Date.parse(updatedAt))} ago`, title],
  ]);
  await context.stdout.print(
    rows.length === 0 ? line`No spec yet.` : table([["SPEC", "NAME", "STATUS", "PHASE", "CHANGED", "IDEA"], ...rows]),
  );
  return 0;
}

/** `caisson spec show SPEC` */
export async function show(context: CliContext, given: ParsedArguments): Promise<number> {
  const view = await context.station.specs.get(specOf(given));
  await (given.flag("json") ? context.stdout.printJson(view) : context.stdout.print(specLines(view)));
  return 0;
}

/** `caisson spec approve SPEC` */
export async function approve(context: CliContext, given: ParsedArguments): Promise<number> {
  return await decide(context, given, { approved: true, text: "" });
}

/** `caisson spec reject SPEC WORDS…` */
export async function reject(context: CliContext, given: ParsedArguments): Promise<number> {
  return await decide(context, given, { approved: false, text: given.positionals.slice(1).join(" ") });
}

async function decide(context: CliContext, given: ParsedArguments, decision: { approved: boolean; text: string }): Promise<number> {
  const phase = given.option("phase");
  const asked = defined({
    phase: phase === undefined ? undefined : parseChoice(...GatePhase.options)("phase", phase),
    version: countOf(given, "version"),
  });
  const view = await context.station.specs.decide(specOf(given), { ...decision, ...asked, by: "user" });
  const decided = view.decisions.at(-1);
  return await told(context, given, {
    view,
    text: line`${decided?.phase ?? ""} (version ${decided?.version ?? 0}) ${decision.approved ? "is agreed to" : "is written anew, with your words"}`,
  });
}

/** `caisson spec edit SPEC PHASE FILE` */
export async function edit(context: CliContext, given: ParsedArguments): Promise<number> {
  const [spec = "", asked = "", file = ""] = given.positionals;
  const phase = parseChoice(...WrittenPhase.options)("PHASE", asked);
  const text = file === "-" ? await readTextInput(context, "phase") : await readTextFile(resolve(context.cwd, file), file, "phase");
  const data = jsonOrNull(text);
  if (data === null) throw new CaissonError("invalid", `${file === "-" ? "standard input" : file} is not JSON`);
  const view = await context.station.specs.edit(spec, { phase, data: data as never, by: "user" });
  return await told(context, given, { view, text: line`${phase} is version ${view.version} now, by you; what follows from it is stale` });
}

/** `caisson spec cancel SPEC` */
export async function cancel(context: CliContext, given: ParsedArguments): Promise<number> {
  const view = await context.station.specs.cancel(specOf(given), { by: "user" });
  return await told(context, given, { view, text: line`${view.spec} is cancelled; what is written stays` });
}

/** `caisson spec diff SPEC` */
export async function diff(context: CliContext, given: ParsedArguments): Promise<number> {
  const found = await context.station.specs.diff(specOf(given), defined({ from: countOf(given, "from"), to: countOf(given, "to") }));
  if (given.flag("json")) await context.stdout.printJson(found);
  else if (found.diff === "") await context.stderr.print(line`caisson: versions ${found.from} and ${found.to} say the same`);
  else await context.stdout.print(lines(found.diff));
  return 0;
}

/** `caisson spec export SPEC` */
export async function exportSpec(context: CliContext, given: ParsedArguments): Promise<number> {
  const asked = given.option("format");
  const format = asked === undefined ? undefined : parseChoice("markdown", "json")("format", asked);
  const exported = await context.station.specs.export(specOf(given), defined({ format, version: countOf(given, "version") }));
  await (given.flag("json") ? context.stdout.printJson(exported) : context.stdout.print(lines(exported.text)));
  return 0;
}

/** `caisson spec rm SPEC…` */
export async function remove(context: CliContext, given: ParsedArguments): Promise<number> {
  for (const word of given.positionals) {
    const { spec } = await context.station.specs.remove(word);
    await (given.flag("json") ? context.stdout.printJson({ removed: spec }) : context.stdout.print(line`${spec} removed`));
  }
  return 0;
}

async function told(context: CliContext, given: ParsedArguments, { view, text }: { view: SpecView; text: Line }): Promise<number> {
  if (given.flag("json")) await context.stdout.printJson(view);
  else await context.stdout.print([text, ...nextLines(view)]);
  return 0;
}

const specOf = (given: ParsedArguments): string => given.positionals[0] ?? "";

function countOf(given: ParsedArguments, option: string): number | undefined {
  const text = given.option(option);
  return text === undefined ? undefined : parseCount(option, text);
}
