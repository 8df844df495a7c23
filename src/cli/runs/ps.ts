import type { ListRuns, RunList, RunView } from "../../contract/run-verbs.ts";
import type { Unapplied } from "../../contract/session-verbs.ts";
import { defined } from "../../lib/defined.ts";
import { showDuration } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { listFrom } from "../options/list-asked.ts";
import { tellDamaged } from "../sessions/session-commands.ts";
import { dim, line } from "../terminal/line.ts";
import { cutToWidth, displayWidth, visibleText } from "../terminal/plain-text.ts";
import { shortPath } from "../terminal/short-path.ts";
import { table } from "../terminal/table.ts";
import { placeText } from "./queue-commands.ts";

/** Runs that are shown at most; what is left out is counted. */
const SHOWN_MAX = 1000;
const ENDED_SHOWN = 10;
/** Runs of each kind that a program is given; past these it says so. */
const LISTED_MAX = 100_000;
/** Sessions that are looked at for what is not applied; of older ones it is not said. */
const LOOKED_AT_MAX = 100;

/** `caisson ps`: the runs of this folder; with `--all`, of every folder. */
export async function ps(context: CliContext, given: ParsedArguments): Promise<number> {
  const { runs } = context.station;
  const all = given.flag("all");
  const asked = defined({ ...listFrom(given), agent: given.option("agent"), model: given.option("model"), text: given.option("text") });
  const here = { ...(all ? {} : { folder: context.cwd }), ...asked };
  // For a program there is no first screen: it gets all of them.
  const list = all && given.flag("json") ? (request: ListRuns) => everyPage(runs, request) : (request: ListRuns) => runs.list(request);
  const open = await list({ state: "open", limit: SHOWN_MAX, ...here });
  const ended = await list({ state: "ended", limit: all ? SHOWN_MAX : ENDED_SHOWN, ...here });
  const shown = [...open.runs, ...ended.runs];
  if (all) shown.sort((a, b) => (a.updatedAt === b.updatedAt ? 0 : a.updatedAt < b.updatedAt ? 1 : -1));
  const unapplied = await unappliedOf(context, shown);
  const rows = shown.map((run) => rowOf(run, unapplied.get(run.session) ?? null));
  const leftOut = leftOutText({ open, ...(all && { ended }) });
  if (leftOut !== null) await context.stderr.print(line`caisson: ${leftOut}`);
  // Their runs are of no folder that is known.
  await tellDamaged(context, (await context.station.sessions.list({ limit: 1 })).damaged);
  if (given.flag("json")) {
    await context.stdout.printJson(rows);
    return 0;
  }
  const columns = context.stdout.isTerminal ? context.stdout.size().cols : Number.POSITIVE_INFINITY;
  if (rows.length > 0) await context.stdout.print(table(fittedRows({ columns, home: context.home, withFolder: all }, rows)));
  await tellInterrupted(context, rows);
  if (Object.keys(asked).length > 0) {
    if (rows.length === 0) await context.stdout.print(line`No run is like that${all ? "" : " here; --all looks everywhere"}.`);
    return 0;
  }
  if (rows.length === 0 && all) await context.stdout.print(line`No run yet. Start one: caisson run "fix the failing test"`);
  if (!all) await tellElsewhere(context, { here: counted([open, ended]) });
  return 0;
}

