import { createHash } from "node:crypto";
import type { SessionVerbs } from "../../verbs/sessions.ts";

/** Resolves with a digest of everything that differs in a session's workspace, or with "" if nothing does. */
export type LookAtFiles = (session: string, signal: AbortSignal) => Promise<string>;

const LOOK_MS_MAX = 30_000;

/**
 * Commands change files without an event, so an agent that works in a shell would seem idle. The files are checked only
 * if the log makes a run look idle and commands ran. The check uses the verb that shows a diff: its cost grows with the
 * changes, and the guest reads the files.
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
