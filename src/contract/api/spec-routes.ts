import { z } from "zod";
import { auditName } from "../audit-text.ts";
import { SpecEvent } from "../spec-event.ts";
import {
  CreateSpec,
  DecideSpec,
  DiffSpec,
  EditSpec,
  ExecutedSpec,
  ExecuteSpec,
  ExportedSpec,
  ExportSpec,
  ListSpecs,
  SpecDiff,
  SpecList,
  SpecView,
} from "../spec-verbs.ts";
import { NameOrId } from "./name-or-id.ts";
import { reachOfExecuted, reachOfSpec } from "./reach.ts";
import type { Route } from "./route.ts";

const params = { spec: NameOrId };
const EVENTS_PER_PAGE = 100;
const EVENTS_PER_PAGE_MAX = 1000;
const NumberedSpecEvent = SpecEvent.and(z.object({ seq: z.int().positive() }));
/** How long a request waits at most: shorter than what proxies between allow. */
const WAIT_MS_MAX = 25_000;
/** A phase, as JSON, with what surrounds it. */
const EDIT_BYTES_MAX = 1024 * 1024;

export const specRoutes = {
  "specs.create": {
    summary: "Write an idea down as a spec; nothing runs before it is executed.",
    scope: "run",
    body: CreateSpec,
    reaches: reachOfSpec,
    audited: ({ name }: CreateSpec) => ({ name: auditName(name) }),
    answer: { status: 201, json: SpecView },
  },
  "specs.list": { summary: "List specs, the last changed first.", scope: "read", query: ListSpecs, answer: { json: SpecList } },
  "specs.get": {
    summary: "One spec: its phases, attempts with their runs, decisions, versions, tasks, and which changes cover which requirement.",
    scope: "read",
    params,
    answer: { json: SpecView },
  },
  "specs.execute": {
    summary: "Drive a spec from where it is, or from a phase. It needs a project. Answers with the run that it begins with.",
    scope: "run",
    params,
    body: ExecuteSpec.omit({ by: true }),
    bodyOptional: true,
    reaches: reachOfExecuted,
    answer: { status: 202, json: ExecutedSpec },
  },
  "specs.decide": {
    summary: "Agree to the requirements or the design of a spec, or say what must change.",
    scope: "run",
    params,
    body: DecideSpec.omit({ by: true }),
    audited: ({ approved, phase }: Omit<z.output<typeof DecideSpec>, "by">) => ({
      approved: auditName(String(approved)),
      phase: auditName(phase),
    }),
    answer: { json: SpecView },
  },
  "specs.edit": {
    summary: "Write a phase by hand: a new version, after which later phases are stale.",
    scope: "run",
    params,
    body: EditSpec.omit({ by: true }),
    bodyBytesMax: EDIT_BYTES_MAX,
    answer: { json: SpecView },
  },
  "specs.cancel": { summary: "End a spec with its runs. What is written stays.", scope: "run", params, answer: { json: SpecView } },
  "specs.wait": {
    summary: "A spec once it has ended or waits for a person, or as it is when that takes longer than `timeoutMs`: then ask again.",
    scope: "read",
    params,
    query: z.strictObject({ timeoutMs: z.int().min(0).max(WAIT_MS_MAX).default(WAIT_MS_MAX) }),
    answer: { json: SpecView },
  },
  "specs.events": {
    summary: "The events of a spec: a page as JSON, or all as server-sent events until it is over, whose ids are sequence numbers.",
    scope: "read",
    params,
    query: z.strictObject({
      fromSeq: z.int().min(1).optional(),
      limit: z.int().min(1).max(EVENTS_PER_PAGE_MAX).default(EVENTS_PER_PAGE),
    }),
    answer: { json: z.object({ events: z.array(NumberedSpecEvent), next: z.int().positive().nullable() }), events: NumberedSpecEvent },
  },
  "specs.diff": {
    summary: "What differs between two versions of a spec.",
    scope: "read",
    params,
    query: DiffSpec,
    answer: { json: SpecDiff },
  },
  "specs.export": { summary: "A spec as Markdown or JSON.", scope: "read", params, query: ExportSpec, answer: { json: ExportedSpec } },
  "specs.remove": { summary: "Forget a spec that is over. Its runs and sessions stay.", scope: "run", params, answer: { json: SpecView } },
} as const satisfies Record<string, Route>;
