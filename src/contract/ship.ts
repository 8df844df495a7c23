import { z } from "zod";
import { RunId } from "./run.ts";
import { SecretName } from "./secret-verbs.ts";

/** The words of shipping: how the changes of a run come to a remote's branch, as a pull request that is merged. */

export const ShipId = z.string().regex(/^ship_[a-z2-7]{12}$/, "a ship's id looks like ship_k3v7q2m5x4ab");
export type ShipId = z.infer<typeof ShipId>;

/** What stands first in a branch's name. */
export const BranchKind = z.enum(["feature", "fix", "hotfix", "refactor", "docs", "test", "chore"]);
export type BranchKind = z.infer<typeof BranchKind>;

/** Whose API pull requests are made by; `git`: nobody's, a merge request is a ref with a file. */
export const ForgeKind = z.enum(["github", "gitea", "git"]);
export type ForgeKind = z.infer<typeof ForgeKind>;

const branchName = z.string().min(1).max(255);
export const CommitHash = z.string().regex(/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/, "a commit's whole name");

/** Where it goes. */
export const ShipTarget = z.object({
  forge: ForgeKind,
  /** Of the repository, without a name or password: https://…, http://…, or the absolute path of a bare repository. */
  remote: z.string().min(1).max(4096),
  /** The branch that it shall be merged into; null: the remote's default. */
  into: branchName.nullable(),
  /** The name of the secret that is sent along; null: none. */
  token: SecretName.nullable(),
  /** Also at private addresses, and without TLS. */
  allowPrivate: z.boolean(),
});
export type ShipTarget = z.infer<typeof ShipTarget>;

/** That tests ran, as the run's own events have it; or why it is shipped without. */
export const TestEvidence = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("ran"),
    run: RunId,
    /** The events of the command's request and of its end. */
    requestedSeq: z.int().positive(),
    endedSeq: z.int().positive(),
    command: z.string().max(500),
    exitCode: z.int(),
    at: z.iso.datetime(),
  }),
  z.object({ kind: z.literal("waived"), reason: z.string().min(1).max(500) }),
]);
export type TestEvidence = z.infer<typeof TestEvidence>;

/** What is done, one after the other. `close` is a cancelled one's. */
export const ShipStep = z.enum(["commit", "push", "request", "check", "merge", "remove_branch", "close"]);
export type ShipStep = z.infer<typeof ShipStep>;

export const ShipError = z.object({ code: z.string(), message: z.string().max(2000), hint: z.string().max(1000).optional() });
export type ShipError = z.infer<typeof ShipError>;

export const PullRequest = z.object({
  /** A forge's number; of a plain remote the name of the ref. */
  id: z.string().max(300),
  /** For people. */
  url: z.string().max(4096),
});
export type PullRequest = z.infer<typeof PullRequest>;
