import type { RemoteRefs } from "./wire/advertised-refs.ts";

/** The old and the new commit of a ref; null if the ref does not exist. */
export interface RefUpdate {
  ref: string;
  from: string | null;
  to: string | null;
}

export interface PushOutcome {
  /** The output of the remote's hooks: untrusted data, on one line and of bounded length; empty without output. */
  said: string;
}

/**
 * A remote repository: we read and change its refs, and exchange objects as packs. No git command ever runs in it or
 * learns of it.
 */
export interface GitRemote {
  /** Throws `unavailable`, `timeout`, `busy` (all worth another try), `denied`, `not_found`, `protocol`. */
  refs(): Promise<RemoteRefs>;
  /**
   * Sends the objects and moves the refs, each only from its expected commit. Reads the refs back, and resolves with
   * the output of the remote's hooks once the remote has them. Throws like `refs`, and `conflict` if a ref has moved or
   * is refused.
   */
  push(updates: readonly RefUpdate[], pack: Buffer | null): Promise<PushOutcome>;
  /**
   * Fetches the history of the wanted commits, without that of the commits we have. Throws like `refs`, and
   * `too_large`.
   */
  fetch(request: { wants: readonly string[]; haves: readonly string[] }): Promise<Buffer>;
}

/** Returns the first update that is not visible after a push that the remote reported as successful. */
export function missingUpdate(updates: readonly RefUpdate[], refs: ReadonlyMap<string, string>): RefUpdate | null {
  return updates.find(({ ref, to }) => (refs.get(ref) ?? null) !== to) ?? null;
}
