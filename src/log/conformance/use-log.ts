import { CaissonError } from "../../contract/error.ts";
import type { LeaseClock } from "../lease-clock.ts";
import type { Log, NewEvent, StoredEvent } from "../log.ts";

export interface OpenOptions {
  nowMs?: () => number;
  leaseClock?: LeaseClock;
}

/** `open` gives a handle on the same store each time it is called. */
export type MakeLogStore = () => Promise<{ open(options?: OpenOptions): Promise<Log>; dispose(): Promise<void> }>;

export type UseLog = (work: (log: Log, reopen: (options?: OpenOptions) => Promise<Log>) => Promise<void>) => Promise<void>;

/** A new store for each piece of work, closed and removed after it. */
export function useLogOf(make: MakeLogStore): UseLog {
  return async (work) => {
    const store = await make();
    const opened: Log[] = [];
    const open = async (options?: OpenOptions) => {
      const log = await store.open(options);
      opened.push(log);
      return log;
    };
    try {
      await work(await open(), open);
    } finally {
      for (const log of opened) await log[Symbol.asyncDispose]();
      await store.dispose();
    }
  };
}

export const event = (n: number): NewEvent => ({ type: "test.happened", version: 1, data: { n } });

export async function codeOf(promise: Promise<unknown>): Promise<string> {
  try {
    await promise;
    return "no error";
  } catch (error) {
    return error instanceof CaissonError ? error.code : `foreign: ${error}`;
  }
}

/** The first so many events of a subscription, which ends with them. */
export async function take<Event extends StoredEvent>(events: AsyncIterable<Event>, count: number): Promise<Event[]> {
  const taken: Event[] = [];
  for await (const each of events) {
    taken.push(each);
    if (taken.length === count) break;
  }
  return taken;
}
