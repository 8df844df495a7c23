import type { AuditList, ListAudit } from "../../contract/audit-verbs.ts";

/** What was asked of the station over HTTP: every call that changes something, and every one that was not let in. */
export interface AuditVerbs {
  /** Throws `invalid` for a cursor that is none. */
  list(request?: ListAudit): Promise<AuditList>;
}
