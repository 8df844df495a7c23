import { z } from "zod";
import { pageLimit } from "../contract/api/page-limit.ts";
import { reachOfBest } from "../contract/api/required-scopes.ts";
import { BestView, StartBest } from "../contract/best/best-verbs.ts";
import { JobList, ListJobs } from "../contract/durable/durable-job.ts";
import { JsonValue } from "../contract/json-value.ts";
import { jobVerbs } from "./durable-jobs.ts";
import { type VerbsOf, verbOfType } from "./verb.ts";

const BestEventEntry = z.object({ seq: z.int().positive(), type: z.string(), version: z.int(), at: z.string(), data: JsonValue });

/**
 * Best-ofs make several attempts at one task within one budget, grade each on a copy of its files, and promote the best
 * one. The others stay, labelled `best=<id>`.
 */
export const bests = {
  /**
   * Starts a best-of, and resolves at once. Throws `not_found` for a run, `invalid`, and `unsupported` where runs
   * cannot be forked.
   */
  start: verbOfType<(request: StartBest, options?: { owner?: string }) => Promise<BestView>>()({
    path: "POST /v1/bests",
    body: StartBest,
    answer: { status: 201, json: BestView },
    reaches: reachOfBest,
    audited: () => ({}),
    scope: "run",
    owned: "by hand",
    summary: "Make several attempts at a task, grade them, and promote the best one. The station drives it.",
  }),
  /** Lists best-ofs, last changed first. Throws `invalid` for a malformed cursor. */
  list: verbOfType<(options?: ListJobs) => Promise<JobList>>()({
    path: "GET /v1/bests",
    query: ListJobs.omit({ parent: true }).extend({ limit: pageLimit }),
    answer: { json: JobList },
    scope: "read",
    owned: "by hand",
    summary: "List best-ofs, last changed first.",
  }),
  ...jobVerbs({ group: "bests", thing: "best", view: BestView, event: BestEventEntry }),
};

export type BestVerbs = VerbsOf<typeof bests>;
