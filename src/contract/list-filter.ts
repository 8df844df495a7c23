import { z } from "zod";
import { Owner } from "./owner.ts";

/** What lists of the station's things are asked for; what is absent is not asked about. */

const LABELS_ASKED_MAX = 10;
const PAGE_MAX = 10_000;

/** `KEY=VALUE`, each of which a thing must have. */
export const LabelsAsked = z
  .array(
    z
      .string()
      .max(321)
      .regex(/^[^=]+=/, "a label is asked for as KEY=VALUE"),
  )
  .max(LABELS_ASKED_MAX);

const Time = z.iso.datetime({ offset: true }).max(40);

/** From this time on, and before that one. */
export const created = { createdAfter: Time.optional(), createdBefore: Time.optional() };

export const owned = {
  /** Whose they are. Absent: everybody's whom the caller sees. */
  owner: Owner.optional(),
};

export const paged = {
  /** Where an earlier answer ended: its `next`. */
  cursor: z.string().max(1000).optional(),
  /** Absent: all. */
  limit: z.int().min(1).max(PAGE_MAX).optional(),
};

/** For the next page; null at the end. */
export const next = { next: z.string().nullable() };
