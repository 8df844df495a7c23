import { useCallback, useEffect, useState, useSyncExternalStore } from "react";
import type { Client } from "../../../../src/client/connect.ts";
import type { StreamedEvent } from "../../../../src/contract/api/streams.ts";
import { ignore } from "../../../../src/lib/failures.ts";
import { useEvents, useLiveState } from "../../data/live.tsx";
import { useStation } from "../../data/station.tsx";
import { emptyTimeline, foldEvent, type NumberedEvent, type Timeline } from "./timeline.ts";

/** Few at first, to show something soon; then many, because each request is a round trip. */
const FIRST_EVENTS = 500;
const MORE_EVENTS = 2_500;
const DRAWN_EVERY_MS = 1_000;

export interface RunFeed {
  timeline: Timeline;
  /** Changes with every change of the timeline. */
  version: number;
  isLoaded: boolean;
  error: unknown;
  retry(): void;
}

/** Returns a run's events, each once: first the past ones, then new ones, even over broken connections. */
export function useTimeline(run: string): RunFeed {
  const station = useStation();
  const live = useLiveState();
  const [feed, setFeed] = useState(() => createFeed(station, run));
  if (feed.run !== run) setFeed(createFeed(station, run));
  const version = useSyncExternalStore(feed.watch, feed.version);
  // After an outage, we fetch what we missed. A request that was pending may never finish.
  useEffect(() => {
    if (live === "away") feed.close();
    else feed.load();
  }, [feed, live]);
  useEffect(() => () => feed.close(), [feed]);
  useEvents(useCallback((event: StreamedEvent) => event.entity.id === run && feed.take(event), [feed, run]));
  return { timeline: feed.timeline, version, isLoaded: feed.isLoaded(), error: feed.error(), retry: feed.load };
}

/**
 * Requests the next page of a long run while the current one is folded, so that the station and this page work in
 * parallel.
 */
async function* eventPages(station: Client, { run, fromSeq, signal }: { run: string; fromSeq: number; signal: AbortSignal }) {
  const controller = new AbortController();
  const ask = (from: number, limit: number) => {
    const page = station.runs.eventPage(run, { fromSeq: from, limit }, { signal: AbortSignal.any([signal, controller.signal]) });
    void ignore(page, "awaited below, unless the page is left");
    return page;
  };
  try {
    let at = fromSeq;
    let coming = ask(at, at === 1 ? FIRST_EVENTS : MORE_EVENTS);
    for (let isFirst = true; ; isFirst = false) {
      const ahead = isFirst ? null : { seq: at + MORE_EVENTS, page: ask(at + MORE_EVENTS, MORE_EVENTS) };
      const { events, next } = await coming;
      if (next !== null) coming = next === ahead?.seq ? ahead.page : ask(next, MORE_EVENTS);
      yield events;
      if (next === null) return;
      at = next;
    }
  } finally {
    controller.abort();
  }
}

function createFeed(station: Client, run: string) {
  const timeline = emptyTimeline();
  const watchers = new Set<() => void>();
  let version = 0;
  let isLoaded = false;
  let error: unknown = null;
  let heardSeq = 0;
  let loading: AbortController | null = null;
  let drawing = 0;
  /** Notifies watchers at most once per frame. */
  const tell = () => {
    drawing ||= requestAnimationFrame(() => {
      drawing = 0;
      version += 1;
      for (const watcher of watchers) watcher();
    });
  };
  const readAll = async (signal: AbortSignal) => {
    do {
      let drawnAtMs = Number.NEGATIVE_INFINITY;
      for await (const events of eventPages(station, { run, fromSeq: timeline.lastSeq + 1, signal })) {
        if (signal.aborted) return;
        for (const event of events) foldEvent(timeline, event as NumberedEvent);
        // Shows the first events immediately. Drawing more often afterwards would only delay the rest.
        if (performance.now() - drawnAtMs < DRAWN_EVERY_MS) continue;
        drawnAtMs = performance.now();
        tell();
      }
    } while (!signal.aborted && heardSeq > timeline.lastSeq);
  };
  const load = () => {
    if (loading !== null) return;
    const current = new AbortController();
    loading = current;
    error = null;
    readAll(current.signal)
      .catch((caught: unknown) => {
        if (!current.signal.aborted) error = caught;
      })
      .finally(() => {
        if (loading === current) loading = null;
        isLoaded = true;
        tell();
      });
  };
  return {
    run,
    timeline,
    load,
    version: () => version,
    isLoaded: () => isLoaded,
    error: () => error,
    watch(watcher: () => void) {
      watchers.add(watcher);
      return () => void watchers.delete(watcher);
    },
    take({ seq, event }: StreamedEvent) {
      heardSeq = Math.max(heardSeq, seq);
      if (seq <= timeline.lastSeq || loading !== null) return;
      // Events are missing in between, so we fetch them, including this one.
      if (seq > timeline.lastSeq + 1) return load();
      if (event === null) timeline.lastSeq = seq;
      else foldEvent(timeline, { ...event, seq } as NumberedEvent);
      tell();
    },
    close() {
      loading?.abort();
      loading = null;
      cancelAnimationFrame(drawing);
      drawing = 0;
    },
  };
}
