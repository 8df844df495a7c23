import type { ShipLogEvent } from "../../contract/ship-event.ts";
import type { ListShips, ShipDetails, ShipList, ShipView, StartShip, WatchShip } from "../../contract/ship-verbs.ts";

/**
 * Ships: the changes of a run, or of a session, on their way to a remote. All that take one take its id or the
 * beginning of it, and throw `not_found` for one that does not exist, `invalid` for what stands for several.
 */
export interface ShipVerbs {
  /**
   * Makes a ship and begins to drive it: branch, commit, push, pull request; and with `merge` all the rest. An open
   * ship of the same session to the same remote, or one that `of` names, takes up the options that are named instead,
   * and tries again what failed. Nothing changes when it throws: `invalid`, `unsupported`, `not_found`, `conflict` for
   * a run that is not over, for one without tests that passed, and for an option that an open ship cannot take up any
   * more. `owner` is the caller's (`ownedStation`).
   */
  start(request: StartShip, options?: { owner?: string }): Promise<ShipView>;
  get(ship: string): Promise<ShipDetails>;
  /** The last changed first. Throws `invalid` for a cursor of somebody else's making. */
  list(options?: ListShips): Promise<ShipList>;
  /** The events from a number on; with `follow`, also those to come, until it is over. */
  events(
    ship: string,
    options?: { fromSeq?: number; follow?: boolean; signal?: AbortSignal },
  ): AsyncIterable<ShipLogEvent & { seq: number }>;
  /**
   * Resolves when it is over or, with `orPerson`, as soon as it waits for a person. It drives nothing: somebody has to.
   * Throws `cancelled` with the signal.
   */
  wait(ship: string, options?: { orPerson?: boolean; signal?: AbortSignal }): Promise<ShipDetails>;
  /** As `get`, once something happened after an event, or when the time is up. Throws `cancelled` with the signal. */
  watch(ship: string, request: WatchShip, options?: { signal?: AbortSignal }): Promise<ShipDetails>;
  /** Has it merged, once it can be. Throws `conflict` for one that is over. */
  merge(ship: string, options: { by: string }): Promise<ShipView>;
  /** Nothing new is begun; what is at work goes on to its end. Throws `conflict` for one that is over. */
  pause(ship: string, options: { by: string; text?: string }): Promise<ShipView>;
  /** Tries again what failed, or goes on with what was paused. Throws `conflict` for one that is over. */
  resume(ship: string, options: { by: string }): Promise<ShipView>;
  /** Closes its pull request, and keeps its branch. Throws `conflict` for one that is over. */
  cancel(ship: string, options: { by: string }): Promise<ShipView>;
  /** Forgets one that is over; what it brought to the remote stays. Throws `conflict` for one that is not. */
  remove(ship: string): Promise<void>;
}
