import { z } from "zod";
import { defineEvent } from "./define-event.ts";
import { eventFamily } from "./event-family.ts";

/** What was asked of a station, in the streams `audit/<month>`. Nothing of it is ever changed. */

const asked = {
  /** The call by its name in the table of routes; null for one that is not in it. */
  action: z.string().nullable(),
  /** `user` by the socket, `token NAME`; null for somebody without a token that is valid. */
  caller: z.string().nullable(),
  token: z.string().nullable(),
  owner: z.string().nullable(),
  /** Null by the socket. */
  address: z.string().nullable(),
  /** What it names: the parts of its path, and what its route says of the body. Never a secret. */
  subject: z.record(z.string(), z.string()),
};

/** A call that changes something, before it does: what took effect is in the audit, whatever happened after. */
export const CallMade = defineEvent("call.made", 1, asked);
/** One that failed, or that was not let in. */
export const CallFailed = defineEvent("call.failed", 1, { ...asked, code: z.string() });

const all = [CallMade, CallFailed] as const;
export const auditEvents = eventFamily(all);
export type AuditedCall = z.infer<typeof CallMade>["data"];
