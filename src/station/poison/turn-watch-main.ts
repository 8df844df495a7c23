import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { workerData } from "node:worker_threads";
import { readTurn } from "./turn-files.ts";

/** The input of the thread that watches the event loop; see `turn-marker.ts`. */
export interface WatchedLoop {
  /** Counts the turns of the event loop, approximately. */
  beats: SharedArrayBuffer;
  turn: string;
  stuck: string;
  everyMs: number;
  /** Consecutive checks without a beat after which the loop counts as stuck. A suspended process does not check. */
  looksMax: number;
}

const { beats, turn, stuck, everyMs, looksMax } = workerData as WatchedLoop;
const counted = new Int32Array(beats);
let last = -1;
let looks = 0;
let isNoted = false;

setInterval(() => {
  const beat = Atomics.load(counted, 0);
  if (beat !== last) {
    last = beat;
    looks = 0;
    if (isNoted) rmSync(stuck, { force: true });
    isNoted = false;
    return;
  }
  looks += 1;
  if (looks < looksMax || isNoted) return;
  const text = readFileSync(turn, "utf8");
  if (readTurn(text) === null) return;
  writeFileSync(stuck, text, { mode: 0o600 });
  isNoted = true;
}, everyMs);
