import { useQueryClient } from "@tanstack/react-query";
import { createContext, type ReactNode, useContext, useEffect, useMemo, useState } from "react";
import type { Client } from "../../../src/client/connect.ts";
import type { StreamedEvent } from "../../../src/contract/api/streams.ts";
import { CaissonError } from "../../../src/contract/error/error.ts";
import { useSignOut, useStation } from "./station.tsx";

export type LiveState = "connecting" | "live" | "away";
type Listener = (event: StreamedEvent) => void;

interface Live {
  state: LiveState;
  listen(listener: Listener): () => void;
}

const LiveContext = createContext<Live | null>(null);
const AGAIN_MS = 1_500;

/**
 * Provides one stream of all events that this token may see, shared by all pages. Reconnects as long as the page is
 * open.
 */
export function LiveProvider({ children }: { children: ReactNode }) {
  const station = useStation();
  const signOut = useSignOut();
  const queries = useQueryClient();
  const [state, setState] = useState<LiveState>("connecting");
  const listeners = useMemo(() => new Set<Listener>(), []);
  useEffect(() => {
    const ends = new AbortController();
    void follow(station, {
      signal: ends.signal,
      onState(next, { wasAway }) {
        setState(next);
        // Pages missed the events during the outage.
        if (next === "live" && wasAway) void queries.invalidateQueries();
      },
      onEvent(event) {
        for (const listener of listeners) listener(event);
      },
      onDenied: signOut,
    });
    return () => ends.abort();
  }, [station, signOut, queries, listeners]);
  const live = useMemo<Live>(
    () => ({
      state,
      listen(listener) {
        listeners.add(listener);
        return () => void listeners.delete(listener);
      },
    }),
    [state, listeners],
  );
  return <LiveContext value={live}>{children}</LiveContext>;
}

export function useLiveState(): LiveState {
  return useLive().state;
}

/** Calls the listener with every event while the component is mounted. The listener may change with every render. */
export function useEvents(listener: Listener): void {
  const { listen } = useLive();
  useEffect(() => listen(listener), [listen, listener]);
}

function useLive(): Live {
  const live = useContext(LiveContext);
  if (live === null) throw new Error("no LiveProvider around this component");
  return live;
}

interface Followed {
  signal: AbortSignal;
  onState(state: LiveState, details: { wasAway: boolean }): void;
  onEvent: Listener;
  /** Called if the token is no longer valid. */
  onDenied(): void;
}

async function follow(station: Client, { signal, onState, onEvent, onDenied }: Followed): Promise<void> {
  let position: number | "end" = "end";
  let wasAway = false;
  while (!signal.aborted) {
    try {
      const subscription = await station.streams.subscribe({
        afterPosition: position,
        signal,
        onConnection: (isThere) => onState(isThere ? "live" : "away", { wasAway: true }),
      });
      onState("live", { wasAway });
      wasAway = false;
      for await (const event of subscription) {
        position = event.position;
        onEvent(event);
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof CaissonError && error.code === "unauthenticated") return onDenied();
    }
    if (signal.aborted) return;
    wasAway = true;
    onState("away", { wasAway });
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}
