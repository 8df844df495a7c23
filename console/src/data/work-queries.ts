import { type QueryClient, useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useRef } from "react";
import type { Client } from "../../../src/client/connect.ts";
import { useEvents, useLiveState } from "./live.tsx";
import { useStation } from "./station.tsx";
import { itemOf, type WorkItem, type WorkKind, workKinds } from "./work-item.ts";

/** The most entries per kind. Older ones are only on the command line. */
const ITEMS_MAX = 1_000;
/** A busy workflow emits events in bursts. We refetch the list once per burst. */
const TOGETHER_MS = 500;

export const workKeys = {
  all: ["work"] as const,
  of: (kind: WorkKind, id: string) => [kind, id] as const,
};

/** Returns workflows, specs, ships, merges and best-ofs together, last changed first, kept up to date by events. */
export function useWork() {
  const station = useStation();
  return useQuery({ queryKey: workKeys.all, queryFn: ({ signal }) => readWork(station, signal) });
}

async function readWork(station: Client, signal: AbortSignal): Promise<WorkItem[]> {
  const lists = await Promise.all(workKinds.map((kind) => station[`${kind}s`].list({ limit: ITEMS_MAX }, { signal })));
  return lists
    .flatMap(({ items }, at) => items.map((view) => itemOf[workKinds[at] as WorkKind](view as never)))
    .sort((one, other) => (one.updatedAt < other.updatedAt ? 1 : -1));
}

/** Refetches work after its events, in the list and individually. Used once for the whole page. */
export function useWorkKeptUp(): void {
  const queries = useQueryClient();
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const changed = useRef(new Map<string, WorkKind>());
  const live = useLiveState();
  useEffect(() => {
    // Refetches on connect, because we missed the events before the stream started.
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
          for (const [each, of] of changed.current) void queries.invalidateQueries({ queryKey: workKeys.of(of, each) });
          changed.current.clear();
          lookAtWorkAgain(queries);
        }, TOGETHER_MS);
      },
      [queries],
    ),
  );
}

/** Refetches the list after a change to an entry. */
export function lookAtWorkAgain(queries: QueryClient): void {
  void queries.invalidateQueries({ queryKey: workKeys.all });
}
