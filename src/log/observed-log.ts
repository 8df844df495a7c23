import type { Log, NewEvent } from "./log.ts";

/** Events that this process appended, in the order of their stream. */
export interface Appended {
  stream: string;
  events: readonly NewEvent[];
  /** The number of the first of them. */
  firstSeq: number;
}

/** The log is for reading what came before. */
export type AppendListener = (appended: Appended, log: Pick<Log, "read">) => void;

/**
 * The same log, whose every append is told to a listener once it is true. What others append to the same file is not:
 * each process watches what it does itself. A listener cannot disturb the work: what it throws is dropped.
 */
export function observedLog(log: Log, listener: AppendListener): Log {
  const observed = Object.create(log) as Log;
  observed.append = async (stream, events, options) => {
    const result = await log.append(stream, events, options);
    try {
      listener({ stream, events, firstSeq: result.lastSeq - events.length + 1 }, log);
    } catch {
      // The fact is true, whoever fails to hear of it.
    }
    return result;
  };
  return observed;
}
