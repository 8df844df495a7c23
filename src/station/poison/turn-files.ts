import { join } from "node:path";
import { jsonOrNull } from "../../lib/failures.ts";
import type { Turn } from "../../lib/turns.ts";

/**
 * The files in which a station records the current turn, a turn that blocks the event loop, and how often stations died
 * in the same turn.
 */
export function turnFiles(stationDir: string) {
  return { turn: join(stationDir, "turn"), stuck: join(stationDir, "turn.stuck"), deaths: join(stationDir, "turn.deaths") };
}

/** Longer than any stream name. */
export const TURN_BYTES = 512;

/** Returns null for anything that is not a turn. Callers look the stream up in the log before they act on it. */
export function readTurn(text: string): Turn | null {
  if (!text.startsWith("{")) return null;
  const { stream, seq } = (jsonOrNull(text) ?? {}) as Partial<Turn>;
  return typeof stream === "string" && Number.isSafeInteger(seq) ? { stream, seq: Number(seq) } : null;
}
