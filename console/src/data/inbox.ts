import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useRef } from "react";
import type { InboxItem } from "../../../src/contract/inbox/inbox-verbs.ts";
import { useEvents, useLiveState } from "./live.tsx";
import { useStation } from "./station.tsx";

/** Events arrive in bursts. We refetch the inbox once per burst. */
const TOGETHER_MS = 250;
const key = ["inbox"] as const;

/**
 * Returns the workflows, specs, ships, merges, best-ofs and sandboxes that wait for a person. Run views contain the
 * questions of runs.
 */
export function useThingsAsking() {
  const station = useStation();
  return useQuery({
    queryKey: key,
    queryFn: async ({ signal }): Promise<InboxItem[]> => (await station.inbox.list({ signal })).items.filter(({ of }) => of.kind !== "run"),
  });
}

/** Refetches the inbox after events. Used once for the whole page. */
export function useInboxKeptUp(): void {
  const queries = useQueryClient();
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const live = useLiveState();
  // Refetches on connect, because we missed the events between the first request and the start of the stream.
  useEffect(() => {
    if (live === "live") void queries.invalidateQueries({ queryKey: key });
  }, [live, queries]);
  useEvents(
    useCallback(
      ({ entity, event }) => {
        if (entity.kind === "run") return;
        if (entity.kind === "sandbox" && event?.type !== "sandbox.ended" && event?.type.startsWith("health.") !== true) return;
        timer.current ??= setTimeout(() => {
          timer.current = undefined;
          void queries.invalidateQueries({ queryKey: key });
        }, TOGETHER_MS);
      },
      [queries],
    ),
  );
}
