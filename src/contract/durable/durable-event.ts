import { z } from "zod";
import { type AnyEventDefinition, concerns, defineEvent } from "../event/define-event.ts";
import { type EventFamily, eventFamily, type NewEventOf } from "../event/event-family.ts";
import { Owner } from "../token/owner.ts";

/**
 * The events that all durable jobs share: workflows, specs, ships and merges. Each kind adds its own to the same stream
 * (`jobFamily`).
 */

const by = z.string().max(200);
const text = z.string().max(2000);

/** How a job ended. */
export const JobFinish = z.enum(["completed", "failed", "cancelled", "timed_out"]);
export type JobFinish = z.infer<typeof JobFinish>;

/** What a job waits for while no process drives it. */
export const JobWaits = z.object({
  /** The latest time to continue. */
  due: z.iso.datetime().nullable(),
  /** The streams (`run/…`, `workflow/…`) whose end it waits for. */
  children: z.array(z.string().max(200)).max(10_000),
  /** What a person is asked to decide or do. */
  person: text.nullable(),
  /** The external signal that it also waits for. */
  signal: text.nullable(),
});
export type JobWaits = z.infer<typeof JobWaits>;

/** The first event of each stream, repeated by a log compaction. */
export const JobCreated = defineEvent("driven.created", 1, concerns(), {
  id: z.string().max(64),
  title: z.string().max(200),
  owner: Owner.optional(),
  /** The stream of the parent job or run. */
  parent: z.string().max(200).nullable(),
  /** Set by a log compaction; otherwise the time of this event applies. */
  createdAt: z.iso.datetime().optional(),
});
/** The job is idle until one of these occurs. Any later event ends the wait. */
export const JobWaiting = defineEvent("driven.waiting", 1, concerns(), JobWaits.shape);
/** No new work begins until the job is continued. */
export const JobPaused = defineEvent("driven.paused", 1, concerns(), { by, text });
export const JobContinued = defineEvent("driven.continued", 1, concerns(), { by });
export const JobCancelRequested = defineEvent("driven.cancel_requested", 1, concerns(), { by, text });
export const JobEnded = defineEvent("driven.ended", 1, concerns(), { finish: JobFinish, text: text.nullable() });
/** An ended job continues. */
export const JobReopened = defineEvent("driven.reopened", 1, concerns(), { by });

const shared = [JobCreated, JobWaiting, JobPaused, JobContinued, JobCancelRequested, JobEnded, JobReopened] as const;
type SharedDefinition = (typeof shared)[number];
export const JobEvent = z.discriminatedUnion("type", shared);
export type JobEvent = z.infer<typeof JobEvent>;
export type NewJobEvent = NewEventOf<JobEvent>;

/** Returns the events of a kind: the shared ones and its own. */
export function jobFamily<const Definition extends AnyEventDefinition>(
  own: readonly Definition[],
): EventFamily<Definition | SharedDefinition> {
  return eventFamily<Definition | SharedDefinition>([...shared, ...own]);
}
