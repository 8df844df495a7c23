import type { RunView } from "../../../../src/contract/run/run-verbs.ts";
import { isTimeBack, type TimeBack, timesBack } from "../../parts/times-back.ts";
import { statusOf } from "./run-status.tsx";

export const runStates = ["active", "waiting", "queued", "done", "failed", "stopped"] as const;
export type RunState = (typeof runStates)[number];
export const sortColumns = ["status", "title", "agent", "runtime", "tokens", "cost", "worked", "updated"] as const;
export type RunColumn = (typeof sortColumns)[number];

/** What the list shows, and how. The page's address contains all of it. */
export interface RunFilter {
  text: string;
  states: readonly RunState[];
  agent: string;
  runtime: string;
  /** `KEY=VALUE`. */
  label: string;
  /** The maximum age of the last change. */
  time: TimeBack | "";
  withSubRuns: boolean;
  sort: RunColumn;
  isAscending: boolean;
}

export const everyRun: RunFilter = {
  text: "",
  states: [],
  agent: "",
  runtime: "",
  label: "",
  time: "",
  withSubRuns: false,
  sort: "updated",
  isAscending: false,
};

export function readFilter(search: string): RunFilter {
  const params = new URLSearchParams(search);
  const requestedStates = (params.get("state") ?? "").split(",");
  const sort = params.get("sort")?.replace(/^-/, "") as RunColumn;
  const isSorted = sortColumns.includes(sort);
  const time = params.get("time") ?? "";
  return {
    text: params.get("q") ?? "",
    states: runStates.filter((state) => requestedStates.includes(state)),
    agent: params.get("agent") ?? "",
    runtime: params.get("runtime") ?? "",
    label: params.get("label") ?? "",
    time: isTimeBack(time) ? time : "",
    withSubRuns: params.get("sub") === "1",
    sort: isSorted ? sort : "updated",
    isAscending: isSorted && !params.get("sort")?.startsWith("-"),
  };
}

/** Formats what `readFilter` reads, without a question mark; empty for all runs. */
export function writeFilter(filter: RunFilter): string {
  const search = new URLSearchParams();
  const put = (key: string, value: string) => value !== "" && search.set(key, value);
  put("q", filter.text);
  put("state", filter.states.join(","));
  put("agent", filter.agent);
  put("runtime", filter.runtime);
  put("label", filter.label);
  put("time", filter.time);
  put("sub", filter.withSubRuns ? "1" : "");
  if (filter.sort !== "updated" || filter.isAscending) put("sort", `${filter.isAscending ? "" : "-"}${filter.sort}`);
  return search.toString();
}

/** Returns the runs that pass the filter, in their given order. */
export function narrowRuns(runs: readonly RunView[], filter: RunFilter, nowMs: number): RunView[] {
  const words = filter.text.toLowerCase().split(/\s+/).filter(Boolean);
  const since = filter.time === "" ? "" : new Date(nowMs - timesBack[filter.time]).toISOString();
  const [labelKey = "", labelValue] = filter.label.split(/=(.*)/s);
  return runs.filter(
    (run) =>
      (filter.withSubRuns || run.parent === null) &&
      (filter.states.length === 0 || filter.states.includes(stateOf(run))) &&
      (filter.agent === "" || run.agent === filter.agent) &&
      (filter.runtime === "" || run.sandbox?.runtime === filter.runtime) &&
      (labelKey === "" || (labelValue === undefined ? Object.hasOwn(run.labels, labelKey) : run.labels[labelKey] === labelValue)) &&
      run.updatedAt >= since &&
      words.every((word) => searchTextOf(run).includes(word)),
  );
}

export function stateOf(run: RunView): RunState {
  if (run.status === "ended") return run.finish === "done" ? "done" : run.finish === "cancelled" ? "stopped" : "failed";
  if (run.status === "damaged" || run.status === "interrupted") return "failed";
  if (run.asked.length > 0 || run.status === "paused") return "waiting";
  return run.status === "queued" ? "queued" : "active";
}

const texts = new WeakMap<RunView, string>();

/** Returns all text that the search box covers, built once per view of a run. */
function searchTextOf(run: RunView): string {
  const known = texts.get(run);
  if (known !== undefined) return known;
  const labels = Object.entries(run.labels).map(([key, value]) => `${key}=${value}`);
  const text = [run.title, run.name ?? "", run.run, run.agent, run.model, run.session, ...labels].join("\n").toLowerCase();
  texts.set(run, text);
  return text;
}

/** Indexes runs for the search, in batches while the browser is idle. */
export function prepareSearch(runs: readonly RunView[]): () => void {
  let at = 0;
  let next = 0;
  const work = (deadline: IdleDeadline) => {
    while (at < runs.length && deadline.timeRemaining() > 1) {
      for (const run of runs.slice(at, at + PREPARED_AT_ONCE)) searchTextOf(run);
      at += PREPARED_AT_ONCE;
    }
    if (at < runs.length) next = requestIdleCallback(work);
  };
  next = requestIdleCallback(work);
  return () => cancelIdleCallback(next);
}

const PREPARED_AT_ONCE = 100;

const values: Record<RunColumn, (run: RunView) => string | number> = {
  status: (run) => statusOf(run).word,
  title: (run) => run.title.toLowerCase(),
  agent: (run) => run.agent,
  runtime: (run) => run.sandbox?.runtime ?? "",
  tokens: (run) => run.usage.inputTokens + run.usage.outputTokens,
  cost: (run) => run.costUsd ?? -1,
  worked: (run) => run.workedMs,
  updated: (run) => run.updatedAt,
};

/** Sorts apart from filtering, so that typing into the search box does not sort again. */
export function sortRuns(runs: readonly RunView[], { sort, isAscending }: Pick<RunFilter, "sort" | "isAscending">): RunView[] {
  const value = values[sort];
  const order = isAscending ? 1 : -1;
  return runs.toSorted((one, other) => {
    const [a, b] = [value(one), value(other)];
    if (a !== b) return a < b ? -order : order;
    return one.run < other.run ? -1 : 1;
  });
}

/** Returns the values that the filters offer. */
export function choicesIn(runs: readonly RunView[]): { agents: string[]; runtimes: string[]; labels: string[] } {
  const [agents, runtimes, labels] = [new Set<string>(), new Set<string>(), new Set<string>()];
  for (const run of runs) {
    agents.add(run.agent);
    if (run.sandbox !== null) runtimes.add(run.sandbox.runtime);
    for (const [key, value] of Object.entries(run.labels)) labels.add(`${key}=${value}`);
  }
  return { agents: [...agents].sort(), runtimes: [...runtimes].sort(), labels: [...labels].sort() };
}
