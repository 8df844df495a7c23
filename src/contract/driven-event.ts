import { z } from "zod";
import { type AnyEventDefinition, defineEvent } from "./define-event.ts";
import { type EventFamily, eventFamily, type NewEventOf } from "./event-family.ts";
import { Owner } from "./owner.ts";

/**
 * The events that everything driven has in common, whatever its kind: workflows, specs, ships, merges. A kind adds its
 * own to the same stream (`drivenFamily`).
 */

const by = z.string().max(200);
const text = z.string().max(2000);

/** How a thing ended. */
export const DrivenFinish = z.enum(["completed", "failed", "cancelled", "timed_out"]);
export type DrivenFinish = z.infer<typeof DrivenFinish>;

/** What a thing waits for that nobody drives meanwhile. */
export const DrivenWaits = z.object({
  /** Goes on at this time at the latest. */
  due: z.iso.datetime().nullable(),
  /** The streams (`run/…`, `workflow/…`) whose end it waits for. */
  children: z.array(z.string().max(200)).max(10_000),
  /** What a person is asked to decide or to do. */
  person: text.nullable(),
  /** What it waits for from outside, besides. */
  signal: text.nullable(),
});
export type DrivenWaits = z.infer<typeof DrivenWaits>;

/** The first event of each stream, and again of one that was retold. */
export const DrivenCreated = defineEvent("driven.created", 1, {
  id: z.string().max(64),
  title: z.string().max(200),
  owner: Owner.optional(),
  /** The stream of the thing that it is a part of. */
  parent: z.string().max(200).nullable(),
  /** Of one that was retold; otherwise it is the time of this event. */
  createdAt: z.iso.datetime().optional(),
});
/** Nothing is to be done until something of this happens. Any later event ends the waiting. */
export const DrivenWaiting = defineEvent("driven.waiting", 1, DrivenWaits.shape);
/** Nothing new is begun until it is continued. */
export const DrivenPaused = defineEvent("driven.paused", 1, { by, text });
export const DrivenContinued = defineEvent("driven.continued", 1, { by });
export const DrivenCancelRequested = defineEvent("driven.cancel_requested", 1, { by, text });
export const DrivenEnded = defineEvent("driven.ended", 1, { finish: DrivenFinish, text: text.nullable() });
/** It goes on after its end. */
export const DrivenReopened = defineEvent("driven.reopened", 1, { by });

const shared = [DrivenCreated, DrivenWaiting, DrivenPaused, DrivenContinued, DrivenCancelRequested, DrivenEnded, DrivenReopened] as const;
type SharedDefinition = (typeof shared)[number];
export const DrivenEvent = z.discriminatedUnion("type", shared);
export type DrivenEvent = z.infer<typeof DrivenEvent>;
export type NewDrivenEvent = NewEventOf<DrivenEvent>;

/** The events of a kind: those that all share, and its own. */
export function drivenFamily<const Definition extends AnyEventDefinition>(
  own: readonly Definition[],
): EventFamily<Definition | SharedDefinition> {
  return eventFamily<Definition | SharedDefinition>([...shared, ...own]);
}
