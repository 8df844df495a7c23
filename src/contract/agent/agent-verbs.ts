import { z } from "zod";

/** Arguments and answers of the station's verbs for agent files. Paths are absolute. */

/** Why a file cannot be used. */
export const AgentFault = z.object({
  code: z.string(),
  message: z.string(),
  hint: z.string().optional(),
  details: z.record(z.string(), z.unknown()).optional(),
  retryable: z.boolean(),
});
export type AgentFault = z.infer<typeof AgentFault>;

export const AgentOrigin = z.enum(["own", "built-in", "folder"]);
export type AgentOrigin = z.infer<typeof AgentOrigin>;

export const AgentView = z.object({
  name: z.string(),
  path: z.string(),
  origin: AgentOrigin,
  /** The name refers to another agent, so this one can only be found by its path. */
  hidden: z.boolean(),
  description: z.string(),
  fault: AgentFault.nullable(),
});
export type AgentView = z.infer<typeof AgentView>;

/** The rights that a file requests beyond those of any agent, compared with what was granted before. */
export const AgentTrust = z.object({
  path: z.string(),
  origin: AgentOrigin,
  status: z.enum(["nothing to trust", "trusted", "not trusted", "cannot be trusted", "broken"]),
  /** Rights were granted before, for different content. */
  changed: z.boolean(),
  rights: z.array(z.object({ text: z.string(), never: z.string().optional(), change: z.enum(["added", "kept", "removed"]) })),
  /** Digest of the content that this view describes; null if the file cannot be read. */
  digest: z.string().nullable(),
  fault: AgentFault.nullable(),
});
export type AgentTrust = z.infer<typeof AgentTrust>;

export const TrustedFile = z.object({
  path: z.string(),
  state: z.enum(["trusted", "changed since", "gone"]),
  at: z.string(),
  rights: z.array(z.string()),
});
export type TrustedFile = z.infer<typeof TrustedFile>;