/** Page after page. A run that changes meanwhile moves to the front, and is there once. */
export async function everyPage(runs: Pick<CliContext["station"]["runs"], "list">, request: ListRuns): Promise<RunList> {
  const found = new Map<string, RunView>();
  let page = await runs.list(request);
  for (const run of page.runs) found.set(run.run, run);
  while (page.next !== null && found.size < LISTED_MAX) {
    page = await runs.list({ ...request, cursor: page.next });
    for (const run of page.runs) found.set(run.run, run);
  }
  const isCut = page.next !== null;
  return { ...page, runs: [...found.values()], total: isCut ? Math.max(page.total, found.size + 1) : found.size, totalIsMinimum: isCut };
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
/** What a narrow terminal does without, the least needed first. A name is cut last: it is what people type. */
const SPARED = ["COST", "STEPS", "AGENT"];
const NAME_COLUMNS_MAX = 24;
const AGENT_COLUMNS_MAX = 16;
const FOLDER_COLUMNS_MIN = 8;
const TASK_COLUMNS = { min: 4, wanted: 24, max: 60 };

interface Room {
  columns: number;
  home: string;
  /** False where all rows have the same folder. */
  withFolder: boolean;
}

/**
 * Rows that fit the terminal: the folder and the task share what the other columns leave. Into a pipe no column is left
 * out.
 */
function fittedRows({ columns, home, withFolder }: Room, rows: readonly Row[]): string[][] {
  const all = [HEADINGS, ...rows.map(cellsOf)];
  const shortNames = all.map((cells) => cells.map((cell, at) => (HEADINGS[at] === "NAME" ? cutToWidth(cell, NAME_COLUMNS_MAX) : cell)));
  const without = (cells: string[][], spared: number) =>
    cells.map((row) => row.filter((_, at) => !SPARED.slice(0, spared).includes(HEADINGS[at] ?? "")));
  const layouts = [...SPARED.keys(), SPARED.length].map((spared) => without(all, spared)).concat([without(shortNames, SPARED.length)]);
  const leftBy = (cells: string[][]) => columns - widthOf(cells) - (withFolder ? 2 : 0);
  const wanted = TASK_COLUMNS.wanted + (withFolder ? FOLDER_COLUMNS_MIN : 0);
  const cells = layouts.find((each) => leftBy(each) >= wanted) ?? (layouts.at(-1) as string[][]);
  const left = leftBy(cells);
  const tasks = rows.map((row) => cutToWidth(visibleText(row.task.split("\n")[0] ?? ""), TASK_COLUMNS.max));
  const folderMax = Math.max(FOLDER_COLUMNS_MIN, left - Math.min(TASK_COLUMNS.wanted, widest(tasks)));
  const folders = rows.map(({ folder }) => (folder === null ? "–" : shortPath(folder, { home, columns: folderMax })));
  const taskMax = Math.max(TASK_COLUMNS.min, left - (withFolder ? widest(["FOLDER", ...folders]) : 0));
  const shownTasks = ["TASK", ...tasks.map((task) => cutToWidth(task, taskMax))];
  const shownFolders = withFolder ? ["FOLDER", ...folders] : [];
  return cells.map((each, at) => [...each, ...shownFolders.slice(at, at + 1), shownTasks[at] ?? ""]);
}

const widthOf = (cells: readonly string[][]): number =>
  (cells[0] ?? []).map((_, at) => widest(cells.map((row) => row[at] ?? "")) + 2).reduce((sum, width) => sum + width, 0);

const widest = (texts: readonly string[]): number => texts.reduce((most, text) => Math.max(most, displayWidth(text)), 0);

function cellsOf(row: Row): string[] {
  return [
    row.run,
    row.name ?? "–",
    cutToWidth(row.agent, AGENT_COLUMNS_MAX),
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

/** How many there are, and whether there may be more. */
interface Count {
  total: number;
  isMinimum: boolean;
}
type Counted = Pick<RunList, "total" | "totalIsMinimum">;

const counted = (lists: readonly Counted[]): Count => ({
  total: lists.reduce((sum, { total }) => sum + total, 0),
  isMinimum: lists.some(({ totalIsMinimum }) => totalIsMinimum),
});
const orMore = ({ total, isMinimum }: Count): string => `${total}${isMinimum ? " or more" : ""}`;

async function tellElsewhere(context: CliContext, { here }: { here: Count }): Promise<void> {
  const all = counted([await context.station.runs.list({ limit: 1 })]);
  if (here.total === 0 && all.total === 0) {
    await context.stdout.print(line`No run yet. Start one: caisson run "fix the failing test"`);
    return;
  }
  if (here.total === 0) await context.stdout.print(line`No run works on this folder.`);
  const elsewhere = elsewhereText({ all, here });
  if (elsewhere !== null) await context.stdout.print(dim(elsewhere));
}

/** Null where there are none. Of two counts that are both minimums nothing follows but that there may be more. */
export function elsewhereText({ all, here }: { all: Count; here: Count }): string | null {
  const total = all.total - here.total;
  if (all.isMinimum && (here.isMinimum || total <= 0)) return "there may be more elsewhere: caisson ps --all";
  if (total <= 0) return null;
  const count = { total, isMinimum: all.isMinimum };
  return `${orMore(count)} ${total === 1 && !count.isMinimum ? "run" : "runs"} elsewhere: caisson ps --all`;
}

type Listed = Counted & Pick<RunList, "runs">;

/** What of each kind is not shown; null where all is. */
export function leftOutText({ open, ended }: { open: Listed; ended?: Listed }): string | null {
  const kinds = [
    { list: open, text: "that are not over" },
    { list: ended, text: "that have ended" },
  ];
  const parts = kinds.flatMap(({ list, text }) => {
    const total = list === undefined ? 0 : list.total - list.runs.length;
    if (list === undefined || (total <= 0 && !list.totalIsMinimum)) return [];
    return [`${total <= 0 ? "some" : orMore({ total, isMinimum: list.totalIsMinimum })} ${text}`];
  });
  return parts.length === 0 ? null : `the newest ${SHOWN_MAX} of each kind are shown; older ones are not: ${parts.join(", ")}`;
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
