import { z } from "zod";
import { auditName } from "../audit-text.ts";
import { DrivenList, ListDriven } from "../driven.ts";
import { JsonValue } from "../json-value.ts";
import { MergeView, ResolveMerge, StartMerge } from "../merge-verbs.ts";
import { NameOrId } from "./name-or-id.ts";
import { pageLimit } from "./page-limit.ts";
import { reachOfMerge } from "./reach.ts";
import type { Route } from "./route.ts";

const EVENTS_PER_PAGE = 100;
const EVENTS_PER_PAGE_MAX = 1000;
/** How long a request waits at most: shorter than what proxies between allow. */
const WAIT_MS_MAX = 25_000;

const params = { merge: NameOrId };
const reason = z.strictObject({ text: z.string().max(2000).default("") });
const MergeEventEntry = z.object({ seq: z.int().positive(), type: z.string(), version: z.int(), at: z.string(), data: JsonValue });

export const mergeRoutes = {
  "merges.start": {
    summary: "Merge what several sessions changed that began at the same place. It is there when this answers, and the station drives it.",
    scope: "run",
    body: StartMerge,
    reaches: reachOfMerge,
    audited: ({ name, agent }: z.output<typeof StartMerge>) => ({ name: auditName(name), agent: auditName(agent) }),
    answer: { status: 201, json: MergeView },
  },
  "merges.list": {
    summary: "List merges, the last changed first.",
    scope: "read",
    query: ListDriven.omit({ parent: true }).extend({ limit: pageLimit }),
    answer: { json: DrivenList },
  },
  "merges.get": {
    summary: "One merge: its order, what is in, and what has to be resolved.",
    scope: "read",
    params,
    answer: { json: MergeView },
  },
  "merges.events": {
    summary: "The events of a merge: a page as JSON, or all as server-sent events until it ends, whose ids are sequence numbers.",
    scope: "read",
    params,
    query: z.strictObject({
      fromSeq: z.int().min(1).optional(),
      limit: z.int().min(1).max(EVENTS_PER_PAGE_MAX).default(EVENTS_PER_PAGE),
    }),
    answer: { json: z.object({ events: z.array(MergeEventEntry), next: z.int().positive().nullable() }), events: MergeEventEntry },
  },
  "merges.wait": {
    summary: "A merge once it has ended, or waits for a person with `orPerson`, or as it is when that takes longer than `timeoutMs`.",
    scope: "read",
    params,
    query: z.strictObject({ orPerson: z.boolean().optional(), timeoutMs: z.int().min(0).max(WAIT_MS_MAX).default(WAIT_MS_MAX) }),
    answer: { json: MergeView },
  },
  "merges.resolve": {
    summary: "Go on with a merge that waits for a person: its session has the resolution, sides are taken, or the agent shall do it.",
    scope: "run",
    params,
    body: ResolveMerge,
    bodyOptional: true,
    answer: { json: MergeView },
  },
  "merges.cancel": {
    summary: "End a merge; what it made on the way is removed.",
    scope: "run",
    params,
    body: reason,
    bodyOptional: true,
    answer: { json: MergeView },
  },
  "merges.pause": {
    summary: "Begin nothing new in a merge until it is resumed.",
    scope: "run",
    params,
    body: reason,
    bodyOptional: true,
    answer: { json: MergeView },
  },
  "merges.resume": {
    summary: "Go on with a merge that was paused, or that nobody drives.",
    scope: "run",
    params,
    answer: { json: MergeView },
  },
  "merges.remove": { summary: "Forget a merge that is over. Its result stays.", scope: "run", params, answer: {} },
} as const satisfies Record<string, Route>;
