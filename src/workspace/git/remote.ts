import type { RemoteRefs } from "./wire/advertised-refs.ts";

/** What a ref must be at, and shall be at; null: it is not there. */
export interface RefUpdate {
  ref: string;
  from: string | null;
  to: string | null;
}

export interface PushOutcome {
  /** What the remote's hooks wrote: data, on one line and bounded. Empty: nothing. */
  said: string;
}

/**
 * A repository elsewhere, by what is done with it: its refs are read and changed, and objects go there and come from
 * there as packs. No git is ever started in it, or told of it.
 */
export interface GitRemote {
  /** Throws `unavailable`, `timeout`, `busy` (all worth another try), `denied`, `not_found`, `protocol`. */
  refs(): Promise<RemoteRefs>;
  /**
   * Brings the objects and moves the refs, each only from where it is said to be. What was announced is read back: it
   * resolves when the remote has it, with what its hooks said. Throws as `refs`, and `conflict` when a ref is elsewhere
   * or is refused.
   */
  push(updates: readonly RefUpdate[], pack: Buffer | null): Promise<PushOutcome>;
  /** What leads to these commits and not to those. Throws as `refs`, and `too_large`. */
  fetch(request: { wants: readonly string[]; haves: readonly string[] }): Promise<Buffer>;
}

/** The first update that is not to be seen after a push that was said to have worked. */
export function missingUpdate(updates: readonly RefUpdate[], refs: ReadonlyMap<string, string>): RefUpdate | null {
  return updates.find(({ ref, to }) => (refs.get(ref) ?? null) !== to) ?? null;
}
