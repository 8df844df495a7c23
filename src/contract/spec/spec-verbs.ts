import { z } from "zod";
import { PathText } from "../bounded.ts";
import { jobListOf } from "../durable/durable-job.ts";
import { ChosenName } from "../ids.ts";
import { JsonValue } from "../json-value.ts";
import { created, owned, paged } from "../label/list-filter.ts";
import { FinishReason } from "../outcome.ts";
import { Budgets } from "../run/run.ts";
import { RunSettings } from "../run/run-verbs.ts";
import { WorkspaceSource } from "../session/session.ts";
import { Owner } from "../token/owner.ts";
import { CoverageRow, GatePhase, Judgement, SpecData, SpecId, SpecPhase, SpecTask, WrittenPhase } from "./spec.ts";

/** Arguments and answers of the station's verbs for specs. */

/** Settings for the runs of a spec; absent ones use the station's defaults. */
export const SpecRuns = z.strictObject({
  model: z.string().min(1).max(500).optional(),
  /** The agents for writing phases and for doing tasks: names, or paths of their files. */
  planner: PathText.default("planner"),
  coder: PathText.default("coder"),
  /** Other agents for individual phases. */
  phaseAgents: z.partialRecord(WrittenPhase, PathText).meta({ maxProperties: WrittenPhase.options.length }).default({}),
  settings: RunSettings.prefault({}),
  /** The budgets of each run. */
  budgets: Budgets.default({}),
});
export type SpecRuns = z.infer<typeof SpecRuns>;

const PARALLEL_MAX = 16;

export const CreateSpec = z.strictObject({
  idea: z.string().trim().min(1, "must not be empty").max(20_000),
  name: ChosenName.refine((name) => !name.startsWith("spec_"), "must not begin with spec_, as ids do").optional(),
  /** The project. Absent: specify it when the spec is executed. */
  source: WorkspaceSource.optional(),
  /** The phases that need a person's approval. */
  gates: z.array(GatePhase).max(2).default(["requirements", "design"]),
  runs: SpecRuns.prefault({}),
  /** Maximum number of tasks at the same time. With one, each task starts with the files of the previous one. */
  parallel: z.int().min(1).max(PARALLEL_MAX).default(1),
});
export type CreateSpec = z.infer<typeof CreateSpec>;
export type CreateSpecInput = z.input<typeof CreateSpec>;

export const ExecuteSpec = z.strictObject({
  /** Write this phase and all later ones again. Absent: continue. */
  from: SpecPhase.optional(),
  /** `sync`: only plan. */
  until: z.enum(["sync", "complete"]).default("complete"),
  /** The project, for a spec that has none. */
  source: WorkspaceSource.optional(),
  by: z.string().min(1).max(200),
});
export type ExecuteSpec = z.input<typeof ExecuteSpec>;

/** The spec is now driven. `run` and `sandbox` are the first ones, if they have begun already. */
export const ExecutedSpec = z.object({ spec: SpecId, run: z.string().nullable(), sandbox: z.string().nullable() });
export type ExecutedSpec = z.infer<typeof ExecutedSpec>;

export const DecideSpec = z.strictObject({
  approved: z.boolean(),
  /** Absent: the phase that waits, in its current version. */
  phase: GatePhase.optional(),
  /** The reviewed version; the decision is rejected if it is no longer current. */
  version: z.int().positive().optional(),
  /** For a rejection: what must change, as feedback for the next attempt. */
  text: z.string().trim().max(20_000).default(""),
  by: z.string().min(1).max(200),
});
export type DecideSpec = z.input<typeof DecideSpec>;

export const EditSpec = z.strictObject({
  phase: WrittenPhase,
  /** The complete phase, in its schema. */
  data: JsonValue,
  by: z.string().min(1).max(200),
});
export type EditSpec = z.input<typeof EditSpec>;

export const SpecStatus = z.enum(["draft", "running", "waiting", "retrying", "paused", "done", "planned", "failed", "cancelled"]);

