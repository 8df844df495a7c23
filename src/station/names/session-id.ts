import { createHash } from "node:crypto";
import { LOCAL_OWNER } from "../../contract/token/owner.ts";
import { idFrom } from "../../lib/new-id.ts";

const SESSION_ID = /^ses_[a-z2-7]{12}$/;

/**
 * Returns the id of the session that has this name for an owner. The ids of the machine's own user are their names;
 * those of other owners are hashes, so owners never collide. A session without a name has the id of its run. Ids are
 * returned unchanged.
 */
export function sessionIdOf(name: string, owner: string): string {
  if (owner === LOCAL_OWNER || isSessionId(name)) return name;
  return idFrom("ses", createHash("sha256").update(`${owner}\n${name}`).digest());
}

/** Returns whether a word is a session id of a form that names cannot have. */
export function isSessionId(word: string): boolean {
  return SESSION_ID.test(word) || /^run_/.test(word);
}
