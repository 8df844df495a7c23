import { z } from "zod";
import { drivenListOf } from "./driven.ts";
import { owned, paged } from "./list-filter.ts";
import { Owner } from "./owner.ts";
import { RunId, SessionId } from "./run.ts";
import { SecretName } from "./secret-verbs.ts";
import { BranchKind, CommitHash, ForgeKind, PullRequest, ShipError, ShipId, ShipStep, ShipTarget, TestEvidence } from "./ship.ts";
import { ShipEvent } from "./ship-event.ts";
import { SpecId } from "./spec.ts";

/** Arguments and answers of the station's verbs about ships: changes of a run on their way to a remote. */

export const StartShip = z.strictObject({
  /**
   * A run that ended, a session, or a spec that is done, by id or name. Or an open ship by its id, which takes up what
   * else is said here.
   */
  of: z.string().min(1).max(255),
  /** A repository: https://…, or the absolute path of a bare one here. Absent: the one that the work began from. */
  to: z.string().min(1).max(4096).optional(),
  forge: ForgeKind.optional(),
  /** The branch to merge into. Absent: the one that the work began from, or the remote's default. */
  into: z.string().min(1).max(255).optional(),
  /** The name of the secret to be sent along. Absent: GITHUB_TOKEN or GITEA_TOKEN, as the forge wants. */
  token: SecretName.optional(),
  /** Absent: no. */
  allowPrivate: z.boolean().optional(),
  /** Absent: feature. */
  kind: BranchKind.optional(),
  ticket: z
    .string()
    .max(41)
    .regex(/^#?[A-Za-z0-9](?:\.?[A-Za-z0-9_-])*$/, "a ticket is letters and digits, with single dots, dashes or underscores between them")
    .optional(),
  /** Absent: the first line of the run's task, or of the spec's idea. */
  title: z.string().trim().min(1).max(200).optional(),
  body: z.string().max(20_000).optional(),
  /** Merge it as soon as it can be, without being asked again. Absent: no. */
  merge: z.boolean().optional(),
  /** The command that runs the project's tests, if it cannot be detected. */
  tests: z.string().min(1).max(500).optional(),
  /** Why it is shipped without passing tests. */
  withoutTests: z.string().trim().min(1).max(500).optional(),
  /** Also files that tools outside act on. Absent: no. */
  includeConfiguration: z.boolean().optional(),
  /** Although files stay behind that cannot be committed. Absent: no. */
  leaveOut: z.boolean().optional(),
});
export type StartShip = z.input<typeof StartShip>;

/**
 * `working`: something is being done; `waiting`: it is tried again at a time; `open`: the pull request is there, and
 * somebody has to say that it is merged; `blocked`: somebody has to look; `paused`: nothing new is begun.
 */
export const ShipStatus = z.enum(["working", "waiting", "open", "blocked", "paused", "merged", "cancelled"]);
export type ShipStatus = z.infer<typeof ShipStatus>;

export const ShipView = z.object({
  id: ShipId,
  owner: Owner,
  session: SessionId,
  run: RunId.nullable(),
  /** The spec whose work it is. */
  spec: SpecId.nullable(),
  status: ShipStatus,
  /** What is done, or was tried last; null when nothing is left to do. */
  step: ShipStep.nullable(),
  target: ShipTarget,
  title: z.string(),
  /** Null until it is pushed. */
  branch: z.string().nullable(),
  into: z.string().nullable(),
  commit: CommitHash.nullable(),
  files: z.int().nullable(),
  request: PullRequest.nullable(),
  /** The commit of the target's branch that has it. */
  merged: CommitHash.nullable(),
  tests: TestEvidence,
  /** What a person has to say or to do, while it waits for one. */
  asks: z.string().nullable(),
  /** Why it waits or is blocked. */
  error: ShipError.nullable(),
  attempts: z.int().nonnegative(),
  nextAt: z.iso.datetime().nullable(),
  createdAt: z.string(),
  updatedAt: z.string(),
  /** The number of the last event that is in this view. */
  seq: z.int().nonnegative(),
});
export type ShipView = z.infer<typeof ShipView>;

export const ShipDetails = ShipView.extend({ history: z.array(ShipEvent) });
export type ShipDetails = z.infer<typeof ShipDetails>;

const WATCH_SECONDS_MAX = 60;
/** What is waited for: something after this event, or the end of the time. */
export const WatchShip = z.strictObject({
  afterSeq: z.int().nonnegative(),
  seconds: z.number().min(0).max(WATCH_SECONDS_MAX).default(30),
});
export type WatchShip = z.input<typeof WatchShip>;

/** Which ships; what is absent is not asked about. */
export const ListShips = z.strictObject({
  state: z.enum(["open", "ended"]).optional(),
  /** Those that somebody has to say something to. */
  needsPerson: z.boolean().optional(),
  ...owned,
  ...paged,
});
export type ListShips = z.input<typeof ListShips>;
export const ShipList = drivenListOf(ShipView);
export type ShipList = z.infer<typeof ShipList>;