export const SpecSummary = z.object({
  spec: SpecId,
  name: z.string().nullable(),
  owner: Owner,
  /** The first line of the idea. */
  title: z.string(),
  /** `waiting`: for a person's approval. `retrying`: until `dueAt`. */
  status: SpecStatus,
  phase: SpecPhase,
  version: z.int().nonnegative(),
  /** The question to a person, while the spec waits for an answer. */
  asks: z.string().nullable(),
  /** The sequence of the last event that this view includes. */
  seq: z.int().nonnegative(),
  createdAt: z.string(),
  updatedAt: z.string(),
});
export type SpecSummary = z.infer<typeof SpecSummary>;

export const SpecAttempt = z.object({
  phase: WrittenPhase,
  attempt: z.int().positive(),
  run: z.string().nullable(),
  judgement: Judgement.nullable(),
  startedAt: z.string(),
  endedAt: z.string().nullable(),
});

/** A spec with all its details. */
export const SpecView = SpecSummary.extend({
  idea: z.string(),
  source: WorkspaceSource.nullable(),
  gates: z.array(GatePhase),
  parallel: z.int(),
  /** What waits for a person's approval. */
  asked: z.object({ phase: GatePhase, version: z.int() }).nullable(),
  /** The time of the next attempt. */
  dueAt: z.string().nullable(),
  /** How it ended, and why. */
  ended: z.object({ text: z.string(), at: z.string() }).nullable(),
  phases: z.array(
    z.object({
      phase: SpecPhase,
      state: z.enum(["missing", "working", "asked", "stale", "written", "failed"]),
      version: z.int().nullable(),
    }),
  ),
  versions: z.array(z.object({ version: z.int(), phase: WrittenPhase, by: z.string(), at: z.string() })),
  attempts: z.array(SpecAttempt),
  decisions: z.array(
    z.object({ phase: GatePhase, version: z.int(), by: z.string(), at: z.string(), approved: z.boolean(), text: z.string() }),
  ),
  tasks: z.array(
    SpecTask.pick({ id: true, title: true, dependsOn: true }).extend({
      state: z.enum(["waiting", "running", "done", "failed"]),
      run: z.string().nullable(),
      session: z.string().nullable(),
      finish: FinishReason.nullable(),
      changed: z.array(z.string()),
    }),
  ),
  merges: z.array(
    z.object({ merge: z.string().nullable(), sessions: z.array(z.string()), session: z.string().nullable(), text: z.string() }),
  ),
  coverage: z.array(CoverageRow),
  /** The session with the merged work. */
  session: z.string().nullable(),
  data: SpecData,
});
export type SpecView = z.infer<typeof SpecView>;

export const ListSpecs = z.strictObject({
  /** An id prefix. */
  id: z
    .string()
    .regex(/^spec_[a-z2-7]{0,12}$/, "must begin with spec_")
    .optional(),
  ...owned,
  ...created,
  ...paged,
  status: SpecStatus.optional(),
});
export type ListSpecs = z.input<typeof ListSpecs>;
export const SpecList = jobListOf(SpecSummary);
export type SpecList = z.infer<typeof SpecList>;

export const DiffSpec = z.strictObject({
  /** Absent: the version before `to`. */
  from: z.int().min(0).optional(),
  /** Absent: the last version. */
  to: z.int().positive().optional(),
});
export type DiffSpec = z.input<typeof DiffSpec>;
export const SpecDiff = z.object({ from: z.int(), to: z.int(), diff: z.string() });
export type SpecDiff = z.infer<typeof SpecDiff>;

export const ExportSpec = z.strictObject({
  format: z.enum(["markdown", "json"]).default("markdown"),
  /** The version to export; absent: the current one. */
  version: z.int().positive().optional(),
});
export type ExportSpec = z.input<typeof ExportSpec>;
export const ExportedSpec = z.object({ format: z.enum(["markdown", "json"]), text: z.string() });
export type ExportedSpec = z.infer<typeof ExportedSpec>;
