import { z } from "zod";
import { concerns, defineEvent } from "../event/define-event.ts";
import { eventFamily } from "../event/event-family.ts";

/** Requests to a station, in the streams `audit/<month>`. Stored events never change. */

const call = {
  /** The call's name in the route table; null for an unknown route. */
  action: z.string().nullable(),
  /** `user` over the socket, or `token NAME`; null without a valid token. */
  caller: z.string().nullable(),
  token: z.string().nullable(),
  owner: z.string().nullable(),
  /** The caller's address; null over the socket. */
  address: z.string().nullable(),
  /** What the call concerns: the parts of its path, and the body fields that its route declares. Never a secret. */
  subject: z.record(z.string(), z.string()),
};

/** A mutating call, recorded before it takes effect, so that the audit has it whatever happens next. */
export const CallMade = defineEvent("call.made", 1, concerns(), call);
/** A call that failed or was not allowed. */
export const CallFailed = defineEvent("call.failed", 1, concerns(), { ...call, code: z.string() });

const all = [CallMade, CallFailed] as const;
export const auditEvents = eventFamily(all);
export type AuditedCall = z.infer<typeof CallMade>["data"];
