import { createHash } from "node:crypto";
import type { SessionVerbs } from "../sessions/verbs.ts";

/** A digest of everything that differs in a session's workspace; empty where nothing does. */
export type LookAtFiles = (session: string, signal: AbortSignal) => Promise<string>;

const LOOK_MS_MAX = 30_000;

/**
 * A command changes files without an event that says so, so that an agent who works by shell would seem idle. Only
 * where a run looks idle by its log, and commands ran, are its files looked at: by the same verb that shows a diff,
 * which costs what was changed, and whose reading is done by the guest.
 */
export function lookAtFiles(sessions: Pick<SessionVerbs, "patch">): LookAtFiles {
  return async (session, signal) => {
    const hash = createHash("sha256");
    let isEmpty = true;
    const within = AbortSignal.any([signal, AbortSignal.timeout(LOOK_MS_MAX)]);
    for await (const piece of sessions.patch(session, { brief: true, signal: within })) {
      isEmpty = false;
      hash.update(piece.kind).update(piece.kind === "patch" ? piece.bytes : JSON.stringify(piece));
    }
    return isEmpty ? "" : hash.digest("base64url");
  };
}
