import { CaissonError } from "../../contract/error/error.ts";
import { ignoring } from "../../lib/failures.ts";
import type { GatewayEvent } from "./gateway-options.ts";

const MINUTE_MS = 60_000;
/**
 * Room for the events of calls that are in progress when recording starts to fail. Until it works again, no new call
 * starts.
 */
const KEPT_MAX = 256;

export interface Recorder {
  /** Never throws. An event that could not be recorded is kept for later. */
  record(event: GatewayEvent, options: { free: boolean }): void;
  /** Must be called before each call. Throws `unavailable` while calls cannot be recorded. */
  check(): void;
}

/** Records all calls that cost something, and the others at a limited rate. No call is made while recording fails. */
export function createRecorder(options: {
  emit: (event: GatewayEvent) => void;
  freeEventsPerMinute: number;
  now?: () => number;
}): Recorder {
  const now = options.now ?? Date.now;
  const pendingEvents: GatewayEvent[] = [];
  let minuteFromMs = Number.NEGATIVE_INFINITY;
  let freeEvents = 0;
  let leftOut = 0;
  const flush = () => {
    for (let event = pendingEvents[0]; event !== undefined; event = pendingEvents[0]) {
      options.emit(event);
      pendingEvents.shift();
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
    const error = `${event.data.error} (${leftOut} earlier calls, which cost nothing, were not recorded.)`;
    leftOut = 0;
    return { ...event, data: { ...event.data, error: error.slice(0, 2000) } };
  };
  return {
    record(event, { free }) {
      if ((free && !mayRecordFree()) || pendingEvents.length >= KEPT_MAX) return;
      pendingEvents.push(withLeftOut(event));
      ignoring("check throws it before the next call", flush);
    },
    check() {
      try {
        flush();
      } catch (error) {
        throw new CaissonError("unavailable", "calls cannot be recorded at the moment, so the gateway refuses them", { cause: error });
      }
    },
  };
}
