import { z } from "zod";
import { type Handlers, handle } from "../event/handlers.ts";
import { JsonValue } from "../json-value.ts";
import { next, owned, paged } from "../label/list-filter.ts";
import { LOCAL_OWNER, Owner } from "../token/owner.ts";
import { type JobEvent, JobFinish, JobWaits } from "./durable-event.ts";

export const JobStatus = z.enum(["running", "waiting", "paused", "ended"]);
export type JobStatus = z.infer<typeof JobStatus>;

/** The head of a durable job's stream, so that lists need not fold the stream. */
export const JobFacts = z.object({
  id: z.string(),
  title: z.string(),
  owner: Owner,
  parent: z.string().nullable(),
  /** `running`: there is work to do, even if no process is doing it right now. */
  status: JobStatus,
  /** Null while there is work to do. */
  waits: JobWaits.nullable(),
  paused: z.object({ by: z.string(), text: z.string() }).nullable(),
  cancelRequested: z.object({ by: z.string(), text: z.string() }).nullable(),
  finish: JobFinish.nullable(),
  /** A description of how it ended. */
  text: z.string().nullable(),
  createdAt: z.string(),
  endedAt: z.string().nullable(),
  /** Facts of its kind, or null. */
  own: JsonValue,
});
export type JobFacts = z.infer<typeof JobFacts>;
/** Part of the projection version of every kind. */
export const DRIVEN_FACTS_VERSION = 1;

export const emptyJobFacts = (): JobFacts => ({
  id: "",
  title: "",
  owner: LOCAL_OWNER,
  parent: null,
  status: "running",
  waits: null,
  paused: null,
  cancelRequested: null,
  finish: null,
  text: null,
  createdAt: "",
  endedAt: null,
  own: null,
});

/** Folds any event of a durable job's stream. An event that is specific to its kind means that it is working. */
export function applyToJobFacts(facts: JobFacts, event: { type: string }): void {
  if (handle(handlers, event, facts) === undefined) facts.waits = null;
  facts.status = statusOf(facts);
}

/** The handlers return the facts they changed. */
const handlers: Handlers<JobEvent, JobFacts, JobFacts> = {
  "driven.created": ({ at, data: { id, title, owner = LOCAL_OWNER, parent, createdAt = at } }, facts) =>
    Object.assign(facts, { id, title, owner, parent, createdAt }),
  "driven.waiting": ({ data }, facts) => Object.assign(facts, { waits: data }),
  "driven.paused": ({ data }, facts) => Object.assign(facts, { paused: data }),
  "driven.continued": (_, facts) => Object.assign(facts, { paused: null, waits: null }),
  "driven.cancel_requested": ({ data }, facts) => Object.assign(facts, { cancelRequested: data, paused: null, waits: null }),
  "driven.ended": ({ at, data: { finish, text } }, facts) => Object.assign(facts, { finish, text, endedAt: at, waits: null, paused: null }),
  "driven.reopened": (_, facts) => Object.assign(facts, { finish: null, text: null, endedAt: null, cancelRequested: null, waits: null }),
};

function statusOf({ finish, paused, waits }: JobFacts): JobStatus {
  if (finish !== null) return "ended";
  if (paused !== null) return "paused";
  return waits === null ? "running" : "waiting";
}

/** Returns whether there is work for a driver. */
export function needsDriving({ finish, paused, waits }: JobFacts): boolean {
  return finish === null && paused === null && waits === null;
}

/** A durable job as plain data, the same for every caller. */
export const JobView = JobFacts.extend({
  /** The damage found in its log. */
  damage: z.string().nullable(),
  /** The sequence of the last event that this view includes. */
  seq: z.int().nonnegative(),
  updatedAt: z.string(),
});
export type JobView = z.infer<typeof JobView>;

/** Filters the jobs of a kind. Absent members do not filter. */
export const ListJobs = z.strictObject({
  /** An id prefix. */
  id: z
    .string()
    .regex(/^[a-z]{1,8}_[a-z2-7]{0,12}$/, "an id looks like wf_k3v7q2m5x4ab")
    .optional(),
  state: z.enum(["open", "ended"]).optional(),
  status: JobStatus.optional(),
  finish: JobFinish.optional(),
  /** Only jobs that wait for a person. */
  needsPerson: z.boolean().optional(),
  /** The stream of their parent; null: only jobs without a parent. */
  parent: z.string().max(200).nullable().optional(),
  ...owned,
  ...paged,
});
export type ListJobs = z.input<typeof ListJobs>;

/** Creates the schema of a page of durable jobs, last changed first, like lists of runs. */
export const jobListOf = <View extends z.ZodType>(view: View) =>
  z.object({
    items: z.array(view),
    /** The total over all pages, as far as it was counted. */
    total: z.int().nonnegative(),
    /** Whether there may be more than `total`. */
    totalIsMinimum: z.boolean(),
    ...next,
  });

export const JobList = jobListOf(JobView);
export type JobList = z.infer<typeof JobList>;
/** The list for a caller that sees no jobs. */
export const noJob = { items: [], total: 0, totalIsMinimum: false, next: null };
