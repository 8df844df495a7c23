import type { HealthView, Incident } from "../../contract/health/health.ts";
import { showBytes, showDuration } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { bold, dim, type Line, line, lines } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

/** `caisson health`: exits with 1 if something is unhealthy. */
export async function health(context: CliContext, args: ParsedArguments): Promise<number> {
  const report = await context.station.health.list();
  if (args.flag("json")) await context.stdout.printJson(report);
  else {
    if (report.subjects.length > 0) {
      const heading = ["KIND", "ID", "RUN", "HEALTH", "CONDITION", "SINCE", "RESTARTS"];
      await context.stdout.print(table([heading, ...report.subjects.map(rowOf)]));
    } else await context.stdout.print(line`Nothing to check.`);
    if (!report.watched) await context.stdout.print(dim("No station is watching these; start one: caisson up"));
  }
  return report.subjects.some(({ level }) => level === "unresponsive") ? 1 : 0;
}

function rowOf({ subject, run, level, condition, since, restarts, escalated }: HealthView): string[] {
  const age = since === null ? "–" : showDuration(Math.max(0, Date.now() - Date.parse(since)));
  const levelText = escalated ? `${level}, needs a person` : level;
  return [subject.kind, subject.id, subject.kind === "sandbox" ? (run ?? "–") : "–", levelText, condition, age, String(restarts)];
}

/** `caisson incident ls` */
export async function listIncidents(context: CliContext, args: ParsedArguments): Promise<number> {
  const incidents = await context.station.health.incidents();
  if (args.flag("json")) await context.stdout.printJson(incidents);
  else if (incidents.length === 0) await context.stdout.print(line`No incidents: nothing had to be restarted.`);
  else {
    const rows = incidents.map(({ id, at, subject, condition, outcome }) => [id, at, subject.kind, subject.id, condition, outcome ?? "–"]);
    await context.stdout.print(table([["ID", "AT", "KIND", "SUBJECT", "CONDITION", "OUTCOME"], ...rows]));
  }
  return 0;
}

/** `caisson incident show ID` */
export async function showIncident(context: CliContext, args: ParsedArguments): Promise<number> {
  const incident = await context.station.health.incident(args.positionals[0] ?? "");
  if (args.flag("json")) await context.stdout.printJson(incident);
  else for (const each of linesOf(incident)) await context.stdout.print(each);
  return 0;
}

/** Formats an incident. In text from inside, `line` escapes control characters and `lines` removes them. */
function* linesOf(incident: Incident): Generator<Line> {
  const { subject, run, stats, processes, events, output, missing } = incident;
  yield line`${bold(incident.id)} ${incident.at}`;
  yield line`${incident.why}`;
  yield line`subject   ${subject.kind} ${subject.id}${run === null ? "" : `, run ${run}`}`;
  yield line`condition ${incident.condition}`;
  yield line`outcome   ${incident.outcome ?? "unknown: still in progress, or the station died during it"}`;
  if (stats !== null) yield line`stats     ${JSON.stringify(stats)}`;
  yield line``;
  yield bold(`Processes (${processes.length})`);
  for (const { pid, state, command, cpuMs, memoryBytes } of processes)
    yield line`  ${String(pid).padStart(8)} ${state} ${showDuration(cpuMs).padStart(7)} ${showBytes(memoryBytes).padStart(10)}  ${command}`;
  yield line``;
  yield bold(`Last events (${events.length})`);
  for (const { seq, at, type, data } of events) yield line`  ${seq} ${dim(at)} ${type} ${JSON.stringify(data).slice(0, 200)}`;
  for (const { call, text } of output) {
    yield line``;
    yield bold(`Output of ${call}`);
    yield* lines(text);
  }
  for (const each of missing) yield dim(`not stored: ${each}`);
}
