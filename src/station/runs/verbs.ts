import type { RunEvent } from "../../contract/run-event.ts";
import type { AnswerQuestion, ListRuns, RunList, RunView, SendMessage, SentMessage, StartRunInput } from "../../contract/run-verbs.ts";

/** One event of a run, with its place in the run's log. */
export type NumberedRunEvent = RunEvent & { seq: number };

/** What can be done with runs. All throw `not_found` for a run that does not exist. */
export interface RunVerbs {
  /** Makes a run and drives it in the background, as long as the station lives. Throws `invalid`, `conflict` for a session in use, `unauthenticated`, `denied`. */
  start(request: StartRunInput): Promise<RunView>;
  get(run: string): Promise<RunView>;
  list(options?: ListRuns): Promise<RunList>;
  /** The events from a number on; with `follow`, also those to come, until the run has ended. */
  events(run: string, options?: { fromSeq?: number; follow?: boolean; signal?: AbortSignal }): AsyncIterable<NumberedRunEvent>;
  /** Throws `conflict` for a run that has ended. */
  send(run: string, message: SendMessage): Promise<SentMessage>;
  /** Throws `not_found` for a question that is not open, such as one that somebody else has answered. */
  answer(run: string, answer: AnswerQuestion): Promise<void>;
  /** Interrupts what it is doing and holds it until `resume`. */
  pause(run: string, options: { text: string }): Promise<void>;
  /** Goes on with a run that was paused or whose process died. */
  resume(run: string, options: { by: string }): Promise<void>;
  /** Resolves when it has ended. One that was stopped before is no error; `conflict` for one that ended otherwise. */
  stop(run: string, options: { by: string; signal?: AbortSignal }): Promise<void>;
}
