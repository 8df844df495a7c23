import { z } from "zod";
import { defineEvent } from "./define-event.ts";
import { DrivenEvent, drivenFamily } from "./driven-event.ts";
import type { NewEventOf } from "./event-family.ts";
import { RunId, SessionId } from "./run.ts";
import { BranchKind, CommitHash, PullRequest, ShipError, ShipStep, ShipTarget, TestEvidence } from "./ship.ts";
import { SpecId } from "./spec.ts";

/**
 * The events of a ship, in the stream `ship/<id>`, besides those that all driven things share. Each step's intent
 * (`ship.step_started`) comes before its effect, what came of it after. No event holds a token.
 */

export const ShipCreated = defineEvent("ship.created", 1, {
  session: SessionId,
  run: RunId.nullable(),
  /** Whose work it is; absent when it is that of a run alone. */
  spec: SpecId.optional(),
  target: ShipTarget,
  branch: z.object({ kind: BranchKind, ticket: z.string().max(64).nullable(), slug: z.string().max(25) }),
  title: z.string().max(200),
  body: z.string().max(20_000),
  author: z.object({ name: z.string(), email: z.string() }),
  tests: TestEvidence,
  /** Whether it is merged without being asked again. */
  merge: z.boolean(),
  includeConfiguration: z.boolean(),
  /** Whether files that cannot be committed may stay behind. */
  leaveOut: z.boolean(),
});
export const ShipStepStarted = defineEvent("ship.step_started", 1, {
  step: ShipStep,
  attempt: z.int().positive(),
});
/** A step did not succeed. `nextAt`: when it is tried again; null: not by itself. */
export const ShipStepFailed = defineEvent("ship.step_failed", 1, {
  step: ShipStep,
  attempt: z.int().positive(),
  error: ShipError,
  nextAt: z.iso.datetime().nullable(),
});
/** The changes are a commit of our own, which is kept until it is elsewhere. */
export const ShipCommitted = defineEvent("ship.committed", 1, {
  commit: CommitHash,
  base: CommitHash,
  files: z.int().positive(),
  leftOut: z.int().nonnegative(),
  /** Of the repository that the base is in. */
  borrows: z.string().max(4096),
});
/** The remote has it, as was read there. */
export const ShipPushed = defineEvent("ship.pushed", 1, {
  branch: z.string().max(255),
  commit: CommitHash,
  into: z.string().max(255),
  /** What the remote's hooks wrote: data. */
  said: z.string().max(1000).optional(),
});
export const ShipRequested = defineEvent("ship.requested", 1, { request: PullRequest });
/** The remote says that it can be merged. */
export const ShipChecked = defineEvent("ship.checked", 1, {});
/** The remote's branch has it, as was read there. */
export const ShipMerged = defineEvent("ship.merged", 1, { commit: CommitHash });
/** The branch is gone at the remote; or it is kept, because it is not ours alone any more. */
export const ShipBranchRemoved = defineEvent("ship.branch_removed", 1, { branch: z.string().max(255), isGone: z.boolean() });
/** Somebody wants it merged. */
export const ShipMergeAsked = defineEvent("ship.merge_asked", 1, { by: z.string() });
/** Somebody wants it tried again. */
export const ShipResumed = defineEvent("ship.resumed", 1, { by: z.string() });
/** An open ship takes up other options. What is absent stays as it is. */
export const ShipOptionsChanged = defineEvent("ship.options_changed", 1, {
  by: z.string(),
  target: ShipTarget.optional(),
  branch: z.object({ kind: BranchKind, ticket: z.string().max(64).nullable(), slug: z.string().max(25) }).optional(),
  title: z.string().max(200).optional(),
  body: z.string().max(20_000).optional(),
  tests: TestEvidence.optional(),
  includeConfiguration: z.boolean().optional(),
  leaveOut: z.boolean().optional(),
});
/** Of one that was cancelled: its pull request is closed, its branch is kept. */
export const ShipClosed = defineEvent("ship.closed", 1, {});

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
export const shipEvents = drivenFamily(all);
export type ShipEvent = z.infer<typeof ShipEvent>;
/** With those that everything driven has. */
export const ShipLogEvent = z.union([DrivenEvent, ShipEvent]);
export type ShipLogEvent = z.infer<typeof ShipLogEvent>;
export type NewShipEvent = NewEventOf<ShipEvent>;
