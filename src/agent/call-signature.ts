import { createHash } from "node:crypto";
import { canonicalJson } from "../lib/canonical-json.ts";

export interface CallRecord {
  /** The same for the same tool and arguments. */
  signature: string;
  /** For people. */
  shown: string;
  changedFiles: boolean;
}

const SHOWN_CHARACTERS_MAX = 200;
/** Asking again is what these are for: only the same answer makes it the same call. */
const POLLING = new Set(["bash_output"]);

/** Of a tool call by name and arguments, whatever the order of their keys; short, however long the arguments. */
export function signatureOf(call: { name: string; arguments: unknown; result: string }): Omit<CallRecord, "changedFiles"> {
  const text = canonicalJson(call.arguments);
  const hash = createHash("sha256").update(call.name).update("\0").update(text);
  if (POLLING.has(call.name)) hash.update("\0").update(call.result);
  const shown = `${call.name} ${text.length > SHOWN_CHARACTERS_MAX ? `${text.slice(0, SHOWN_CHARACTERS_MAX)}…` : text}`;
  return { signature: hash.digest("base64url").slice(0, 22), shown };
}
