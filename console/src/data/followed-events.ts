import { type QueryKey, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { lookAtWorkAgain } from "./work-queries.ts";

/** Events arrive in bursts. We redraw the page and refetch the query once per burst. */
const TOGETHER_MS = 150;
const AGAIN_MS = 2_000;

interface Followed<Event> {
  /** The query to refetch after events. */
  queryKey: QueryKey;
  /** Null until we know what to follow. */
  follow: ((options: { fromSeq: number; signal: AbortSignal }) => AsyncIterable<Event>) | null;
  /** Whether the thing is active. Following restarts when a finished thing continues. */
  isOpen: boolean;
}

/**
 * Returns all events of one thing, each once: first the past ones, then new ones. Another thing needs a new component
 * instance.
 */
export function useFollowedEvents<Event extends { seq: number }>({ queryKey, follow, isOpen }: Followed<Event>): readonly Event[] {
  const queries = useQueryClient();
  const [events, setEvents] = useState<readonly Event[]>([]);
  const lastSeq = useRef(0);
  const latestOptions = useRef({ queryKey, follow });
  latestOptions.current = { queryKey, follow };
  const isKnown = follow !== null;
  // biome-ignore lint/correctness/useExhaustiveDependencies: opening and closing restart it.
  useEffect(() => {
    if (!isKnown) return;
    const ends = new AbortController();
    let fresh: Event[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const show = () => {
      timer = undefined;
      const added = fresh;
      fresh = [];
      setEvents((before) => [...before, ...added]);
      void queries.invalidateQueries({ queryKey: latestOptions.current.queryKey });
      lookAtWorkAgain(queries);
    };
    const take = (event: Event) => {
      if (event.seq <= lastSeq.current) return;
      lastSeq.current = event.seq;
      fresh.push(event);
      timer ??= setTimeout(show, TOGETHER_MS);
    };
    void followOn(ends.signal, take, (signal) => latestOptions.current.follow?.({ fromSeq: lastSeq.current + 1, signal }));
    return () => {
      ends.abort();
      clearTimeout(timer);
      // The next follower refetches events that were received but not shown.
      if (fresh.length > 0) lastSeq.current = (fresh[0]?.seq ?? 1) - 1;
    };
  }, [isKnown, isOpen, queries]);
  return events;
}

/** Follows until the stream ends. Reconnects if the station is unreachable. */
async function followOn<Event>(
  signal: AbortSignal,
  take: (event: Event) => void,
  follow: (signal: AbortSignal) => AsyncIterable<Event> | undefined,
): Promise<void> {
  while (!signal.aborted) {
    try {
      for await (const event of follow(signal) ?? []) {
        if (signal.aborted) return;
        take(event);
      }
      return;
    } catch {
      if (signal.aborted) return;
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }
}
