import { z } from "zod";

/** Arguments and answers of the station's verbs for the audit log. */

const AUDIT_PER_PAGE_MAX = 1000;

export const AuditEntry = z.object({
  /** The entry's position: the month, and the number within it. */
  id: z.string(),
  at: z.iso.datetime(),
  outcome: z.enum(["made", "failed"]),
  /** The error code if the call failed. */
  code: z.string().nullable(),
  action: z.string().nullable(),
  caller: z.string().nullable(),
  token: z.string().nullable(),
  owner: z.string().nullable(),
  address: z.string().nullable(),
  subject: z.record(z.string(), z.string()),
});
export type AuditEntry = z.infer<typeof AuditEntry>;

/** Filters entries. Absent members do not filter. */
export const ListAudit = z.strictObject({
  outcome: AuditEntry.shape.outcome.optional(),
  /** A call such as `runs.start`, or a group such as `runs`. */
  action: z.string().min(1).max(100).optional(),
  token: z.string().min(1).max(100).optional(),
  owner: z.string().min(1).max(100).optional(),
  /** A value of the subject, such as a run id. */
  about: z.string().min(1).max(1000).optional(),
  after: z.iso.datetime().max(40).optional(),
  before: z.iso.datetime().max(40).optional(),
  /** The `next` of an earlier answer. */
  cursor: z.string().max(100).optional(),
  limit: z.int().min(1).max(AUDIT_PER_PAGE_MAX).default(100),
});
export type ListAudit = z.input<typeof ListAudit>;

/** Entries, newest first. */
export const AuditList = z.object({
  entries: z.array(AuditEntry),
  /** Cursor for the next page, which may be empty; null at the end. */
  next: z.string().nullable(),
});
export type AuditList = z.infer<typeof AuditList>;
