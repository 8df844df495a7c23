import { createHash } from "node:crypto";
import { canonicalJson } from "../lib/canonical-json.ts";

export interface CallRecord {
  /** Equal for calls of the same tool with the same arguments. */
  signature: string;
  /** The call as people read it. */
  shown: string;
  changedFiles: boolean;
}

const SHOWN_CHARACTERS_MAX = 200;
/** Tools that exist to be called repeatedly: two of their calls are the same only if their results are. */
const POLLING = new Set(["bash_output"]);

/**
 * Returns the signature of a tool call. It does not depend on the key order of the arguments, and is short even if they
 * are long.
 */
export function signatureOf(call: { name: string; arguments: unknown; result: string }): Omit<CallRecord, "changedFiles"> {
  const text = canonicalJson(call.arguments);
  const hash = createHash("sha256").update(call.name).update("\0").update(text);
  if (POLLING.has(call.name)) hash.update("\0").update(call.result);
  const label = `${call.name} ${text.length > SHOWN_CHARACTERS_MAX ? `${text.slice(0, SHOWN_CHARACTERS_MAX)}…` : text}`;
  return { signature: hash.digest("base64url").slice(0, 22), shown: label };
}
