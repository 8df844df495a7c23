import { CaissonError } from "../../contract/error/error.ts";
import type { LeaseClock } from "../lease-clock.ts";
import type { Log, NewEvent, StoredEvent } from "../log.ts";

export interface OpenOptions {
  nowMs?: () => number;
  leaseClock?: LeaseClock;
}

/** Every call of `open` returns a new handle on the same store. */
export type MakeLogStore = () => Promise<{ open(options?: OpenOptions): Promise<Log>; dispose(): Promise<void> }>;

export type UseLog = (work: (log: Log, reopen: (options?: OpenOptions) => Promise<Log>) => Promise<void>) => Promise<void>;

/** Runs each piece of work with a new store, which it closes and removes afterwards. */
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

/** Returns the first `count` events of a subscription, then ends it. */
export async function take<Event extends StoredEvent>(events: AsyncIterable<Event>, count: number): Promise<Event[]> {
  const firstEvents: Event[] = [];
  for await (const each of events) {
    firstEvents.push(each);
    if (firstEvents.length === count) break;
  }
  return firstEvents;
}
