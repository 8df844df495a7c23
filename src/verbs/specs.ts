import { z } from "zod";
import { reachOfExecuted, reachOfSpec } from "../contract/api/required-scopes.ts";
import { auditName } from "../contract/audit/audit-text.ts";
import { SpecEvent } from "../contract/spec/spec-event.ts";
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
} from "../contract/spec/spec-verbs.ts";
import { jobVerbs, WaitQuery } from "./durable-jobs.ts";
import { type VerbsOf, verb } from "./verb.ts";

/** One event of a spec, with its place in the spec log. */
const NumberedSpecEvent = SpecEvent.and(z.object({ seq: z.int().positive() }));
export type NumberedSpecEvent = SpecEvent & { seq: number };
/** Room for one phase as JSON with its envelope. */
const EDIT_BYTES_MAX = 1024 * 1024;

/** The other verbs of a spec promise more than those of other jobs: a spec can be executed again after its end. */
const shared = jobVerbs({ group: "specs", thing: "spec", view: SpecView, event: NumberedSpecEvent });

/**
 * Specs go from an idea to finished work phase by phase; each phase is an agent's run in a sandbox. A spec is named by
 * its id, an id prefix or its name. The verbs throw `not_found`.
 */
export const specs = {
  /** Records the idea and runs nothing. Throws `invalid`, `exists` for a name that is taken. */
  create: verb({
    path: "POST /v1/specs",
    takes: CreateSpec,
    owner: true,
    apart: true,
    gives: SpecView,
    status: 201,
    reaches: reachOfSpec,
    audited: ({ name }: CreateSpec) => ({ name: auditName(name) }),
    scope: "run",
    owned: "by hand",
    summary: "Create a spec from an idea. Nothing runs until it is executed.",
  }),
  get: {
    ...shared.get,
    summary: "Get one spec: its phases, attempts with their runs, decisions, versions, tasks, and the changes that cover each requirement.",
  },
  /** Lists specs, last changed first. */
  list: verb({
    path: "GET /v1/specs",
    takes: ListSpecs,
    gives: SpecList,
    scope: "read",
    owned: "by hand",
    summary: "List specs, last changed first.",
  }),
  /**
   * Drives a spec from its current phase or from the given one, in the station if one runs, else in this process.
   * Resolves when its first run was created, or when it waits for a person. A spec that is already driven continues.
   * Throws `invalid` without a project, `conflict` for a spec at work that should start from another phase.
   */
  execute: verb({
    path: "POST /v1/specs/{spec}/execute",
    takes: ExecuteSpec.omit({ by: true }),
    bodyOptional: true,
    by: true,
    gives: ExecutedSpec,
    status: 202,
    reaches: reachOfExecuted,
    scope: "run",
    owned: "spec",
    summary: "Drive a spec from its current phase or from the given one. It needs a project. Answers with its first run.",
  }),
  /** Approves a phase, or rejects it to have it rewritten. Throws `conflict` if there is no open question, `stale`. */
  decide: verb({
    path: "POST /v1/specs/{spec}/approvals",
    takes: DecideSpec.omit({ by: true }),
    by: true,
    gives: SpecView,
    audited: ({ approved, phase }: Omit<z.output<typeof DecideSpec>, "by">) => ({
      approved: auditName(String(approved)),
      phase: auditName(phase),
    }),
    scope: "run",
    owned: "spec",
    summary: "Approve the requirements or the design of a spec, or request changes.",
  }),
  /**
   * Stores a person's version of a phase. Later phases become stale. Throws `invalid`, `conflict` while the spec is at
   * work.
   */
  edit: verb({
    path: "POST /v1/specs/{spec}/versions",
    takes: EditSpec.omit({ by: true }),
    by: true,
    gives: SpecView,
    bodyBytesMax: EDIT_BYTES_MAX,
    scope: "run",
    owned: "spec",
    summary: "Write a phase by hand: a new version, which makes later phases stale.",
  }),
  /**
   * Ends the spec and its runs. Its documents stay, and it can be executed again. Throws `conflict` if it has ended.
   */
  cancel: verb({
    path: "POST /v1/specs/{spec}/cancel",
    by: true,
    gives: SpecView,
    scope: "run",
    owned: "spec",
    summary: "Cancel a spec with its runs. Its documents stay.",
  }),
  /** Resolves when the spec has ended or waits for a person. Throws `cancelled` if the signal aborts. */
  wait: verb({
    path: "GET /v1/specs/{spec}/wait",
    takes: WaitQuery,
    gives: SpecView,
    kind: "wait",
    scope: "read",
    owned: "spec",
    summary: "Wait until a spec ends or waits for a person. After `timeoutMs`, answers with its current state.",
  }),
  events: shared.events,
  /** Compares two versions. Throws `not_found` for a version that does not exist. */
  diff: verb({
    path: "GET /v1/specs/{spec}/diff",
    takes: DiffSpec,
    gives: SpecDiff,
    scope: "read",
    owned: "spec",
    summary: "Compare two versions of a spec.",
  }),
  export: verb({
    path: "GET /v1/specs/{spec}/export",
    takes: ExportSpec,
    gives: ExportedSpec,
    scope: "read",
    owned: "spec",
    summary: "Export a spec as Markdown or JSON.",
  }),
  /** Removes a spec that has ended; its runs and sessions stay. Throws `conflict` for a spec at work. */
  remove: verb({
    path: "DELETE /v1/specs/{spec}",
    gives: SpecView,
    scope: "run",
    owned: "spec",
    summary: "Remove a spec that has ended. Its runs and sessions stay.",
  }),
};

export type SpecVerbs = VerbsOf<typeof specs>;
