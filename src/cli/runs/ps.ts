import type { ListRuns, RunList, RunView } from "../../contract/run/run-verbs.ts";
import type { Unapplied } from "../../contract/session/session-verbs.ts";
import { defined } from "../../lib/defined.ts";
import { ignore } from "../../lib/failures.ts";
import { showDuration } from "../../lib/quantity.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import { listFrom } from "../options/parse-list-filter.ts";
import { tellDamaged } from "../sessions/session-commands.ts";
import { dim, line } from "../terminal/line.ts";
import { cutToWidth, displayWidth, visibleText } from "../terminal/plain-text.ts";
import { shortPath } from "../terminal/short-path.ts";
import { table } from "../terminal/table.ts";
import { placeText } from "./queue-commands.ts";

/** The maximum number of runs shown of each kind; the others are counted. */
const SHOWN_MAX = 1000;
const ENDED_SHOWN = 10;
/** The maximum number of runs of each kind in JSON output; the command reports if there are more. */
const LISTED_MAX = 100_000;
/** The number of sessions checked for unapplied changes; for older ones the column shows a question mark. */
const LOOKED_AT_MAX = 100;

/** `caisson ps`: lists the runs of this folder, or with `--all` of every folder. */
export async function ps(context: CliContext, args: ParsedArguments): Promise<number> {
  const { runs } = context.station;
  const all = args.flag("all");
  const filter = defined({ ...listFrom(args), agent: args.option("agent"), model: args.option("model"), text: args.option("text") });
  const here = { ...(all ? {} : { folder: context.cwd }), ...filter };
  // JSON output contains all runs, not just the first page.
  const list = all && args.flag("json") ? (request: ListRuns) => everyPage(runs, request) : (request: ListRuns) => runs.list(request);
  const open = await list({ state: "open", limit: SHOWN_MAX, ...here });
  const ended = await list({ state: "ended", limit: all ? SHOWN_MAX : ENDED_SHOWN, ...here });
  const shownRuns = [...open.runs, ...ended.runs];
  if (all) shownRuns.sort((a, b) => (a.updatedAt === b.updatedAt ? 0 : a.updatedAt < b.updatedAt ? 1 : -1));
  const unapplied = await unappliedOf(context, shownRuns);
  const rows = shownRuns.map((run) => rowOf(run, unapplied.get(run.session) ?? null));
  const leftOut = leftOutText({ open, ...(all && { ended }) });
  if (leftOut !== null) await context.stderr.print(line`caisson: ${leftOut}`);
  // Damaged sessions have no known folder, so they are reported for every folder.
  await tellDamaged(context, (await context.station.sessions.list({ limit: 1 })).damaged);
  if (args.flag("json")) {
    await context.stdout.printJson(rows);
    return 0;
  }
  const columns = context.stdout.isTerminal ? context.stdout.size().cols : Number.POSITIVE_INFINITY;
  if (rows.length > 0) await context.stdout.print(table(fittedRows({ columns, home: context.home, withFolder: all }, rows)));
  await tellInterrupted(context, rows);
  if (Object.keys(filter).length > 0) {
    if (rows.length === 0) await context.stdout.print(line`No runs match${all ? "" : " here; --all looks everywhere"}.`);
    return 0;
  }
  if (rows.length === 0 && all) await context.stdout.print(line`No runs yet. Start one: caisson run "fix the failing test"`);
  if (!all) await tellElsewhere(context, { here: countAll([open, ended]) });
  return 0;
}

/** Reads all pages. A run that changes in the meantime moves to the front, but is listed only once. */
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
    forked: run.forked === null ? null : { run: run.forked.run, step: run.forked.step },
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
/** The columns that a narrow terminal drops, least needed first. Names are cut last, because people type them. */
const SPARED = ["COST", "STEPS", "AGENT"];
const NAME_COLUMNS_MAX = 24;
const AGENT_COLUMNS_MAX = 16;
const FOLDER_COLUMNS_MIN = 8;
const TASK_COLUMNS = { min: 4, wanted: 24, max: 60 };

interface Room {
  columns: number;
  home: string;
  /** False if all rows have the same folder. */
  withFolder: boolean;
}

/**
 * Fits the rows to the terminal: the folder and the task share the space that the other columns leave. Drops no columns
 * if the output is not a terminal.
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
    dim(`interrupted: its process has died; continue with: caisson resume ${lost.length === 1 ? lost[0]?.run : "RUN"}`),
  );
}

/** Returns the unapplied changes by session, because all runs of a session share them. */
async function unappliedOf(context: CliContext, runs: readonly RunView[]): Promise<Map<string, Unapplied | null>> {
  const sessions = [...new Set(runs.map(({ session }) => session))].slice(0, LOOKED_AT_MAX);
  const found = new Map<string, Unapplied | null>();
  for (const session of sessions)
    found.set(session, (await ignore(context.station.sessions.unapplied(session), "the other columns are still useful")) ?? null);
  return found;
}

/** A number of runs, which may be a lower bound. */
interface Count {
  total: number;
  isMinimum: boolean;
}
type Counted = Pick<RunList, "total" | "totalIsMinimum">;

const countAll = (lists: readonly Counted[]): Count => ({
  total: lists.reduce((sum, { total }) => sum + total, 0),
  isMinimum: lists.some(({ totalIsMinimum }) => totalIsMinimum),
});
const orMore = ({ total, isMinimum }: Count): string => `${total}${isMinimum ? " or more" : ""}`;

async function tellElsewhere(context: CliContext, { here }: { here: Count }): Promise<void> {
  const all = countAll([await context.station.runs.list({ limit: 1 })]);
  if (here.total === 0 && all.total === 0) {
    await context.stdout.print(line`No runs yet. Start one: caisson run "fix the failing test"`);
    return;
  }
  if (here.total === 0) await context.stdout.print(line`No runs in this folder.`);
  const elsewhere = elsewhereText({ all, here });
  if (elsewhere !== null) await context.stdout.print(dim(elsewhere));
}

/**
 * Returns a line with the number of runs in other folders, or null if all runs are in this folder. If both counts are
 * lower bounds, the line only says that there may be more.
 */
export function elsewhereText({ all, here }: { all: Count; here: Count }): string | null {
  const total = all.total - here.total;
  if (all.isMinimum && (here.isMinimum || total <= 0)) return "there may be more elsewhere: caisson ps --all";
  if (total <= 0) return null;
  const count = { total, isMinimum: all.isMinimum };
  return `${orMore(count)} ${total === 1 && !count.isMinimum ? "run" : "runs"} elsewhere: caisson ps --all`;
}

type Listed = Counted & Pick<RunList, "runs">;

/** Returns a line with the number of hidden runs of each kind, or null if all runs are shown. */
export function leftOutText({ open, ended }: { open: Listed; ended?: Listed }): string | null {
  const kinds = [
    { list: open, text: "that have not ended" },
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
