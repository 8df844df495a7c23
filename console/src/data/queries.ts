import { type QueryClient, queryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useRef } from "react";
import type { Client } from "../../../src/client/connect.ts";
import type { RunView } from "../../../src/contract/run/run-verbs.ts";
import { ignore } from "../../../src/lib/failures.ts";
import { recordActivity } from "./activity.ts";
import { useEvents, useLiveState } from "./live.tsx";
import { useStation } from "./station.tsx";

/** The most runs that the page loads. To find older ones, users need the station's own filters. */
const RUNS_MAX = 50_000;
const RUNS_PER_PAGE = 1_000;
const OPEN_RUNS_MAX = 1_000;
const IDLE_MS_MAX = 500;
/** How many of the latest runs to refetch when the stream connects. */
const CAUGHT_UP_MAX = 200;
/** Events arrive in bursts. We refetch a run once per burst. */
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
    // Comparing ten thousand runs field by field takes longer than drawing the visible ones.
    structuralSharing: false,
    queryFn: async ({ signal, client }) => {
      const first = await station.runs.list({ limit: RUNS_PER_PAGE }, { signal });
      // Shows the newest runs while the others load.
      client.setQueryData<RunsShown>(keys.runs, (cachedRuns) => cachedRuns ?? first);
      const runs = new Map(first.runs.map((view) => [view.run, view]));
      for (let next = first.next; next !== null && runs.size < RUNS_MAX; ) {
        await untilIdle();
        const page = await station.runs.list({ limit: RUNS_PER_PAGE, cursor: next }, { signal });
        // A run that changed in the meantime moved to the front, so we already have its newer view.
        for (const view of page.runs) if (!runs.has(view.run)) runs.set(view.run, view);
        next = page.next;
      }
      return { runs: [...runs.values()], total: Math.max(first.total, runs.size) } satisfies RunsShown;
    },
  });

/** Waits until the browser is idle, because the visible rows come before the rest of a long list. */
function untilIdle(): Promise<void> {
  return new Promise((resolve) => requestIdleCallback(() => resolve(), { timeout: IDLE_MS_MAX }));
}

interface RunsShown {
  runs: RunView[];
  total: number;
}

/** Returns all runs, last changed first, kept up to date by events. */
export function useRuns() {
  return useQuery(runsQuery(useStation()));
}

const openRunsQuery = (station: Client) =>
  queryOptions({
    queryKey: keys.openRuns,
    structuralSharing: false,
    queryFn: async ({ signal }): Promise<RunsShown> => await station.runs.list({ state: "open", limit: OPEN_RUNS_MAX }, { signal }),
  });

/** Returns the runs that have not ended. They are few, so every page has them. */
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
    queryFn: ({ signal }) => station.sandboxes.list({}, { signal }),
    // Sandboxes are created and removed without an event of a run.
    refetchInterval: 5_000,
  });
}

/** Refetches runs after their events, in the lists and individually. Used once for the whole page. */
export function useRunsKeptUp(): void {
  const station = useStation();
  const queries = useQueryClient();
  const changed = useRef(new Set<string>());
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const look = useCallback(async () => {
    timer.current = undefined;
    const ids = [...changed.current];
    changed.current.clear();
    const views = await Promise.all(ids.map((id) => ignore(station.runs.get(id), "the query below shows the error")));
    for (const [index, view] of views.entries()) {
      if (view === undefined) void queries.invalidateQueries({ queryKey: keys.run(ids[index] ?? "") });
      else putRun(queries, view);
    }
    if (!isListOnItsWay(queries)) return;
    // A list that was requested before these events overwrites the new views when it arrives, so we refetch then.
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

/** Resolves when the pending list requests have finished or failed. */
async function listsAsked(queries: QueryClient, station: Client): Promise<void> {
  if (isOnItsWay(queries, keys.openRuns))
    await ignore(queries.fetchQuery(openRunsQuery(station)), "the page that reads it shows the error");
  if (isOnItsWay(queries, keys.runs)) await ignore(queries.fetchQuery(runsQuery(station)), "the page that reads it shows the error");
}

/** Refetches what may have changed between a page's request for runs and the start of the stream. */
async function catchUp(queries: QueryClient, station: Client): Promise<void> {
  void queries.invalidateQueries({ queryKey: ["run"] });
  // Open runs are few, so we refetch them all. Of all runs, only the newest can have changed.
  void queries.invalidateQueries({ queryKey: keys.openRuns });
  if (queries.getQueryState(keys.runs) === undefined) return;
  if (isListOnItsWay(queries)) await listsAsked(queries, station);
  const list = await ignore(station.runs.list({ limit: CAUGHT_UP_MAX }), "the next event updates the list");
  for (const view of list?.runs.reverse() ?? []) putRun(queries, view);
}

/** Replaces the cached view of a run with a newer one. */
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

/** Removes a run from the cache. */
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
