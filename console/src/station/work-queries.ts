import { type QueryClient, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useRef } from "react";
import type { Client } from "../../../src/client/connect.ts";
import { useEvents, useLiveState } from "./live.tsx";
import { useStation } from "./station.tsx";
import { drivenItem, shipItem, specItem, type WorkItem, type WorkKind, workKinds } from "./work-item.ts";

/** Of each kind; beyond them, the command line finds what is asked for. */
const ITEMS_MAX = 1_000;
/** A busy workflow has events by the dozen: the list is read again once for all of them. */
const TOGETHER_MS = 500;

export const workKeys = {
  all: ["work"] as const,
  workflow: (id: string) => ["workflow", id] as const,
  spec: (id: string) => ["spec", id] as const,
  ship: (id: string) => ["ship", id] as const,
  merge: (id: string) => ["merge", id] as const,
};

/** Workflows, specs, ships and merges together, the last changed first; kept up to date by their events. */
export function useWork() {
  const station = useStation();
  return useQuery({ queryKey: workKeys.all, queryFn: ({ signal }) => readWork(station, signal) });
}

async function readWork(station: Client, signal: AbortSignal): Promise<WorkItem[]> {
  const [limit, given] = [ITEMS_MAX, { signal }];
  const [workflows, specs, ships, merges] = await Promise.all([
    station.workflows.list({ limit }, given),
    station.specs.list({ limit }, given),
    station.ships.list({ limit }, given),
    station.merges.list({ limit }, given),
  ]);
  return [
    ...workflows.items.map((view) => drivenItem("workflow", view)),
    ...specs.items.map(specItem),
    ...ships.items.map(shipItem),
    ...merges.items.map((view) => drivenItem("merge", view)),
  ].sort((one, other) => (one.updatedAt < other.updatedAt ? 1 : -1));
}

/** Looks again at what events were of, in the list and one by one. Once for the whole page. */
export function useWorkKeptUp(): void {
  const queries = useQueryClient();
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const changed = useRef(new Map<string, WorkKind>());
  const live = useLiveState();
  useEffect(() => {
    // What happened before the stream told of anything was told to nobody.
    if (live === "live") for (const kind of ["work", ...workKinds]) void queries.invalidateQueries({ queryKey: [kind] });
  }, [live, queries]);
  useEvents(
    useCallback(
      ({ entity: { kind, id } }) => {
        const known = workKinds.find((each) => each === kind);
        if (known === undefined) return;
        changed.current.set(id, known);
        timer.current ??= setTimeout(() => {
          timer.current = undefined;
          for (const [each, of] of changed.current) void queries.invalidateQueries({ queryKey: workKeys[of](each) });
          changed.current.clear();
          lookAtWorkAgain(queries);
        }, TOGETHER_MS);
      },
      [queries],
    ),
  );
}

/** After something was done to one of them. */
export function lookAtWorkAgain(queries: QueryClient): void {
  void queries.invalidateQueries({ queryKey: workKeys.all });
}
