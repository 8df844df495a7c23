import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useRef } from "react";
import type { InboxItem } from "../../../src/contract/inbox-verbs.ts";
import { useEvents, useLiveState } from "./live.tsx";
import { useStation } from "./station.tsx";

/** Events of a busy thing come by the dozen: the inbox is looked at again once for all of them. */
const TOGETHER_MS = 250;
const key = ["inbox"] as const;

/** What waits for a person besides runs, whose questions are in their views: workflows, specs, ships, merges and sandboxes. */
export function useThingsAsking() {
  const station = useStation();
  return useQuery({
    queryKey: key,
    queryFn: async ({ signal }): Promise<InboxItem[]> => (await station.inbox.list({ signal })).items.filter(({ of }) => of.kind !== "run"),
  });
}

/** Looks again when something happened to any of them. Once for the whole page. */
export function useInboxKeptUp(): void {
  const queries = useQueryClient();
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  const live = useLiveState();
  // What happened after the page asked, and before the stream told of anything, was told to nobody.
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
