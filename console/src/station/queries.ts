import { type QueryClient, queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useRef } from "react";
import type { Client } from "../../../src/client/connect.ts";
import type { RunView } from "../../../src/contract/run-verbs.ts";
import { recordActivity } from "./activity.ts";
import { useEvents, useLiveState } from "./live.tsx";
import { useStation } from "./station.tsx";

/** As many as the page holds; beyond them, the station's own filters find what is asked for. */
const RUNS_MAX = 50_000;
const RUNS_PER_PAGE = 1_000;
const OPEN_RUNS_MAX = 1_000;
const IDLE_MS_MAX = 500;
/** Runs that may have changed while a page was on its way to the stream. */
const CAUGHT_UP_MAX = 200;
/** Events of a busy run come by the dozen: it is looked at again once for all of them. */
const TOGETHER_MS = 250;

export const keys = {
  runs: ["runs"] as const,
  openRuns: ["open-runs"] as const,
  run: (id: string) => ["run", id] as const,
  sandboxes: ["sandboxes"] as const,
  sandbox: (id: string) => ["sandbox", id] as const,
};

export const runsQuery = (station: Client) =>
  queryOptions({
    queryKey: keys.runs,
    // To compare ten thousand runs field by field takes longer than to draw those that are in view.
    structuralSharing: false,
    queryFn: async ({ signal, client }) => {
      const first = await station.runs.list({ limit: RUNS_PER_PAGE }, { signal });
      // The newest are shown while the others come.
      client.setQueryData<RunsShown>(keys.runs, (shown) => shown ?? first);
      const runs = new Map(first.runs.map((view) => [view.run, view]));
      for (let next = first.next; next !== null && runs.size < RUNS_MAX; ) {
        await untilIdle();
        const page = await station.runs.list({ limit: RUNS_PER_PAGE, cursor: next }, { signal });
        // One that changed meanwhile has moved to the front, and was seen there.
        for (const view of page.runs) if (!runs.has(view.run)) runs.set(view.run, view);
        next = page.next;
      }
      return { runs: [...runs.values()], total: Math.max(first.total, runs.size) } satisfies RunsShown;
    },
  });

/** What is in front of the reader comes before the rest of a long list. */
function untilIdle(): Promise<void> {
  return new Promise((resolve) => requestIdleCallback(() => resolve(), { timeout: IDLE_MS_MAX }));
}

interface RunsShown {
  runs: RunView[];
  total: number;
}

/** All runs, the last changed first, kept up to date by their events. */
export function useRuns() {
  return useQuery(runsQuery(useStation()));
}

const openRunsQuery = (station: Client) =>
  queryOptions({
    queryKey: keys.openRuns,
    structuralSharing: false,
    queryFn: async ({ signal }): Promise<RunsShown> => await station.runs.list({ state: "open", limit: OPEN_RUNS_MAX }, { signal }),
  });

/** The runs that are not over, on every page: few, however many there were. */
export function useOpenRuns() {
  return useQuery(openRunsQuery(useStation()));
}

export function useRun(id: string) {
  const station = useStation();
  return useQuery({ queryKey: keys.run(id), queryFn: ({ signal }) => station.runs.get(id, { signal }) });
}

export function useSandboxes() {
  const station = useStation();
  return useQuery({
    queryKey: keys.sandboxes,
    queryFn: ({ signal }) => station.sandboxes.list({ signal }),
    // Sandboxes come and go without an event of a run.
    refetchInterval: 5_000,
  });
}

/** Looks again at the runs that events were of, in the list and one by one. Once for the whole page. */
export function useRunsKeptUp(): void {
  const station = useStation();
  const queries = useQueryClient();
  const changed = useRef(new Set<string>());
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const look = useCallback(async () => {
    timer.current = undefined;
    const ids = [...changed.current];
    changed.current.clear();
    const views = await Promise.all(ids.map((id) => station.runs.get(id).catch(() => null)));
    for (const [index, view] of views.entries()) {
      if (view === null) void queries.invalidateQueries({ queryKey: keys.run(ids[index] ?? "") });
      else putRun(queries, view);
    }
    if (!isListOnItsWay(queries)) return;
    // It may have been asked for before these events, and will take the place of what was put there: look again then.
    await listsAsked(queries, station);
    for (const id of ids) changed.current.add(id);
    timer.current ??= setTimeout(() => void look(), TOGETHER_MS);
  }, [station, queries]);
  const live = useLiveState();
  useEffect(() => {
    if (live === "live") void catchUp(queries, station);
  }, [live, queries, station]);
  useEvents(
    useCallback(
      ({ entity }) => {
        if (entity.kind === "run" || entity.kind === "sandbox") recordActivity(entity.id);
        if (entity.kind !== "run") return;
        changed.current.add(entity.id);
        timer.current ??= setTimeout(() => void look(), TOGETHER_MS);
      },
      [look],
    ),
  );
}

const isOnItsWay = (queries: QueryClient, key: readonly string[]) => queries.getQueryState(key)?.fetchStatus === "fetching";
const isListOnItsWay = (queries: QueryClient) => isOnItsWay(queries, keys.runs) || isOnItsWay(queries, keys.openRuns);

/** Resolves when the lists that were asked for are there, or cannot be had. */
async function listsAsked(queries: QueryClient, station: Client): Promise<void> {
  if (isOnItsWay(queries, keys.openRuns)) await queries.fetchQuery(openRunsQuery(station)).catch(() => undefined);
  if (isOnItsWay(queries, keys.runs)) await queries.fetchQuery(runsQuery(station)).catch(() => undefined);
}

/** What happened after a page asked for its runs, and before the stream told of anything, was told to nobody. */
async function catchUp(queries: QueryClient, station: Client): Promise<void> {
  void queries.invalidateQueries({ queryKey: ["run"] });
  // Those that are not over are few: they are asked for again. All runs are many, of which only the newest can have changed.
  void queries.invalidateQueries({ queryKey: keys.openRuns });
  if (queries.getQueryState(keys.runs) === undefined) return;
  if (isListOnItsWay(queries)) await listsAsked(queries, station);
  const { runs } = await station.runs.list({ limit: CAUGHT_UP_MAX }).catch(() => ({ runs: [] }));
  for (const view of runs.reverse()) putRun(queries, view);
}

/** Puts a newer view of a run in the place of the one that is shown. */
export function putRun(queries: QueryClient, view: RunView): void {
  queries.setQueryData(keys.run(view.run), view);
  queries.setQueryData(keys.runs, (list: RunsShown | undefined) => {
    if (list === undefined) return list;
    const others = list.runs.filter(({ run }) => run !== view.run);
    return { ...list, runs: [view, ...others], total: list.total + (others.length === list.runs.length ? 1 : 0) };
  });
  queries.setQueryData(keys.openRuns, (list: RunsShown | undefined) => {
    if (list === undefined) return list;
    const others = list.runs.filter(({ run }) => run !== view.run);
    const runs = view.status === "ended" ? others : [view, ...others];
    return { runs, total: runs.length };
  });
}

/** Of one that was removed. */
export function dropRun(queries: QueryClient, id: string): void {
  queries.removeQueries({ queryKey: keys.run(id) });
  for (const key of [keys.runs, keys.openRuns]) {
    queries.setQueryData(key, (list: RunsShown | undefined) => {
      if (list === undefined) return list;
      const runs = list.runs.filter(({ run }) => run !== id);
      return { ...list, runs, total: list.total - (list.runs.length - runs.length) };
    });
  }
}
