import { z } from "zod";

/** Arguments and answers of the station's verbs about agents' files. Paths are absolute. */

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
  /** Another one is meant by the name: this one is found by its path only. */
  hidden: z.boolean(),
  description: z.string(),
  fault: AgentFault.nullable(),
});
export type AgentView = z.infer<typeof AgentView>;

/** What a file asks for beyond what any agent may do, against what was agreed to before. */
export const AgentTrust = z.object({
  path: z.string(),
  origin: AgentOrigin,
  status: z.enum(["nothing to trust", "trusted", "not trusted", "cannot be trusted", "broken"]),
  /** Something was agreed to once, with another content. */
  changed: z.boolean(),
  rights: z.array(z.object({ text: z.string(), never: z.string().optional(), change: z.enum(["added", "kept", "removed"]) })),
  /** Of the content that all this is said of; null for a file that cannot be read. */
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
