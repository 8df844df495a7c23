import type { RunView } from "../../contract/run-verbs.ts";
import type { Unapplied } from "../../contract/session-verbs.ts";
import { showDuration } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { dim, line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

/** Runs that are shown at most; what is left out is counted. */
const SHOWN_MAX = 1000;
const ENDED_SHOWN = 10;
/** Sessions that are looked at for what is not applied; of older ones it is not said. */
const LOOKED_AT_MAX = 100;

/** `caisson ps`: the runs of this folder; with `--all`, of every folder. */
export async function ps(context: CliContext, given: ParsedArguments): Promise<number> {
  const { runs } = context.station;
  const all = given.flag("all");
  const here = all ? {} : { folder: context.cwd };
  const open = await runs.list({ state: "open", limit: SHOWN_MAX, ...here });
  const ended = await runs.list({ state: "ended", limit: all ? SHOWN_MAX : ENDED_SHOWN, ...here });
  const shown = [...open.runs, ...ended.runs];
  if (all) shown.sort((a, b) => (a.updatedAt === b.updatedAt ? 0 : a.updatedAt < b.updatedAt ? 1 : -1));
  const unapplied = await unappliedOf(context, shown);
  const rows = shown.map((run) => rowOf(run, unapplied.get(run.session) ?? null));
  await tellLeftOut(context, { open: open.total - open.runs.length, ended: all ? ended.total - ended.runs.length : 0 });
  if (given.flag("json")) {
    await context.stdout.printJson(rows);
    return 0;
  }
  if (rows.length > 0) await context.stdout.print(table([HEADINGS, ...rows.map(cellsOf)]));
  await tellInterrupted(context, rows);
  if (rows.length === 0 && all) await context.stdout.print(line`No run yet. Start one: caisson run "fix the failing test"`);
  if (!all) await tellElsewhere(context, { here: open.total + ended.total });
  return 0;
}

function rowOf(run: RunView, unapplied: Unapplied | null) {
  return {
    run: run.run,
    name: run.name,
    agent: run.agent,
    model: run.model,
    session: run.session,
    folder: run.folder,
    status: statusText(run),
    steps: run.steps,
    costUsd: run.costUsd,
    unappliedFiles: unapplied?.files ?? null,
    unappliedIsMinimum: unapplied?.isMinimum ?? false,
    parent: run.parent?.run ?? null,
    createdAt: run.createdAt,
    updatedAt: run.updatedAt,
    task: run.title,
  };
}

const HEADINGS = ["RUN", "NAME", "AGENT", "STATUS", "STEPS", "COST", "AGE", "UNAPPLIED", "FOLDER", "TASK"];

function cellsOf(row: ReturnType<typeof rowOf>): string[] {
  return [
    row.run,
    row.name ?? "–",
    row.agent,
    row.status,
    String(row.steps),
    row.costUsd === null ? "?" : `$${row.costUsd.toFixed(3)}`,
    showDuration(Date.now() - Date.parse(row.createdAt)),
    filesText(row),
    row.folder ?? "–",
    row.task.split("\n")[0]?.slice(0, 60) ?? "",
  ];
}

function filesText({ unappliedFiles: files, unappliedIsMinimum: isMinimum }: ReturnType<typeof rowOf>): string {
  if (files === null) return "?";
  if (files === 0) return "–";
  return `${files}${isMinimum ? " or more" : ""} ${files === 1 && !isMinimum ? "file" : "files"}`;
}

async function tellInterrupted(context: CliContext, rows: readonly ReturnType<typeof rowOf>[]): Promise<void> {
  const lost = rows.filter(({ status }) => status === "interrupted");
  if (lost.length === 0) return;
  await context.stdout.print(
    dim(`interrupted: nobody drives it; caisson resume ${lost.length === 1 ? lost[0]?.run : "RUN"} goes on with it`),
  );
}

/** By session: what is not applied belongs to all of its runs. */
async function unappliedOf(context: CliContext, shown: readonly RunView[]): Promise<Map<string, Unapplied | null>> {
  const sessions = [...new Set(shown.map(({ session }) => session))].slice(0, LOOKED_AT_MAX);
  const found = new Map<string, Unapplied | null>();
  for (const session of sessions) found.set(session, await context.station.sessions.unapplied(session).catch(() => null));
  return found;
}

async function tellElsewhere(context: CliContext, { here }: { here: number }): Promise<void> {
  const { total } = await context.station.runs.list({ limit: 1 });
  const elsewhere = total - here;
  if (here === 0 && elsewhere === 0) {
    await context.stdout.print(line`No run yet. Start one: caisson run "fix the failing test"`);
    return;
  }
  if (here === 0) await context.stdout.print(line`No run works on this folder.`);
  if (elsewhere > 0) await context.stdout.print(dim(`${elsewhere} ${elsewhere === 1 ? "run" : "runs"} elsewhere: caisson ps --all`));
}

async function tellLeftOut(context: CliContext, left: { open: number; ended: number }): Promise<void> {
  const parts = [left.open > 0 ? `${left.open} that are not over` : "", left.ended > 0 ? `${left.ended} that have ended` : ""].filter(
    Boolean,
  );
  if (parts.length === 0) return;
  await context.stderr.print(line`caisson: the newest ${SHOWN_MAX} of each kind are shown; older ones are not: ${parts.join(", ")}`);
}

function statusText({ status, finish, paused }: RunView): string {
  if (status === "damaged") return status;
  if (finish !== null) return finish;
  if (status === "interrupted") return status;
  if (paused !== null) return `paused: ${paused.why}`;
  return status === "created" ? "interrupted" : status;
}
