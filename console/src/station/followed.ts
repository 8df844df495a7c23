import { type QueryKey, useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { lookAtWorkAgain } from "./work-queries.ts";

/** Events come by the dozen: the page is drawn, and the thing looked at again, once for all of them. */
const TOGETHER_MS = 150;
const AGAIN_MS = 2_000;

interface Followed<Event> {
  /** What is looked at again whenever something has happened. */
  queryKey: QueryKey;
  /** Absent while it is not known what to follow. */
  follow: ((options: { fromSeq: number; signal: AbortSignal }) => AsyncIterable<Event>) | null;
  /** One that is over is followed again when it goes on after all. */
  isOpen: boolean;
}

/** The events of one thing from its first, then as they happen, each once. The caller is made anew for another thing. */
export function useFollowed<Event extends { seq: number }>({ queryKey, follow, isOpen }: Followed<Event>): readonly Event[] {
  const queries = useQueryClient();
  const [events, setEvents] = useState<readonly Event[]>([]);
  const lastSeq = useRef(0);
  const given = useRef({ queryKey, follow });
  given.current = { queryKey, follow };
  const isKnown = follow !== null;
  // biome-ignore lint/correctness/useExhaustiveDependencies: whether it is open says when to begin anew.
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
      void queries.invalidateQueries({ queryKey: given.current.queryKey });
      lookAtWorkAgain(queries);
    };
    const take = (event: Event) => {
      if (event.seq <= lastSeq.current) return;
      lastSeq.current = event.seq;
      fresh.push(event);
      timer ??= setTimeout(show, TOGETHER_MS);
    };
    void followOn(ends.signal, take, (signal) => given.current.follow?.({ fromSeq: lastSeq.current + 1, signal }));
    return () => {
      ends.abort();
      clearTimeout(timer);
      // What was taken and not shown comes again with the next follower.
      if (fresh.length > 0) lastSeq.current = (fresh[0]?.seq ?? 1) - 1;
    };
  }, [isKnown, isOpen, queries]);
  return events;
}

/** Until the thing is over; a station that was away is asked again. */
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
