import { join } from "node:path";
import type { Turn } from "../../lib/turns.ts";

/** Where a station keeps whose turn it is, that one is stuck in it, and how often stations died in one turn. */
export function turnFiles(stationDir: string) {
  return { turn: join(stationDir, "turn"), stuck: join(stationDir, "turn.stuck"), deaths: join(stationDir, "turn.deaths") };
}

/** Longer than any stream's name. */
export const TURN_BYTES = 512;

/** Null for anything else. What it says is looked up in the log before anything is done about it. */
export function readTurn(text: string): Turn | null {
  if (!text.startsWith("{")) return null;
  try {
    const { stream, seq } = JSON.parse(text) as Partial<Turn>;
    return typeof stream === "string" && Number.isSafeInteger(seq) ? { stream, seq: Number(seq) } : null;
  } catch {
    return null;
  }
}
