import { CaissonError } from "../contract/error/error.ts";
import type { NewRunEvent, RunEvent } from "../contract/run/run-event.ts";
import { newId } from "../lib/new-id.ts";
import type { RunState } from "./run-state.ts";

/** The run log as the loop sees it. `append` folds the events into the state before it resolves. */
export interface Journal {
  readonly state: RunState;
  /** The number of events from other writers folded in so far. */
  countUnowned(): number;
  /**
   * Resolves when the events are durable. With `ifHeard`, appends only if no other writer has appended since the caller
   * decided; otherwise folds those events in and throws `conflict` with `details.heard`. Throws `superseded` when
   * another process has become the holder: the caller must stop then.
   */
  append(events: readonly NewRunEvent[], options?: { ifHeard?: number }): Promise<void>;
  /**
   * Folds the events at once. They become durable with the next `append` or by the next turn of the event loop,
   * whichever comes first, so an outcome and the intent after it cost one disk write. If the process dies first, its
   * successor finds the outcome again, since the log shows that the call started.
   */
  note(events: readonly NewRunEvent[]): void;
  /**
   * Resolves when another writer (a person, another process) has appended an event. Throws `cancelled` if the signal
   * fires.
   */
  waitForUnowned(signal: AbortSignal): Promise<void>;
  /** Calls the listener at once for each event from another writer. Returns a function that stops this. */
  onForeign(listener: (event: RunEvent) => void): () => void;
}

/**
 * Returns whether the log failed or this process lost the lease. Neither is a failure of the run, which waits for its
 * next driver.
 */
export function isLogFailure(error: CaissonError): boolean {
  return error.code === "superseded" || error.details?.log === true;
}

/**
 * Returns why this process no longer drives the run: `superseded` if another process took the run or its session,
 * `cancelled` if this process was asked to release it.
 */
export function releasedError(signal: AbortSignal, run: string): CaissonError {
  const { reason } = signal;
  if (reason instanceof CaissonError && reason.code === "superseded") {
    return new CaissonError("superseded", `this process no longer drives the run ${run}: ${reason.message}`, {
      hint: `Watch it with \`caisson attach ${run}\`; find its driver with \`caisson ps\`.`,
      cause: reason,
    });
  }
  return new CaissonError("cancelled", `this process released the run ${run}`, { hint: `Continue it with \`caisson resume ${run}\`.` });
}

/** Returns why this process releases a run that another call rewinds. */
export function rewindingError(run: string): CaissonError {
  return new CaissonError("superseded", `the run ${run} is being rewound, so this process no longer drives it`, {
    hint: `Continue it afterwards: caisson send ${run} "…"`,
    details: { rewinding: true },
  });
}

/** Returns a message from the harness to the model. */
export function systemMessage(text: string): NewRunEvent {
  return { type: "message.received", data: { message: newId("msg"), source: "system", mode: "steer", text } };
}
