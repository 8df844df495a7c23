import { z } from "zod";
import { jobListOf, ListJobs } from "../durable/durable-job.ts";
import { RunId, SessionId } from "../ids.ts";
import { owned, paged } from "../label/list-filter.ts";
import { SecretName } from "../secret/secret-verbs.ts";
import { SpecId } from "../spec/spec.ts";
import { Owner } from "../token/owner.ts";
import { BranchKind, CommitHash, ForgeKind, PullRequest, ShipError, ShipId, ShipStep, ShipTarget, TestEvidence } from "./ship.ts";
import { ShipEvent } from "./ship-event.ts";

/** Arguments and answers of the station's verbs for ships, which bring the changes of a run to a remote. */

export const StartShip = z.strictObject({
  /**
   * An ended run, a session, or a completed spec, by id or name. Or the id of an open ship, which takes over the other
   * options given here.
   */
  of: z.string().min(1).max(255),
  /**
   * The repository: https://…, or the absolute path of a bare repository here. Default: the one that the work began
   * from.
   */
  to: z.string().min(1).max(4096).optional(),
  forge: ForgeKind.optional(),
  /** The branch to merge into. Default: the one that the work began from, or the remote's default. */
  into: z.string().min(1).max(255).optional(),
  /** The name of the secret to send. Default: GITHUB_TOKEN or GITEA_TOKEN, depending on the forge. */
  token: SecretName.optional(),
  /** Default: false. */
  allowPrivate: z.boolean().optional(),
  /** Default: `feature`. */
  kind: BranchKind.optional(),
  ticket: z
    .string()
    .max(41)
    .regex(/^#?[A-Za-z0-9](?:\.?[A-Za-z0-9_-])*$/, "must be letters and digits, with single dots, dashes or underscores between them")
    .optional(),
  /** Default: the first line of the run's task, or of the spec's idea. */
  title: z.string().trim().min(1).max(200).optional(),
  body: z.string().max(20_000).optional(),
  /** Merge as soon as possible, without asking again. Default: false. */
  merge: z.boolean().optional(),
  /** The command that runs the project's tests, if it cannot be detected. */
  tests: z.string().min(1).max(500).optional(),
  /** Why it is shipped without passing tests. */
  withoutTests: z.string().trim().min(1).max(500).optional(),
  /** Include files that outside tools act on. Default: false. */
  includeConfiguration: z.boolean().optional(),
  /** Ship even if files cannot be committed and are omitted. Default: false. */
  leaveOut: z.boolean().optional(),
});
export type StartShip = z.input<typeof StartShip>;

/**
 * `working`: a step is in progress; `waiting`: the next attempt has a time; `open`: the pull request exists, and a
 * person must request the merge; `blocked`: a person must act; `paused`: no new step begins.
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
  /** The current step, or the last one tried; null if none remain. */
  step: ShipStep.nullable(),
  target: ShipTarget,
  title: z.string(),
  /** Null until it is pushed. */
  branch: z.string().nullable(),
  into: z.string().nullable(),
  commit: CommitHash.nullable(),
  files: z.int().nullable(),
  request: PullRequest.nullable(),
  /** The commit on the target branch with the change. */
  merged: CommitHash.nullable(),
  tests: TestEvidence,
  /** What a person must decide or do, while the ship waits for one. */
  asks: z.string().nullable(),
  /** Why it waits or is blocked. */
  error: ShipError.nullable(),
  attempts: z.int().nonnegative(),
  nextAt: z.iso.datetime().nullable(),
  createdAt: z.string(),
  updatedAt: z.string(),
  /** The sequence of the last event that this view includes. */
  seq: z.int().nonnegative(),
});
export type ShipView = z.infer<typeof ShipView>;

export const ShipDetails = ShipView.extend({ history: z.array(ShipEvent) });
export type ShipDetails = z.infer<typeof ShipDetails>;

const WATCH_SECONDS_MAX = 60;
/** Waits until there is an event after this one, or the time is up. */
export const WatchShip = z.strictObject({
  afterSeq: z.int().nonnegative(),
  seconds: z.number().min(0).max(WATCH_SECONDS_MAX).default(30),
});
export type WatchShip = z.input<typeof WatchShip>;

/** Filters ships. Absent members do not filter. */
export const ListShips = z.strictObject({
  id: ListJobs.shape.id,
  state: z.enum(["open", "ended"]).optional(),
  /** Only ships that wait for a person. */
  needsPerson: z.boolean().optional(),
  ...owned,
  ...paged,
});
export type ListShips = z.input<typeof ListShips>;
export const ShipList = jobListOf(ShipView);
export type ShipList = z.infer<typeof ShipList>;
