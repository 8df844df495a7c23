import { z } from "zod";
import { JobEvent, jobFamily } from "../durable/durable-event.ts";
import { concerns, defineEvent } from "../event/define-event.ts";
import type { NewEventOf } from "../event/event-family.ts";
import { RunId, SessionId } from "../ids.ts";
import { SpecId } from "../spec/spec.ts";
import { BranchKind, CommitHash, PullRequest, ShipError, ShipStep, ShipTarget, TestEvidence } from "./ship.ts";

/**
 * The events of a ship, in the stream `ship/<id>`, in addition to those of all durable jobs. Each step's intent
 * (`ship.step_started`) comes before its effect, and its outcome after. No event contains a token.
 */

export const ShipCreated = defineEvent("ship.created", 1, concerns("facts", "terminal"), {
  session: SessionId,
  run: RunId.nullable(),
  /** The spec whose work it is; absent if it ships only a run. */
  spec: SpecId.optional(),
  target: ShipTarget,
  branch: z.object({ kind: BranchKind, ticket: z.string().max(64).nullable(), slug: z.string().max(25) }),
  title: z.string().max(200),
  body: z.string().max(20_000),
  author: z.object({ name: z.string(), email: z.string() }),
  tests: TestEvidence,
  /** Whether to merge without asking again. */
  merge: z.boolean(),
  includeConfiguration: z.boolean(),
  /** Whether files that cannot be committed may be omitted. */
  leaveOut: z.boolean(),
});
export const ShipStepStarted = defineEvent("ship.step_started", 1, concerns("facts", "terminal"), {
  step: ShipStep,
  attempt: z.int().positive(),
});
/** A step failed. `nextAt` is the time of the next attempt; null if there is no automatic one. */
export const ShipStepFailed = defineEvent("ship.step_failed", 1, concerns("facts", "terminal"), {
  step: ShipStep,
  attempt: z.int().positive(),
  error: ShipError,
  nextAt: z.iso.datetime().nullable(),
});
/** The changes are in a commit of ours, which we keep until the remote has it. */
export const ShipCommitted = defineEvent("ship.committed", 1, concerns("facts", "terminal", "console"), {
  commit: CommitHash,
  base: CommitHash,
  files: z.int().positive(),
  leftOut: z.int().nonnegative(),
  /** The repository that contains the base. */
  borrows: z.string().max(4096),
});
/** The remote has the commit, as read back from it. */
export const ShipPushed = defineEvent("ship.pushed", 1, concerns("facts", "terminal", "console"), {
  branch: z.string().max(255),
  commit: CommitHash,
  into: z.string().max(255),
  /** The output of the remote's hooks: untrusted data. */
  said: z.string().max(1000).optional(),
});
export const ShipRequested = defineEvent("ship.requested", 1, concerns("facts", "terminal", "console"), { request: PullRequest });
/** The remote reports that it can be merged. */
export const ShipChecked = defineEvent("ship.checked", 1, concerns("facts", "terminal", "console"), {});
/** The remote's branch has the change, as read back from it. */
export const ShipMerged = defineEvent("ship.merged", 1, concerns("facts", "terminal", "console"), { commit: CommitHash });
/** The branch was removed from the remote, or kept because it contains other commits. */
export const ShipBranchRemoved = defineEvent("ship.branch_removed", 1, concerns("facts", "terminal", "console"), {
  branch: z.string().max(255),
  isGone: z.boolean(),
});
/** A user requested the merge. */
export const ShipMergeAsked = defineEvent("ship.merge_asked", 1, concerns("facts", "terminal"), { by: z.string() });
/** A user requested another attempt. */
export const ShipResumed = defineEvent("ship.resumed", 1, concerns("facts", "terminal"), { by: z.string() });
/** The options of an open ship changed. Absent options are unchanged. */
export const ShipOptionsChanged = defineEvent("ship.options_changed", 1, concerns("facts", "terminal"), {
  by: z.string(),
  target: ShipTarget.optional(),
  branch: z.object({ kind: BranchKind, ticket: z.string().max(64).nullable(), slug: z.string().max(25) }).optional(),
  title: z.string().max(200).optional(),
  body: z.string().max(20_000).optional(),
  tests: TestEvidence.optional(),
  includeConfiguration: z.boolean().optional(),
  leaveOut: z.boolean().optional(),
});
/** After a cancellation: the pull request is closed, and the branch is kept. */
export const ShipClosed = defineEvent("ship.closed", 1, concerns("facts", "terminal", "console"), {});

const all = [
  ShipCreated,
  ShipStepStarted,
  ShipStepFailed,
  ShipCommitted,
  ShipPushed,
  ShipRequested,
  ShipChecked,
  ShipMerged,
  ShipBranchRemoved,
  ShipMergeAsked,
  ShipResumed,
  ShipOptionsChanged,
  ShipClosed,
] as const;
export const ShipEvent = z.discriminatedUnion("type", all);
export const shipEvents = jobFamily(all);
export type ShipEvent = z.infer<typeof ShipEvent>;
/** Including the events of all durable jobs. */
export const ShipLogEvent = z.union([JobEvent, ShipEvent]);
export type ShipLogEvent = z.infer<typeof ShipLogEvent>;
export type NewShipEvent = NewEventOf<ShipEvent>;
