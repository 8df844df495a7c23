import { defaultLimits } from "../../contract/default-limits.ts";
import { CaissonError } from "../../contract/error.ts";
import type { DoctorReport, RuntimeReport, TaskNeeds } from "../../contract/machine-verbs.ts";
import type { Capabilities } from "../../contract/sandbox.ts";
import { defined } from "../../lib/defined.ts";
import { showBytes, showDuration } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { bad, bold, dim, good, type Line, line } from "../terminal/line.ts";

const HIDDEN_TOLD_MAX = 20;

export async function run(context: CliContext, given: ParsedArguments): Promise<number> {
  if (given.flag("attack")) return (await import("./doctor-attack.ts")).runAttack(context, given);
  if (given.positionals.length > 0) throw new CaissonError("invalid", "doctor takes a word only with --attack");
  if (given.flag("conformance")) return (await import("./doctor-conformance.ts")).runConformanceSuite(context, given);
  const needs = given.option("for");
  const runtime = given.option("runtime");
  const only = runtime === undefined || runtime === "auto" ? undefined : [runtime];
  if (needs !== undefined) return recommend(context, given, parseNeeds(needs));
  const report = await context.station.machine.doctor(defined({ only, model: given.option("model") }));
  if (given.flag("json")) await context.stdout.printJson(report);
  else await context.stdout.print(showReport(report));
  if (report.models.asked?.answers === false) return 1;
  return (only === undefined ? report.chosen !== null : report.runtimes.every((each) => each.usable)) ? 0 : 1;
}

/** The whole report as text. */
export function showReport(report: DoctorReport): Line[] {
  const { machine } = report;
  return [
    line`${bold("caisson")} ${report.version} on Linux ${machine.kernel} (${machine.architecture}), as ${machine.user === "root" ? "root" : "an ordinary user"}, cgroups ${machine.cgroups}`,
    line``,
    ...report.runtimes.flatMap((runtime) => [...showRuntime(runtime, { chosen: report.chosen === runtime.name }), line``]),
    bold("visible inside by the host template"),
    ...report.visible.map((entry) => line`  ${entry.what.padEnd(9)} ${entry.path}  ${dim(entry.why)}`),
    line``,
    ...showWorkspace(report.workspace),
    line``,
    ...showModels(report.models),
    line``,
    report.chosen === null
      ? bad("No runtime here can isolate a sandbox; each problem above has its fix.")
      : good(`auto uses ${report.chosen}.`),
  ];
}

/** What of the current folder a sandbox would see. */
function showWorkspace({ folder, refused, hidden, complete }: DoctorReport["workspace"]): Line[] {
  const heading = line`${bold("the current folder as the workspace")}  ${folder}`;
  if (refused !== null) return [heading, line`  refused unless --workspace names it: ${refused}`];
  const more = complete ? [] : [dim("  it is large: what lies deep in it was not looked at")];
  if (hidden.length === 0) return [heading, line`  nothing in it looks like a credential`, ...more];
  const told = hidden.slice(0, HIDDEN_TOLD_MAX).map((path) => line`  hidden    ${path}`);
  const rest = hidden.length > HIDDEN_TOLD_MAX ? [line`  … and ${String(hidden.length - HIDDEN_TOLD_MAX)} more`] : [];
  return [heading, ...told, ...rest, ...more, dim("  --show PATTERN, or workspace.show in config.json, shows them")];
}

/** Which keys are set, by name, and whether the model that was asked answers. */
function showModels({ providers, default: usual, asked }: DoctorReport["models"]): Line[] {
  const lines = [bold("models")];
  for (const { name, keys, set } of providers) {
    const mark = set.some((variable) => keys.includes(variable)) ? good("✓") : "·";
    lines.push(line`  ${mark} ${name.padEnd(10)} ${set.length === 0 ? `no key; set ${keys.join(" or ")}` : `${set.join(", ")} set`}`);
  }
  lines.push(line`    default model: ${usual ?? "none; --model names one, or CAISSON_MODEL"}`);
  if (asked === null) lines.push(dim("    --model NAME asks a model for a word"));
  else if (asked.answers) lines.push(line`  ${good("✓")} ${asked.model} answers, after ${showDuration(asked.durationMs)}`);
  else lines.push(line`  ${bad("✗")} ${asked.model}: ${asked.problem ?? "no answer"}`);
  if (asked?.fix !== undefined) lines.push(line`      fix: ${asked.fix}`);
  return lines;
}

