import type { DrivenList, DrivenView, ListDriven } from "../../contract/driven.ts";

/**
 * What can be done with driven things of every kind. All that take one take its id or the beginning of it, and throw
 * `not_found` for one that does not exist, `invalid` for what stands for several (`details.candidates`).
 */
export interface DrivenVerbs<Event = { type: string; at: string; data: unknown }, View extends DrivenView = DrivenView> {
  get(word: string): Promise<View>;
  /** The last changed first; nothing is folded. Throws `invalid` for a cursor of somebody else's making. */
  list(options?: ListDriven): Promise<DrivenList>;
  /** The events from a number on; with `follow`, also those to come, until it has ended. */
  events(word: string, options?: { fromSeq?: number; follow?: boolean; signal?: AbortSignal }): AsyncIterable<Event & { seq: number }>;
  /**
   * Resolves when it has ended or, with `orPerson`, as soon as it waits for a person. It drives nothing: somebody has
   * to. Throws `cancelled` with the signal.
   */
  wait(word: string, options?: { orPerson?: boolean; signal?: AbortSignal }): Promise<View>;
  /** Asks it to end, and drives it to its end; `wait` tells when it has. Throws `conflict` for one that has ended. */
  cancel(word: string, options: { by: string; text?: string }): Promise<View>;
  /** Nothing new is begun; what is at work goes on to its end. Throws `conflict` for one that has ended. */
  pause(word: string, options: { by: string; text?: string }): Promise<View>;
  /** Goes on with one that was paused, or that nobody drives. Throws `conflict` for one that has ended. */
  resume(word: string, options: { by: string }): Promise<View>;
  /** Forgets one that is over, with its parts of the same kind. Throws `conflict` for one that is not. */
  remove(word: string): Promise<void>;
}
