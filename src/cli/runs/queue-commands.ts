import { CaissonError } from "../../contract/error/error.ts";
import { Priority, type RunQueueView } from "../../contract/run/run-queue.ts";
import type { RunView } from "../../contract/run/run-verbs.ts";
import { durationFrom, showDuration } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { dim, line } from "../terminal/line.ts";
import { cutToWidth, visibleText } from "../terminal/plain-text.ts";
import { table } from "../terminal/table.ts";
import { isUndriven } from "./follow-run.ts";

const TASK_COLUMNS = 40;
/** The maximum number of runs that `adopt --all` adopts. */
const ADOPTED_MAX = 1000;
const words: Readonly<Record<string, number>> = { low: -50, normal: 0, high: 50 };

/** `caisson queue` */
export async function queue(context: CliContext, args: ParsedArguments): Promise<number> {
  const view = await context.station.runs.queue();
  if (args.flag("json")) {
    await context.stdout.printJson(view);
    return 0;
  }
  if (view.runs.length > 0) await context.stdout.print(table([HEADINGS, ...view.runs.map(cellsOf)]));
  if (view.total > view.runs.length) await context.stdout.print(dim(`and ${view.total - view.runs.length} more`));
  await context.stdout.print(dim(workText(view)));
  return 0;
}

const HEADINGS = ["#", "RUN", "OWNER", "PRIORITY", "WAITS", "TASK", "FOR"];

function cellsOf({ position, run, name, owner, priority, since, title, why }: RunQueueView["runs"][number]): string[] {
  const task = cutToWidth(visibleText(title.split("\n")[0] ?? ""), TASK_COLUMNS);
  return [String(position ?? "–"), name ?? run, owner, String(priority), showDuration(Date.now() - Date.parse(since)), task, why];
}

function workText({ atWork, total }: RunQueueView): string {
  const waiting = total === 0 ? "nothing waits" : `${total} wait${total === 1 ? "s" : ""}`;
  if (atWork === null) return total === 0 ? "nothing waits" : `${waiting} for a station; start one: caisson up`;
  return `${waiting}; ${atWork.runs} of at most ${atWork.runsMax} runs at work${atWork.draining ? "; the station is shutting down" : ""}`;
}

/** `caisson prioritize RUN PRIORITY` */
export async function prioritize(context: CliContext, args: ParsedArguments): Promise<number> {
  const [run = "", text = ""] = args.positionals;
  const by = context.variable("USER") ?? "user";
  const view = await context.station.runs.prioritize(run, { priority: priorityFrom("PRIORITY", text), by });
  await (args.flag("json") ? context.stdout.printJson(view) : context.stdout.print(line`${placeText(view)}`));
  return 0;
}

/** `caisson adopt RUN…`, `caisson adopt --all` */
export async function adopt(context: CliContext, args: ParsedArguments): Promise<number> {
  const { runs } = context.station;
  const all = args.flag("all");
  if (all === args.positionals.length > 0)
    throw new CaissonError("invalid", "name the runs, or use --all", { hint: "Run `caisson ps --all` to list them." });
  const left = all
    ? (await runs.list({ state: "open", parent: null, limit: ADOPTED_MAX })).runs.filter(isUndriven).map(({ run }) => run)
    : [];
  const by = context.variable("USER") ?? "user";
  const adopted: RunView[] = [];
  for (const run of all ? left : args.positionals) adopted.push(await runs.adopt(run, { by }));
  if (args.flag("json")) await context.stdout.printJson(adopted);
  else for (const view of adopted) await context.stdout.print(line`${view.run} ${placeText(view)}`);
  if (adopted.length === 0 && !args.flag("json")) await context.stderr.print(line`caisson: no run was interrupted`);
  return 0;
}

/** Prints that a run is queued, and what it waits for. */
export async function tellQueued(context: CliContext, view: RunView): Promise<void> {
  if (view.queue === null || view.queue.waitsFor === "nothing") return;
  await context.stderr.print(line`caisson: ${view.run} waits: ${view.queue.why}`);
}

/** Describes a run's place in the queue in a word or two. */
export function placeText({ status, queue: place }: Pick<RunView, "status" | "queue">): string {
  if (place === null) return status;
  if (place.waitsFor === "time") return `queued until ${place.startAt}`;
  if (place.position === null) return place.waitsFor === "nothing" ? "queued" : `queued: ${place.waitsFor}`;
  return place.position === 1 ? "queued: next" : `queued behind ${place.position - 1}`;
}

/** Parses `low`, `normal`, `high`, or a number from -100 to 100. Throws `invalid`, naming the option. */
export function priorityFrom(option: string, text: string): number {
  const parsed = Priority.safeParse(words[text] ?? (/^-?\d{1,3}$/.test(text) ? Number(text) : null));
  if (parsed.success) return parsed.data;
  throw new CaissonError("invalid", `${option} ${JSON.stringify(text)} is not a priority`, {
    hint: "Use low, normal, high, or a number from -100 to 100. Higher priorities run first.",
  });
}

/** Parses a duration from now, such as `2h`, or a point in time. Throws `invalid`. */
export function startAtFrom(text: string): string {
  const inMs = /[a-z]$/i.test(text) && !/z$/i.test(text) ? durationFrom(text) : null;
  const atMs = inMs === null ? (/^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN) : Date.now() + inMs;
  if (!Number.isNaN(atMs)) return new Date(atMs).toISOString();
  throw new CaissonError("invalid", `--start-at ${JSON.stringify(text)} is not a time`, {
    hint: "Use a time such as 2026-01-31T22:00 or 2026-01-31T22:00Z, or a duration from now such as 2h.",
  });
}
