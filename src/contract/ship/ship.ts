import { z } from "zod";
import { RunId } from "../ids.ts";
import { SecretName } from "../secret/secret-verbs.ts";
import { branchKinds, forgeKinds } from "./ship-kinds.ts";

/** The vocabulary of shipping: how the changes of a run get to a remote's branch, as a merged pull request. */

export const ShipId = z.string().regex(/^ship_[a-z2-7]{12}$/, "a ship id looks like ship_k3v7q2m5x4ab");
export type ShipId = z.infer<typeof ShipId>;

export const BranchKind = z.enum(branchKinds);
export type BranchKind = z.infer<typeof BranchKind>;

export const ForgeKind = z.enum(forgeKinds);
export type ForgeKind = z.infer<typeof ForgeKind>;

const branchName = z.string().min(1).max(255);
export const CommitHash = z.string().regex(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/, "must be a complete commit hash");

/** The destination of a ship. */
export const ShipTarget = z.object({
  forge: ForgeKind,
  /**
   * The repository, without a user name or password: https://…, http://…, or the absolute path of a bare repository.
   */
  remote: z.string().min(1).max(4096),
  /** The branch to merge into; null: the remote's default. */
  into: branchName.nullable(),
  /** The name of the secret to send; null: none. */
  token: SecretName.nullable(),
  /** Whether private addresses and connections without TLS are allowed. */
  allowPrivate: z.boolean(),
});
export type ShipTarget = z.infer<typeof ShipTarget>;

/** Evidence from the run's own events that tests ran; or the reason for shipping without. */
export const TestEvidence = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("ran"),
    run: RunId,
    /** The sequences of the command's request and end. */
    requestedSeq: z.int().positive(),
    endedSeq: z.int().positive(),
    command: z.string().max(500),
    exitCode: z.int(),
    at: z.iso.datetime(),
  }),
  z.object({ kind: z.literal("waived"), reason: z.string().min(1).max(500) }),
]);
export type TestEvidence = z.infer<typeof TestEvidence>;

/** The steps in order. `close` only applies to a cancelled ship. */
export const ShipStep = z.enum(["commit", "push", "request", "check", "merge", "remove_branch", "close"]);
export type ShipStep = z.infer<typeof ShipStep>;

export const ShipError = z.object({ code: z.string(), message: z.string().max(2000), hint: z.string().max(1000).optional() });
export type ShipError = z.infer<typeof ShipError>;

export const PullRequest = z.object({
  /** The forge's number; for a plain remote the name of the ref. */
  id: z.string().max(300),
  /** An address for users. */
  url: z.string().max(4096),
});
export type PullRequest = z.infer<typeof PullRequest>;
