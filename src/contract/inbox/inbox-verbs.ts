import { z } from "zod";
import { JobKind } from "../durable/durable-kinds.ts";
import { QuestionId } from "../run/run.ts";
import { Owner } from "../token/owner.ts";

/** Everything that waits for a person: runs, sandboxes and durable jobs. */

/**
 * What the person decides. In a run: whether a `tool` may be used, a `budget` exceeded, or how a `stuck` run continues.
 * In a workflow an `approval`, in a spec a `gate`, in a merge a `conflict`, in a ship whether to `merge`, or what to do
 * about its `failure`. For a sandbox outside a run that stays `unresponsive` after restarts: what to do with it.
 */
export const InboxAsks = z.enum(["tool", "budget", "stuck", "approval", "gate", "conflict", "merge", "failure", "unresponsive"]);

export const InboxItem = z.object({
  of: z.object({ kind: z.enum(["run", "sandbox", ...JobKind.options]), id: z.string() }),
  owner: Owner,
  /** The title in lists of its kind. */
  title: z.string(),
  asks: InboxAsks,
  text: z.string(),
  /** Only for a run, which may have several questions. */
  question: QuestionId.nullable(),
  /** The sequence of its last event; for a sandbox, when it began to ask, in ms. Each question has another. */
  seq: z.int().nonnegative(),
  /** The time of the last event. */
  at: z.string(),
});
export type InboxItem = z.infer<typeof InboxItem>;

export const Inbox = z.object({
  /** Newest first. */
  items: z.array(InboxItem),
  /** False if there were more items than are searched. */
  isWhole: z.boolean(),
});
export type Inbox = z.infer<typeof Inbox>;
