import { defaultLimits } from "../../contract/defaults/default-limits.ts";
import { CaissonError } from "../../contract/error/error.ts";
import type { DoctorReport, RuntimeReport, TaskNeeds } from "../../contract/machine/machine-verbs.ts";
import type { Capabilities } from "../../contract/sandbox/sandbox.ts";
import { defined } from "../../lib/defined.ts";
import { showBytes, showDuration } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { bad, bold, dim, good, type Line, line } from "../terminal/line.ts";

const HIDDEN_TOLD_MAX = 20;

export async function runDoctor(context: CliContext, args: ParsedArguments): Promise<number> {
  if (args.flag("attack")) return (await import("./doctor-attack.ts")).runAttack(context, args);
  if (args.positionals.length > 0) throw new CaissonError("invalid", "doctor takes an argument only with --attack");
  if (args.flag("conformance")) return (await import("./doctor-conformance.ts")).runConformanceSuite(context, args);
  const needs = args.option("for");
  const runtime = args.option("runtime");
  const only = runtime === undefined || runtime === "auto" ? undefined : [runtime];
  if (needs !== undefined) return recommend(context, args, parseNeeds(needs));
  const report = await context.station.machine.doctor(defined({ only, model: args.option("model") }));
  if (args.flag("json")) await context.stdout.printJson(report);
  else await context.stdout.print(showReport(report));
  if (report.models.asked?.answers === false) return 1;
  return (only === undefined ? report.chosen !== null : report.runtimes.every((each) => each.usable)) ? 0 : 1;
}

/** Formats the whole report. */
export function showReport(report: DoctorReport): Line[] {
  const { machine } = report;
  return [
    line`${bold("caisson")} ${report.version} on Linux ${machine.kernel} (${machine.architecture}), as ${machine.user === "root" ? "root" : "an ordinary user"}, cgroups ${machine.cgroups}`,
    line``,
    ...report.runtimes.flatMap((runtime) => [...showRuntime(runtime, { chosen: report.chosen === runtime.name }), line``]),
    bold("visible inside through the host template"),
    ...report.visible.map((entry) => line`  ${entry.what.padEnd(9)} ${entry.path}  ${dim(entry.why)}`),
    line``,
    ...showWorkspace(report.workspace),
    line``,
    ...showModels(report.models),
    line``,
    report.chosen === null
      ? bad("No runtime here can isolate a sandbox; each problem above lists its fix.")
      : good(`auto uses ${report.chosen}.`),
  ];
}

/** Shows what a sandbox would see of the current folder. */
function showWorkspace({ folder, refused, hidden, complete }: DoctorReport["workspace"]): Line[] {
  const heading = line`${bold("the current folder as the workspace")}  ${folder}`;
  if (refused !== null) return [heading, line`  refused unless --workspace names it: ${refused}`];
  const more = complete ? [] : [dim("  the folder is large; deeply nested files were not checked")];
  if (hidden.length === 0) return [heading, line`  nothing in it looks like a credential`, ...more];
  const hiddenLines = hidden.slice(0, HIDDEN_TOLD_MAX).map((path) => line`  hidden    ${path}`);
  const rest = hidden.length > HIDDEN_TOLD_MAX ? [line`  … and ${String(hidden.length - HIDDEN_TOLD_MAX)} more`] : [];
  return [heading, ...hiddenLines, ...rest, ...more, dim("  to show them, use --show PATTERN or workspace.show in config.json")];
}

/** Shows the names of the keys that are set, and whether the tested model answers. */
function showModels({ providers, default: usual, asked: modelCheck }: DoctorReport["models"]): Line[] {
  const lines = [bold("models")];
  for (const { name, keys, set } of providers) {
    const mark = set.some((variable) => keys.includes(variable)) ? good("✓") : "·";
    lines.push(line`  ${mark} ${name.padEnd(10)} ${set.length === 0 ? `no key; set ${keys.join(" or ")}` : `${set.join(", ")} set`}`);
  }
  lines.push(line`    default model: ${usual ?? "none; set --model or CAISSON_MODEL"}`);
  if (modelCheck === null) lines.push(dim("    --model NAME tests whether a model answers"));
  else if (modelCheck.answers) lines.push(line`  ${good("✓")} ${modelCheck.model} answered after ${showDuration(modelCheck.durationMs)}`);
  else lines.push(line`  ${bad("✗")} ${modelCheck.model}: ${modelCheck.problem ?? "no answer"}`);
  if (modelCheck?.fix !== undefined) lines.push(line`      fix: ${modelCheck.fix}`);
  return lines;
}

/** Shows whether a runtime works, its problems with their fixes, and what it can enforce. */
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

/** Lists a sandbox's default limits. */
function byDefault({ limits }: Capabilities): string {
  const { cpus, memoryBytes, pids, tmpBytes } = defaultLimits;
  return [
    ...(limits.cpus ? [`${cpus} cpus`] : []),
    ...(limits.memoryBytes ? [`${showBytes(memoryBytes)} of memory`] : []),
    ...(limits.pids ? [`${pids} processes`] : []),
    `${showBytes(tmpBytes)} in /tmp`,
    "commands are stopped before the machine's disk is full",
  ].join(", ");
}

const limitNames: Readonly<Record<string, string>> = { cpus: "cpu", memoryBytes: "memory", pids: "processes", diskBytes: "disk" };

/** Parses requirements such as `sensitive,offline,language=python`. Throws `invalid`. */
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

async function recommend(context: CliContext, args: ParsedArguments, needs: TaskNeeds): Promise<number> {
  const choice = await context.station.machine.choose(needs);
  if (args.flag("json")) await context.stdout.printJson(choice);
  else if (choice === null) await context.stdout.print(line`No runtime here suits this task; \`caisson doctor\` shows what you can fix.`);
  else
    await context.stdout.print([
      line`--runtime ${choice.runtime}, template ${choice.template}`,
      ...choice.reasons.map((reason) => line`  ${reason}`),
    ]);
  return choice === null ? 1 : 0;
}
