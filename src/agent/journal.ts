import type { RunEvent } from "../contract/run-event.ts";
import type { RunState } from "./run-state.ts";

type Distribute<Event> = Event extends { type: infer Type; data: infer Data } ? { type: Type; data: Data } : never;
/** An event before it has a place in the log. */
export type NewRunEvent = Distribute<RunEvent>;

/** The run's log as the loop sees it: what was appended is folded into the state before `append` resolves. */
export interface Journal {
  readonly state: RunState;
  /** Durable when it resolves. Throws `denied` when another process became the owner: then nothing more may be done. */
  append(events: readonly NewRunEvent[]): Promise<void>;
  /**
   * Folded at once, durable with the next `append` or by the next turn of the event loop, whichever comes first: for outcomes that are followed by an intent, so that
   * both cost one write to disk. What is lost with the process is found out again: the call it belongs to was begun.
   */
  note(events: readonly NewRunEvent[]): void;
  /** Resolves when somebody else (a person, another process) appended something. Throws `cancelled` with the signal. */
  changed(signal: AbortSignal): Promise<void>;
  /** Hears what others append, at once; returns how to stop. */
  onForeign(listener: (event: RunEvent) => void): () => void;
}
