import { CaissonError } from "../contract/error.ts";
import type { NewRunEvent, RunEvent } from "../contract/run-event.ts";
import { newId } from "../lib/new-id.ts";
import type { RunState } from "./run-state.ts";

/** The run's log as the loop sees it: what was appended is folded into the state before `append` resolves. */
export interface Journal {
  readonly state: RunState;
  /** How many events of others were folded in so far. */
  heard(): number;
  /**
   * Durable when it resolves. `ifHeard`: only while no more was heard of others than the caller knew when it decided;
   * throws `conflict` with `details.heard` otherwise, and what came is folded in. Throws `superseded` when another
   * process became the owner: then nothing more may be done.
   */
  append(events: readonly NewRunEvent[], options?: { ifHeard?: number }): Promise<void>;
  /**
   * Folded at once, durable with the next `append` or by the next turn of the event loop, whichever comes first: for
   * outcomes that are followed by an intent, so that both cost one write to disk. What is lost with the process is
   * found out again: the call it belongs to was begun.
   */
  note(events: readonly NewRunEvent[]): void;
  /** Resolves when somebody else (a person, another process) appended something. Throws `cancelled` with the signal. */
  changed(signal: AbortSignal): Promise<void>;
  /** Hears what others append, at once; returns how to stop. */
  onForeign(listener: (event: RunEvent) => void): () => void;
}

/**
 * Whether it is the log that failed, or the ownership that was lost: no failure of the run, which stays as it is for
 * whoever drives it next.
 */
export function isLogFailure(error: CaissonError): boolean {
  return error.code === "superseded" || error.details?.log === true;
}

/**
 * Why a run is not driven here any longer: `superseded` when it, or its session, was taken away; `cancelled` when
 * somebody asked this process to let go.
 */
export function letGoError(signal: AbortSignal, run: string): CaissonError {
  const { reason } = signal;
  if (reason instanceof CaissonError && reason.code === "superseded") {
    return new CaissonError("superseded", `the run ${run} is not driven here any longer: ${reason.message}`, {
      hint: `\`caisson attach ${run}\` watches it, \`caisson ps\` says who drives it.`,
      cause: reason,
    });
  }
  return new CaissonError("cancelled", `the run ${run} was let go`, { hint: `\`caisson resume ${run}\` continues it.` });
}

/** Words of ours to the model. */
export function systemMessage(text: string): NewRunEvent {
  return { type: "message.received", data: { message: newId("msg"), source: "system", mode: "steer", text } };
}
