import { z } from "zod";
import { Owner } from "../token/owner.ts";

/** Common filters of lists. Absent members do not filter. */

const LABELS_ASKED_MAX = 10;
const PAGE_MAX = 10_000;

/** Labels as `KEY=VALUE`; an item must have all of them. */
export const LabelsAsked = z
  .array(
    z
      .string()
      .max(321)
      .regex(/^[^=]+=/, "must be KEY=VALUE"),
  )
  .max(LABELS_ASKED_MAX);

const Time = z.iso.datetime({ offset: true }).max(40);

/** At or after the first time, and before the second. */
export const created = { createdAfter: Time.optional(), createdBefore: Time.optional() };

export const owned = {
  /** The owner of the items. Absent: every owner that the caller can see. */
  owner: Owner.optional(),
};

export const paged = {
  /** The `next` of an earlier answer. */
  cursor: z.string().max(1000).optional(),
  /** Absent: all. */
  limit: z.int().min(1).max(PAGE_MAX).optional(),
};

/** Cursor for the next page; null at the end. */
export const next = { next: z.string().nullable() };
