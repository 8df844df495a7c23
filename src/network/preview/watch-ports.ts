import { setTimeout as sleep } from "node:timers/promises";
import { GATEWAY_PORT, PROXY_PORT } from "../inside/ports.ts";

export interface ListeningPort {
  port: number;
  address: string;
}

export interface WatchPortsOptions {
  /** What listens inside now. */
  listeners: () => Promise<readonly ListeningPort[]>;
  intervalMs?: number;
  /** Ports that are nobody's business; by default those that the host itself serves inside. */
  ignore?: readonly number[];
  onOpened: (port: ListeningPort) => void;
  onClosed: (port: { port: number }) => void;
  signal: AbortSignal;
}

/** Why nobody watches any more. */
export type WatchEnd = { why: "stopped" } | { why: "failed"; error: unknown };

const INTERVAL_MS = 500;
export const hostPorts: readonly number[] = [PROXY_PORT, GATEWAY_PORT];

/**
 * Tells of each port that begins to listen, those that listen already first, and of each that stops. A port that
 * listens on several addresses is one. Ends with the signal, or when the sandbox cannot be asked any more; never
 * rejects.
 */
export async function watchPorts(options: WatchPortsOptions): Promise<WatchEnd> {
  const { signal, intervalMs = INTERVAL_MS, ignore = hostPorts } = options;
  let known = new Map<number, ListeningPort>();
  try {
    while (!signal.aborted) {
      const now = onePerPort(await options.listeners(), ignore);
      if (signal.aborted) break;
      for (const [port, listener] of now) if (!known.has(port)) options.onOpened(listener);
      for (const port of known.keys()) if (!now.has(port)) options.onClosed({ port });
      known = now;
      await sleep(intervalMs, undefined, { signal });
    }
  } catch (error) {
    if (!signal.aborted) return { why: "failed", error };
  }
  return { why: "stopped" };
}

/** In the order of their numbers; of several addresses the first. */
export function onePerPort(listeners: readonly ListeningPort[], ignore: readonly number[] = hostPorts): Map<number, ListeningPort> {
  const found = new Map<number, ListeningPort>();
  for (const listener of [...listeners].sort((a, b) => a.port - b.port)) {
    if (!ignore.includes(listener.port) && !found.has(listener.port)) found.set(listener.port, listener);
  }
  return found;
}
