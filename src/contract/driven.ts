import { z } from "zod";
import { type DrivenEvent, DrivenFinish, DrivenWaits } from "./driven-event.ts";
import { JsonValue } from "./json-value.ts";
import { next, owned, paged } from "./list-filter.ts";
import { LOCAL_OWNER, Owner } from "./owner.ts";

export const DrivenStatus = z.enum(["running", "waiting", "paused", "ended"]);
export type DrivenStatus = z.infer<typeof DrivenStatus>;

/** What the log keeps of a driven thing beside its events, so that lists fold nothing. */
export const DrivenFacts = z.object({
  id: z.string(),
  title: z.string(),
  owner: Owner,
  parent: z.string().nullable(),
  /** `running`: there is something to do, whether or not somebody does it just now. */
  status: DrivenStatus,
  /** Null while there is something to do. */
  waits: DrivenWaits.nullable(),
  paused: z.object({ by: z.string(), text: z.string() }).nullable(),
  cancelRequested: z.object({ by: z.string(), text: z.string() }).nullable(),
  finish: DrivenFinish.nullable(),
  /** What is said of its end. */
  text: z.string().nullable(),
  createdAt: z.string(),
  endedAt: z.string().nullable(),
  /** What its kind adds; null for one that adds nothing. */
  own: JsonValue,
});
export type DrivenFacts = z.infer<typeof DrivenFacts>;
/** Part of the version of every kind's heads. */
export const DRIVEN_FACTS_VERSION = 1;

export const emptyDrivenFacts = (): DrivenFacts => ({
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

/** Folds any event of a driven thing's stream, its kind's own ones included: those say that it is at work. */
export function applyToDrivenFacts(facts: DrivenFacts, event: DrivenEvent | { type: string; at: string }): void {
  const { type, data } = event as DrivenEvent;
  switch (type) {
    case "driven.created": {
      const { id, title, owner = LOCAL_OWNER, parent, createdAt = event.at } = data;
      Object.assign(facts, { id, title, owner, parent, createdAt });
      return;
    }
    case "driven.waiting":
      facts.waits = data;
      break;
    case "driven.paused":
      facts.paused = data;
      break;
    case "driven.continued":
      facts.paused = null;
      facts.waits = null;
      break;
    case "driven.cancel_requested":
      facts.cancelRequested = data;
      facts.paused = null;
      facts.waits = null;
      break;
    case "driven.ended":
      Object.assign(facts, { finish: data.finish, text: data.text, endedAt: event.at, waits: null, paused: null });
      break;
    case "driven.reopened":
      Object.assign(facts, { finish: null, text: null, endedAt: null, cancelRequested: null, waits: null });
      break;
    default:
      facts.waits = null;
  }
  facts.status = statusOf(facts);
}

function statusOf({ finish, paused, waits }: DrivenFacts): DrivenStatus {
  if (finish !== null) return "ended";
  if (paused !== null) return "paused";
  return waits === null ? "running" : "waiting";
}

/** Whether there is something to do for whoever drives it. */
export function needsDriving({ finish, paused, waits }: DrivenFacts): boolean {
  return finish === null && paused === null && waits === null;
}

/** A driven thing as it is shown: plain data, whatever process asks. */
export const DrivenView = DrivenFacts.extend({
  /** What was found wrong with its log. */
  damage: z.string().nullable(),
  /** The number of the last event that is in this view. */
  seq: z.int().nonnegative(),
  updatedAt: z.string(),
});
export type DrivenView = z.infer<typeof DrivenView>;

/** Which things of a kind; what is absent is not asked about. */
export const ListDriven = z.strictObject({
  /** The beginning of their ids. */
  id: z
    .string()
    .regex(/^[a-z]{1,8}_[a-z2-7]{0,12}$/, "an id looks like wf_k3v7q2m5x4ab")
    .optional(),
  state: z.enum(["open", "ended"]).optional(),
  status: DrivenStatus.optional(),
  finish: DrivenFinish.optional(),
  /** Those that wait for a person. */
  needsPerson: z.boolean().optional(),
  /** The stream of the thing that they are parts of; null: those that are nobody's. */
  parent: z.string().max(200).nullable().optional(),
  ...owned,
  ...paged,
});
export type ListDriven = z.input<typeof ListDriven>;

/** A page of driven things of one kind, the last changed first, as lists of runs are. */
export const drivenListOf = <View extends z.ZodType>(view: View) =>
  z.object({
    items: z.array(view),
    /** How many there are, on whatever page, as far as somebody counted. */
    total: z.int().nonnegative(),
    /** Whether there may be more than that. */
    totalIsMinimum: z.boolean(),
    ...next,
  });

export const DrivenList = drivenListOf(DrivenView);
export type DrivenList = z.infer<typeof DrivenList>;
/** Of somebody who sees none. */
export const noDriven = { items: [], total: 0, totalIsMinimum: false, next: null };
