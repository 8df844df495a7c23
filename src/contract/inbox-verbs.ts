import { z } from "zod";
import { DrivenKind } from "./driven-kinds.ts";
import { Owner } from "./owner.ts";
import { QuestionId } from "./run.ts";

/** What waits for a person, over all runs and driven things. */

/**
 * What has to be said: whether a `tool` may be used, a `budget` exceeded, or how a run that is `stuck` goes on; of a
 * workflow an `approval`, of a spec a `gate`, of a merge a `conflict`, of a ship whether to `merge`, or its `failure`;
 * what becomes of a sandbox of no run that stays `unresponsive` whatever was tried.
 */
export const InboxAsks = z.enum(["tool", "budget", "stuck", "approval", "gate", "conflict", "merge", "failure", "unresponsive"]);

export const InboxItem = z.object({
  of: z.object({ kind: z.enum(["run", "sandbox", ...DrivenKind.options]), id: z.string() }),
  owner: Owner,
  /** As lists of its kind show it. */
  title: z.string(),
  asks: InboxAsks,
  text: z.string(),
  /** Of a run, which may have several. */
  question: QuestionId.nullable(),
  /** The number of its last event; of a sandbox, since when it asks. A new question has another one. */
  seq: z.int().nonnegative(),
  /** When something last happened there. */
  at: z.string(),
});
export type InboxItem = z.infer<typeof InboxItem>;

export const Inbox = z.object({
  /** The newest first. */
  items: z.array(InboxItem),
  /** False where there were more than are looked at. */
  isWhole: z.boolean(),
});
export type Inbox = z.infer<typeof Inbox>;
