import type { ChangeLabels } from "../../contract/change-labels.ts";
import type { Budgets } from "../../contract/run.ts";
import type { RunEvent } from "../../contract/run-event.ts";
import type { RunQueueView } from "../../contract/run-queue.ts";
import type {
  AnswerQuestion,
  ContinueRunInput,
  FedEvent,
  ListRuns,
  LogDamage,
  RunList,
  RunView,
  SendMessage,
  SentMessage,
  StartRunInput,
} from "../../contract/run-verbs.ts";

/** One event of a run, with its place in the run's log. */
export type NumberedRunEvent = RunEvent & { seq: number };

/**
 * What can be done with runs. All that take one take its id, the beginning of it or its name, and throw `not_found` for
 * a run that does not exist, `invalid` for what stands for several (`details.candidates`).
 */
export interface RunVerbs {
  /**
   * Makes a run and resolves with it at once; it is driven beside, by this process until the station or `signal` lets
   * it go, or by one of its own. Nothing is made when it throws: `invalid`, `conflict` for a session in use, `denied`
   * for an agent's file that is not trusted, `not_found`, `unauthenticated` without a key for the model. `owner` is
   * whose it is, for whoever acts for others (`ownedStation`).
   */
  start(request: StartRunInput, options?: { signal?: AbortSignal; owner?: string }): Promise<RunView>;
  get(run: string): Promise<RunView>;
  list(options?: ListRuns): Promise<RunList>;
  /**
   * The events from a number on; with `follow`, also those to come, until the run has ended. Throws `internal` where
   * the log is damaged.
   */
  events(run: string, options?: { fromSeq?: number; follow?: boolean; signal?: AbortSignal }): AsyncIterable<NumberedRunEvent>;
  /**
   * The events of all runs and sandboxes, in the order in which they became true, from after a position on, then those
   * to come, until the signal. Nothing is lost or repeated.
   */
  allEvents(options?: { afterPosition?: number; signal?: AbortSignal }): AsyncIterable<FedEvent>;
  /** Of the last event there is: whoever wants only those to come follows them after it. 0 before the first. */
  lastPosition(): Promise<number>;
  /**
   * Resolves when the run has ended. Throws what made this process let go of it, where it was this one that drove it,
   * and `cancelled` with the signal.
   */
  wait(run: string, options?: { signal?: AbortSignal }): Promise<RunView>;
  /** Throws `conflict` for a run that has ended. */
  send(run: string, message: SendMessage): Promise<SentMessage>;
  /** Throws `not_found` for a question that is not open, such as one that somebody else has answered. */
  answer(run: string, answer: AnswerQuestion): Promise<void>;
  /** Interrupts what it is doing and holds it until `resume`. Throws `conflict` for a run that has ended. */
  pause(run: string, options: { text: string }): Promise<void>;
  /**
   * Goes on with a run that was held, whose process died, or that ended otherwise than `done`, as `start` does;
   * resolves with the run as it was when its driver began. `detached`: driven by a process of its own. `budgets`:
   * bounds of the whole run, for one that ended. `reopens`: false leaves a run that has ended alone. Throws `conflict`
   * for a run that is done or whose bounds still hold, `gone` when its session was removed, `unavailable` when the
   * process that was started did not begin.
   */
  resume(
    run: string,
    options: { by: string; signal?: AbortSignal; detached?: boolean; budgets?: Budgets; reopens?: boolean },
  ): Promise<RunView>;
  /**
   * The next turn of a run that has ended, however it did: the message follows its whole conversation, on the same
   * files. It is the same run, reopened: its log, cost and diff go on (ADR 22). Driven and resolved as by `resume`;
   * follow it with `events(run, { fromSeq: view.seq + 1, follow: true })` and `wait`. Throws what `resume` throws,
   * `conflict` for a run that has not ended: `send` is for those.
   */
  continue(run: string, request: ContinueRunInput, options?: { signal?: AbortSignal }): Promise<RunView>;
  /** Of a run that waits in the queue. Throws `conflict` for one that does not. */
  prioritize(run: string, options: { priority: number; by: string }): Promise<RunView>;
  /** Changes what it is found by; null takes a label away. Also of a run that has ended. Throws `invalid`. */
  label(run: string, changes: ChangeLabels, options: { by: string }): Promise<RunView>;
  /**
   * Lets the station go on with a run that nobody drives, whoever drove it before. Throws `conflict` for one that has
   * ended or whose driver lives. Where no station runs, the next one takes it.
   */
  adopt(run: string, options: { by: string }): Promise<RunView>;
  /** The runs that wait for a station to drive them, in their order. */
  queue(): Promise<RunQueueView>;
  /**
   * Resolves when it has ended. One that was stopped before is no error; `conflict` for one that ended otherwise,
   * `timeout` when what drives it does not answer, `cancelled` with the signal: it was asked to stop then, and has not
   * ended yet.
   */
  stop(run: string, options: { by: string; signal?: AbortSignal }): Promise<void>;
  /**
   * Forgets a run that is over, with its sub-runs: their logs are gone. Its session stays. Throws `conflict` for one
   * that is not over.
   */
  remove(run: string): Promise<void>;
  /** Reads the whole log and says what is damaged. */
  check(): Promise<LogDamage[]>;
}
