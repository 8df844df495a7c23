import type { JobList, ListJobs } from "../../contract/durable/durable-job.ts";
import type { BestVerbs } from "../../verbs/bests.ts";
import type { MergeVerbs } from "../../verbs/merges.ts";
import type { WorkflowVerbs } from "../../verbs/workflows.ts";
import type { Client } from "../connect.ts";
import { derivedVerbs } from "./derived-verbs.ts";

/** Maximum number of jobs per answer. */
const PAGE_MAX = 1000;

export function remoteMerges({ merges }: Pick<Client, "merges">): MergeVerbs {
  return {
    ...derivedVerbs("merges", merges),
    // The API has no filter for the parts of another job.
    list: ({ parent: _, ...options } = {}) => listJobs(options, (query) => merges.list(query)),
    start: (request) => merges.start(request),
  };
}

export function remoteBests({ bests }: Pick<Client, "bests">): BestVerbs {
  return {
    ...derivedVerbs("bests", bests),
    list: ({ parent: _, ...options } = {}) => listJobs(options, (query) => bests.list(query)),
    start: (request) => bests.start(request),
  };
}

export function remoteWorkflows({ workflows }: Pick<Client, "workflows">): WorkflowVerbs {
  return {
    ...derivedVerbs("workflows", workflows),
    list: ({ parent, ...options } = {}) =>
      listJobs(options, (query) => workflows.list({ ...query, ...(parent !== undefined && { parent: parent ?? "none" }) })),
  };
}

/** Lists as many jobs as requested, with several requests if necessary. */
async function listJobs<Query extends Omit<ListJobs, "parent">>(
  { limit = PAGE_MAX, ...rest }: Query,
  page: (query: Omit<ListJobs, "parent" | "limit"> & { limit: number }) => Promise<JobList>,
): Promise<JobList> {
  const list = await page({ ...rest, limit: Math.min(limit, PAGE_MAX) });
  while (list.next !== null && list.items.length < limit) {
    const next = await page({ ...rest, cursor: list.next, limit: Math.min(limit - list.items.length, PAGE_MAX) });
    list.items.push(...next.items);
    list.next = next.next;
  }
  return list;
}
