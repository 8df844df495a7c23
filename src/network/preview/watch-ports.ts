import { setTimeout as sleep } from "node:timers/promises";
import { GATEWAY_PORT, PROXY_PORT } from "../sandbox-setup/ports.ts";

export interface ListeningPort {
  port: number;
  address: string;
}

export interface WatchPortsOptions {
  /** Returns the ports that currently listen inside. */
  listeners: () => Promise<readonly ListeningPort[]>;
  intervalMs?: number;
  /** Ports to ignore. Default: those that the host itself serves inside. */
  ignore?: readonly number[];
  onOpened: (port: ListeningPort) => void;
  onClosed: (port: { port: number }) => void;
  signal: AbortSignal;
}

/** Why the watch ended. */
export type WatchEnd = { why: "stopped" } | { why: "failed"; error: unknown };

const INTERVAL_MS = 500;
export const hostPorts: readonly number[] = [PROXY_PORT, GATEWAY_PORT];

/**
 * Reports the ports that listen now, and then each port that starts or stops listening. A port on several addresses
 * counts once. Ends with the signal, or when the sandbox can no longer be queried; never rejects.
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

/** Sorted by number. Of several addresses, the first one counts. */
export function onePerPort(listeners: readonly ListeningPort[], ignore: readonly number[] = hostPorts): Map<number, ListeningPort> {
  const found = new Map<number, ListeningPort>();
  for (const listener of [...listeners].sort((a, b) => a.port - b.port)) {
    if (!ignore.includes(listener.port) && !found.has(listener.port)) found.set(listener.port, listener);
  }
  return found;
}
