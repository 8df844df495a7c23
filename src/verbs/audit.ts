import { AuditList, ListAudit } from "../contract/audit/audit-verbs.ts";
import { type VerbsOf, verb } from "./verb.ts";

/** The audit log: every mutating call over HTTP, and every call that was denied access. */
export const audit = {
  /** Lists calls, newest first. Throws `invalid` for a malformed cursor. */
  list: verb({
    path: "GET /v1/audit",
    takes: ListAudit,
    gives: AuditList,
    scope: "admin",
    owned: "admin",
    summary: "List mutating calls and calls that were denied access, newest first.",
  }),
};

export type AuditVerbs = VerbsOf<typeof audit>;
