import { z } from "zod";
import { pageLimit } from "../contract/api/page-limit.ts";
import { reachOfMerge } from "../contract/api/required-scopes.ts";
import { auditName } from "../contract/audit/audit-text.ts";
import { JobList, ListJobs } from "../contract/durable/durable-job.ts";
import { JsonValue } from "../contract/json-value.ts";
import { MergeView, ResolveMerge, StartMerge } from "../contract/merge/merge-verbs.ts";
import { jobVerbs } from "./durable-jobs.ts";
import { type VerbsOf, verb, verbOfType } from "./verb.ts";

const MergeEventEntry = z.object({ seq: z.int().positive(), type: z.string(), version: z.int(), at: z.string(), data: JsonValue });

/**
 * Merges combine the changes of several sessions that started from the same base into one session. Git merges inside a
 * sandbox; an agent or a person resolves conflicts, never an arbitrary choice (ADR 45).
 */
export const merges = {
  /**
   * Starts a merge, and resolves at once. Throws `not_found`, `invalid` for sessions with different bases, `conflict`
   * for a session in use, `exists` for a name that is taken. `id` and `parent` make it a part of another job, which
   * must be able to find it again: an existing merge with this id is left unchanged.
   */
  start: verbOfType<(request: StartMerge, options?: { owner?: string; id?: string; parent?: string }) => Promise<MergeView>>()({
    path: "POST /v1/merges",
    body: StartMerge,
    answer: { status: 201, json: MergeView },
    reaches: reachOfMerge,
    audited: ({ name, agent }: z.output<typeof StartMerge>) => ({ name: auditName(name), agent: auditName(agent) }),
    scope: "run",
    owned: "by hand",
    summary: "Merge the changes of several sessions that started from the same base. The station drives the merge.",
  }),
  /**
   * Continues a merge that waits for a person. The caller has resolved the conflict in the session that the merge
   * names, or chooses sides here. The merge checks the resolution, and asks again if it is incomplete. Throws
   * `conflict` for a merge that waits for nothing, `invalid` for a file that is not in conflict.
   */
  resolve: verb({
    path: "POST /v1/merges/{merge}/resolve",
    takes: ResolveMerge,
    bodyOptional: true,
    by: true,
    apart: true,
    gives: MergeView,
    scope: "run",
    owned: "merge",
    summary: "Resolve a merge that waits for a person: with the files in its session, by choosing sides, or with an agent.",
  }),
  /** Lists merges, last changed first. Throws `invalid` for a malformed cursor. */
  list: verbOfType<(options?: ListJobs) => Promise<JobList>>()({
    path: "GET /v1/merges",
    query: ListJobs.omit({ parent: true }).extend({ limit: pageLimit }),
    answer: { json: JobList },
    scope: "read",
    owned: "by hand",
    summary: "List merges, last changed first.",
  }),
  ...jobVerbs({ group: "merges", thing: "merge", view: MergeView, event: MergeEventEntry }),
};

export type MergeVerbs = VerbsOf<typeof merges>;
