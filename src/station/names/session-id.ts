import { createHash } from "node:crypto";
import { LOCAL_OWNER } from "../../contract/owner.ts";
import { idFrom } from "../../lib/new-id.ts";

const SESSION_ID = /^ses_[a-z2-7]{12}$/;

/**
 * The id of the session that an owner calls by this name. The machine's own user has names as ids; the names of others
 * are theirs alone, so that nobody meets somebody else's. A run's id is its session's, and what is an id stays one.
 */
export function sessionIdOf(name: string, owner: string): string {
  if (owner === LOCAL_OWNER || isSessionId(name)) return name;
  return idFrom("ses", createHash("sha256").update(`${owner}\n${name}`).digest());
}

/** Whether this is an id that no name can be. */
export function isSessionId(word: string): boolean {
  return SESSION_ID.test(word) || /^run_/.test(word);
}
