import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useCallback, useEffect, useRef } from "react";
import type { RunView } from "../../../../../src/contract/run/run-verbs.ts";
import { useEvents } from "../../../data/live.tsx";
import { useStation } from "../../../data/station.tsx";

const KEY = "run-timeline";
/** Events arrive in bursts. We refetch the timeline once per burst. */
const TOGETHER_MS = 500;
/** Events that change the steps of a run, or what its relatives show. */
const CHANGING: ReadonlySet<string> = new Set(["step.ended", "run.forked", "run.rewound", "run.ended", "run.reopened"]);

/** Returns the steps of a run and its family, kept up to date by events. */
export function useRunTimeline(view: Pick<RunView, "run">) {
  const station = useStation();
  const queries = useQueryClient();
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  useEvents(
    useCallback(
      ({ entity, event }) => {
        if (entity.kind !== "run" || (event !== null && !CHANGING.has(event.type))) return;
        clearTimeout(timer.current);
        timer.current = setTimeout(() => void queries.invalidateQueries({ queryKey: [KEY] }), TOGETHER_MS);
      },
      [queries],
    ),
  );
  return useQuery({
    queryKey: [KEY, view.run],
    queryFn: ({ signal }) => station.runs.timeline(view.run, { signal }),
    staleTime: 0,
    retry: false,
    placeholderData: (before) => before,
  });
}
