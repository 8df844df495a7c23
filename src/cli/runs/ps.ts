import type { RunView } from "../../contract/run-verbs.ts";
import type { Unapplied } from "../../contract/session-verbs.ts";
import { defined } from "../../lib/defined.ts";
import { showDuration } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { listFrom } from "../options/list-asked.ts";
import { dim, line } from "../terminal/line.ts";
import { cutToWidth, displayWidth, visibleText } from "../terminal/plain-text.ts";
import { shortPath } from "../terminal/short-path.ts";
import { table } from "../terminal/table.ts";
import { placeText } from "./queue-commands.ts";

/** Runs that are shown at most; what is left out is counted. */
const SHOWN_MAX = 1000;
const ENDED_SHOWN = 10;
/** Sessions that are looked at for what is not applied; of older ones it is not said. */
const LOOKED_AT_MAX = 100;

/** `caisson ps`: the runs of this folder; with `--all`, of every folder. */
export async function ps(context: CliContext, given: ParsedArguments): Promise<number> {
  const { runs } = context.station;
  const all = given.flag("all");
  const asked = defined({ ...listFrom(given), agent: given.option("agent"), model: given.option("model"), text: given.option("text") });
  const here = { ...(all ? {} : { folder: context.cwd }), ...asked };
  const open = await runs.list({ state: "open", limit: SHOWN_MAX, ...here });
  const ended = await runs.list({ state: "ended", limit: all ? SHOWN_MAX : ENDED_SHOWN, ...here });
  const shown = [...open.runs, ...ended.runs];
  if (all) shown.sort((a, b) => (a.updatedAt === b.updatedAt ? 0 : a.updatedAt < b.updatedAt ? 1 : -1));
  const unapplied = await unappliedOf(context, shown);
  const rows = shown.map((run) => rowOf(run, unapplied.get(run.session) ?? null));
  const isMinimum = open.totalIsMinimum || ended.totalIsMinimum;
  await tellLeftOut(context, { open: open.total - open.runs.length, ended: all ? ended.total - ended.runs.length : 0, isMinimum });
  if (given.flag("json")) {
    await context.stdout.printJson(rows);
    return 0;
  }
  if (rows.length > 0) await context.stdout.print(table(fittedRows(context, rows)));
  await tellInterrupted(context, rows);
  if (Object.keys(asked).length > 0) {
    if (rows.length === 0) await context.stdout.print(line`No run is like that${all ? "" : " here; --all looks everywhere"}.`);
    return 0;
  }
  if (rows.length === 0 && all) await context.stdout.print(line`No run yet. Start one: caisson run "fix the failing test"`);
  if (!all) await tellElsewhere(context, { here: open.total + ended.total });
  return 0;
}

function rowOf(run: RunView, unapplied: Unapplied | null) {
  return {
    run: run.run,
    name: run.name,
    owner: run.owner,
    labels: run.labels,
    agent: run.agent,
    model: run.model,
    session: run.session,
    folder: run.folder,
    status: statusText(run),
    health: run.health,
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

type Row = ReturnType<typeof rowOf>;

const HEADINGS = ["RUN", "NAME", "AGENT", "STATUS", "STEPS", "COST", "AGE", "UNAPPLIED"];
/** Where there is no terminal to ask. */
const COLUMNS = 100;
/** Of names and agents, which can be long: as they fit. */
const NAME_COLUMNS_MAX = [24, 16, 8] as const;
const FOLDER_COLUMNS_MIN = 8;
/** Of folder and task together. */
const LAST_COLUMNS_WANTED = 30;
const TASK_COLUMNS = { min: 4, wanted: 24, max: 60 };

/** Rows that fit the terminal: what is left beside the other columns is the folder's and the task's. */
function fittedRows({ stdout, home }: CliContext, rows: readonly Row[]): string[][] {
  const columns = stdout.isTerminal ? stdout.size().cols : COLUMNS;
  const fitted = NAME_COLUMNS_MAX.map((nameMax) => {
    const cells = [HEADINGS, ...rows.map((row) => cellsOf(row, nameMax))];
    const taken = HEADINGS.map((_, at) => widest(cells.map((each) => each[at] ?? "")) + 2).reduce((sum, width) => sum + width, 0);
    return { cells, left: columns - taken - 2 };
  });
  const { cells, left } = fitted.find((each) => each.left >= LAST_COLUMNS_WANTED) ?? (fitted.at(-1) as (typeof fitted)[number]);
  const tasks = rows.map((row) => cutToWidth(visibleText(row.task.split("\n")[0] ?? ""), TASK_COLUMNS.max));
  const folderMax = Math.max(FOLDER_COLUMNS_MIN, left - Math.min(TASK_COLUMNS.wanted, widest(tasks)));
  const folders = rows.map(({ folder }) => (folder === null ? "–" : shortPath(folder, { home, columns: folderMax })));
  const taskMax = Math.max(TASK_COLUMNS.min, left - widest(["FOLDER", ...folders]));
  const last = [["FOLDER", "TASK"], ...folders.map((folder, at) => [folder, cutToWidth(tasks[at] ?? "", taskMax)])];
  return cells.map((each, at) => [...each, ...(last[at] ?? [])]);
}

const widest = (texts: readonly string[]): number => texts.reduce((most, text) => Math.max(most, displayWidth(text)), 0);

function cellsOf(row: Row, nameMax: number): string[] {
  return [
    row.run,
    cutToWidth(row.name ?? "–", nameMax),
    cutToWidth(row.agent, nameMax),
    row.status,
    String(row.steps),
    row.costUsd === null ? "?" : `$${row.costUsd.toFixed(3)}`,
    showDuration(Date.now() - Date.parse(row.createdAt)),
    filesText(row),
  ];
}

function filesText({ unappliedFiles: files, unappliedIsMinimum: isMinimum }: Row): string {
  if (files === null) return "?";
  if (files === 0) return "–";
  return `${files}${isMinimum ? " or more" : ""} ${files === 1 && !isMinimum ? "file" : "files"}`;
}

async function tellInterrupted(context: CliContext, rows: readonly Row[]): Promise<void> {
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

async function tellLeftOut(context: CliContext, left: { open: number; ended: number; isMinimum: boolean }): Promise<void> {
  const parts = [left.open > 0 ? `${left.open} that are not over` : "", left.ended > 0 ? `${left.ended} that have ended` : ""].filter(
    Boolean,
  );
  if (parts.length === 0) return;
  await context.stderr.print(
    line`caisson: the newest ${SHOWN_MAX} of each kind are shown; older ones are not: ${left.isMinimum ? "at least " : ""}${parts.join(", ")}`,
  );
}

function statusText(run: RunView): string {
  const text = lifeText(run);
  return run.health === "ok" || run.finish !== null ? text : `${text}, ${run.health}`;
}

function lifeText({ status, finish, paused, queue }: RunView): string {
  if (status === "damaged") return status;
  if (finish !== null) return finish;
  if (status === "interrupted") return status;
  if (queue !== null) return placeText({ status, queue });
  if (paused !== null) return `paused: ${paused.why}`;
  return status === "created" ? "interrupted" : status;
}
