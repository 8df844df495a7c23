import { z } from "zod";

/** Arguments and answers of the station's verbs about its audit log. */

const AUDIT_PER_PAGE_MAX = 1000;

export const AuditEntry = z.object({
  /** Its place: the month and the number in it. */
  id: z.string(),
  at: z.iso.datetime(),
  outcome: z.enum(["made", "failed"]),
  /** Of one that failed. */
  code: z.string().nullable(),
  action: z.string().nullable(),
  caller: z.string().nullable(),
  token: z.string().nullable(),
  owner: z.string().nullable(),
  address: z.string().nullable(),
  subject: z.record(z.string(), z.string()),
});
export type AuditEntry = z.infer<typeof AuditEntry>;

/** Which entries; what is absent is not asked about. */
export const ListAudit = z.strictObject({
  outcome: AuditEntry.shape.outcome.optional(),
  /** Such as `runs.start`, or `runs` for all about runs. */
  action: z.string().min(1).max(100).optional(),
  token: z.string().min(1).max(100).optional(),
  owner: z.string().min(1).max(100).optional(),
  /** A value of the subject, such as the id of a run. */
  about: z.string().min(1).max(1000).optional(),
  after: z.iso.datetime().max(40).optional(),
  before: z.iso.datetime().max(40).optional(),
  /** Where an earlier answer ended: its `next`. */
  cursor: z.string().max(100).optional(),
  limit: z.int().min(1).max(AUDIT_PER_PAGE_MAX).default(100),
});
export type ListAudit = z.input<typeof ListAudit>;

/** The newest first. */
export const AuditList = z.object({
  entries: z.array(AuditEntry),
  /** For the next page, which may turn out to be empty; null at the end. */
  next: z.string().nullable(),
});
export type AuditList = z.infer<typeof AuditList>;
