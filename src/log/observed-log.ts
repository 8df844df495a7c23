import { ignoring } from "../lib/failures.ts";
import type { Log, NewEvent } from "./log.ts";

/** Events that this process appended, in stream order. */
export interface Appended {
  stream: string;
  events: readonly NewEvent[];
  /** The sequence of the first of `events`. */
  firstSeq: number;
}

/** Called after each append. The log is for reading earlier events. */
export type AppendListener = (appended: Appended, log: Pick<Log, "read">) => void;

/**
 * Returns the same log with a listener for every durable append of this process. Appends by other processes do not
 * reach the listener. A listener cannot fail the append: what it throws is dropped.
 */
export function observedLog(log: Log, listener: AppendListener): Log {
  const observed = Object.create(log) as Log;
  observed.append = async (stream, events, options) => {
    const result = await log.append(stream, events, options);
    ignoring("the events are written, even if a listener fails", () =>
      listener({ stream, events, firstSeq: result.lastSeq - events.length + 1 }, log),
    );
    return result;
  };
  return observed;
}
