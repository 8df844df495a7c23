import { z } from "zod";

/** The kinds of durable jobs (ADR 41), by the names that users know. */
export const JobKind = z.enum(["workflow", "spec", "ship", "merge", "best"]);
export type JobKind = z.infer<typeof JobKind>;

/** The id prefix of each kind. */
export const jobIdPrefixes = { workflow: "wf", spec: "spec", ship: "ship", merge: "mrg", best: "best" } as const satisfies Record<
  JobKind,
  string
>;

/** A reference to a job. */
export const JobRef = z.object({ kind: JobKind, id: z.string() });
export type JobRef = z.infer<typeof JobRef>;
