import { CaissonError } from "../../contract/error.ts";
import type { GatewayEvent } from "./gateway-options.ts";

const MINUTE_MS = 60_000;
/** Calls under way when recording begins to fail; no further ones begin. */
const KEPT_MAX = 256;

export interface Recorder {
  /** Never throws; what could not be recorded is kept for later. */
  record(event: GatewayEvent, options: { free: boolean }): void;
  /** To be called before each call. Throws `unavailable` while calls cannot be recorded. */
  check(): void;
}

/**
 * Records calls: those that cost something all of them, those that do not at a bounded rate, and none is made that
 * could not be.
 */
export function createRecorder(options: {
  emit: (event: GatewayEvent) => void;
  freeEventsPerMinute: number;
  now?: () => number;
}): Recorder {
  const now = options.now ?? Date.now;
  const kept: GatewayEvent[] = [];
  let minuteFromMs = Number.NEGATIVE_INFINITY;
  let freeEvents = 0;
  let leftOut = 0;
  const flush = () => {
    for (let event = kept[0]; event !== undefined; event = kept[0]) {
      options.emit(event);
      kept.shift();
    }
  };
  const mayRecordFree = () => {
    if (now() - minuteFromMs >= MINUTE_MS) {
      minuteFromMs = now();
      freeEvents = 0;
    }
    freeEvents += 1;
    if (freeEvents <= options.freeEventsPerMinute) return true;
    leftOut += 1;
    return false;
  };
  const withLeftOut = (event: GatewayEvent): GatewayEvent => {
    if (leftOut === 0 || event.data.error === null) return event;
    const error = `${event.data.error} (${leftOut} calls before this one, which cost nothing, were not recorded.)`;
    leftOut = 0;
    return { ...event, data: { ...event.data, error: error.slice(0, 2000) } };
  };
  return {
    record(event, { free }) {
      if ((free && !mayRecordFree()) || kept.length >= KEPT_MAX) return;
      kept.push(withLeftOut(event));
      try {
        flush();
      } catch {
        // Told to the next who asks, by check.
      }
    },
    check() {
      try {
        flush();
      } catch (error) {
        throw new CaissonError("unavailable", "calls cannot be recorded at the moment, so none is made", { cause: error });
      }
    },
  };
}