/** One runtime: whether it works, why not, the fix, and what it can enforce. */
export function showRuntime(report: RuntimeReport, options: { chosen: boolean }): Line[] {
  const state = report.usable ? good("usable") : bad("not usable");
  const start = report.startMs === null ? "" : `, first output after ${showDuration(report.startMs)}`;
  const lines = [line`${bold(report.name)}  ${state}${start}${options.chosen ? "  ← auto" : ""}`];
  for (const finding of report.findings) {
    const mark = finding.level === "problem" ? bad("✗") : finding.level === "note" ? "·" : good("✓");
    lines.push(line`  ${mark} ${finding.text}`);
    if (finding.fix !== undefined) lines.push(line`      fix: ${finding.fix}`);
  }
  const { capabilities } = report;
  if (capabilities === null) return lines;
  const wall = ["none", "shared kernel", "user-space kernel", "own kernel"][capabilities.isolation] ?? "unknown";
  const enforced = Object.entries(capabilities.limits).map(([name, held]) => `${held ? "" : "no "}${limitNames[name] ?? name}`);
  lines.push(line`    isolation: ${wall}; limits: ${enforced.join(", ")}; templates: ${capabilities.templates.join(", ")}`);
  if (capabilities.isolation > 0) lines.push(line`    by default: ${byDefault(capabilities)}`);
  const extras = Object.entries({ pause: capabilities.pause, snapshot: capabilities.snapshot, root: capabilities.rootUser });
  lines.push(
    line`    workspace: ${capabilities.workspaceAccess.join(", ")}; ${extras.map(([name, able]) => `${able ? "" : "no "}${name}`).join(", ")}`,
  );
  for (const [what, reason] of Object.entries(capabilities.reasons)) lines.push(dim(`    ${what}: ${reason}`));
  return lines;
}

/** What a sandbox is held to when nobody asks for anything. */
function byDefault({ limits }: Capabilities): string {
  const { cpus, memoryBytes, pids, tmpBytes } = defaultLimits;
  return [
    ...(limits.cpus ? [`${cpus} cpus`] : []),
    ...(limits.memoryBytes ? [`${showBytes(memoryBytes)} of memory`] : []),
    ...(limits.pids ? [`${pids} processes`] : []),
    `${showBytes(tmpBytes)} in /tmp`,
    "work is ended before the machine's disk is full",
  ].join(", ");
}

const limitNames: Readonly<Record<string, string>> = { cpus: "cpu", memoryBytes: "memory", pids: "processes", diskBytes: "disk" };

/** `sensitive,offline,language=python`. Throws `invalid`. */
export function parseNeeds(text: string): TaskNeeds {
  const needs: TaskNeeds = {};
  for (const word of text.split(",").map((each) => each.trim())) {
    const language = /^language=([\w+#-]+)$/.exec(word)?.[1];
    if (language !== undefined) needs.language = language;
    else if (word === "sensitive" || word === "offline" || word === "preview" || word === "image") needs[word] = true;
    else {
      throw new CaissonError("invalid", `doctor: unknown requirement ${JSON.stringify(word)}`, {
        hint: "Choose from sensitive, offline, preview, image and language=NAME, comma-separated.",
      });
    }
  }
  return needs;
}

async function recommend(context: CliContext, given: ParsedArguments, needs: TaskNeeds): Promise<number> {
  const choice = await context.station.machine.choose(needs);
  if (given.flag("json")) await context.stdout.printJson(choice);
  else if (choice === null)
    await context.stdout.print(line`No runtime here suits this task; \`caisson doctor\` shows what could be fixed.`);
  else
    await context.stdout.print([
      line`--runtime ${choice.runtime}, template ${choice.template}`,
      ...choice.reasons.map((reason) => line`  ${reason}`),
    ]);
  return choice === null ? 1 : 0;
}
