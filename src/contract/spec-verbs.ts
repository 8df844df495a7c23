import { z } from "zod";
import { PathText } from "./bounded.ts";
import { drivenListOf } from "./driven.ts";
import { ChosenName } from "./ids.ts";
import { JsonValue } from "./json-value.ts";
import { created, owned, paged } from "./list-filter.ts";
import { Owner } from "./owner.ts";
import { Budgets, FinishReason } from "./run.ts";
import { RunSettings } from "./run-verbs.ts";
import { WorkspaceSource } from "./session.ts";
import { CoverageRow, GatePhase, Judgement, SpecData, SpecId, SpecPhase, SpecTask, WrittenPhase } from "./spec.ts";

/** Arguments and answers of the station's verbs about specs. */

/** How the runs of a spec are made; what is absent is the station's own. */
export const SpecRuns = z.strictObject({
  model: z.string().min(1).max(500).optional(),
  /** The agents that write phases, and that do tasks: names or paths of their files. */
  planner: PathText.default("planner"),
  coder: PathText.default("coder"),
  /** Phases that another agent writes. */
  phaseAgents: z.partialRecord(WrittenPhase, PathText).meta({ maxProperties: WrittenPhase.options.length }).default({}),
  settings: RunSettings.prefault({}),
  /** Of each run. */
  budgets: Budgets.default({}),
});
export type SpecRuns = z.infer<typeof SpecRuns>;

const PARALLEL_MAX = 16;

export const CreateSpec = z.strictObject({
  idea: z.string().trim().min(1, "there is no idea").max(20_000),
  name: ChosenName.refine((name) => !name.startsWith("spec_"), "a name does not begin with spec_, as ids do").optional(),
  /** The project. Absent: it is named when the spec is executed. */
  source: WorkspaceSource.optional(),
  /** After which phases a person has to agree. */
  gates: z.array(GatePhase).max(2).default(["requirements", "design"]),
  runs: SpecRuns.prefault({}),
  /** Tasks that are done at the same time, at most; one: each begins with the files of the one before. */
  parallel: z.int().min(1).max(PARALLEL_MAX).default(1),
});
export type CreateSpec = z.infer<typeof CreateSpec>;
export type CreateSpecInput = z.input<typeof CreateSpec>;

export const ExecuteSpec = z.strictObject({
  /** Written anew from this phase on. Absent: from where it is. */
  from: SpecPhase.optional(),
  /** `sync`: a plan alone. */
  until: z.enum(["sync", "complete"]).default("complete"),
  /** The project, for a spec that has none. */
  source: WorkspaceSource.optional(),
  by: z.string().min(1).max(200),
});
export type ExecuteSpec = z.input<typeof ExecuteSpec>;

/** It is driven from here on; what it begins with, where that has begun already. */
export const ExecutedSpec = z.object({ spec: SpecId, run: z.string().nullable(), sandbox: z.string().nullable() });
export type ExecutedSpec = z.infer<typeof ExecutedSpec>;

export const DecideSpec = z.strictObject({
  approved: z.boolean(),
  /** Absent: the phase that waits, in the version that holds. */
  phase: GatePhase.optional(),
  /** What was looked at: refused when another holds by now. */
  version: z.int().positive().optional(),
  /** Of a rejection: what must change, which the next attempt is told. */
  text: z.string().trim().max(20_000).default(""),
  by: z.string().min(1).max(200),
});
export type DecideSpec = z.input<typeof DecideSpec>;

export const EditSpec = z.strictObject({
  phase: WrittenPhase,
  /** All of the phase, of its schema. */
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
  /** `waiting`: for a person to agree. `retrying`: until `dueAt`. */
  status: SpecStatus,
  phase: SpecPhase,
  version: z.int().nonnegative(),
  /** What a person is asked, while it waits for one. */
  asks: z.string().nullable(),
  /** The number of the last event that is in this view. */
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

/** One spec with everything that is known of it. */
export const SpecView = SpecSummary.extend({
  idea: z.string(),
  source: WorkspaceSource.nullable(),
  gates: z.array(GatePhase),
  parallel: z.int(),
  /** What a person is asked to agree to. */
  asked: z.object({ phase: GatePhase, version: z.int() }).nullable(),
  /** When the next attempt is due. */
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
  /** The session that holds the merged work. */
  session: z.string().nullable(),
  data: SpecData,
});
export type SpecView = z.infer<typeof SpecView>;

export const ListSpecs = z.strictObject({
  /** The beginning of their ids. */
  id: z
    .string()
    .regex(/^spec_[a-z2-7]{0,12}$/, "an id begins with spec_")
    .optional(),
  ...owned,
  ...created,
  ...paged,
  status: SpecStatus.optional(),
});
export type ListSpecs = z.input<typeof ListSpecs>;
export const SpecList = drivenListOf(SpecSummary);
export type SpecList = z.infer<typeof SpecList>;

export const DiffSpec = z.strictObject({
  /** Absent: the version before `to`. */
  from: z.int().min(0).optional(),
  /** Absent: the last. */
  to: z.int().positive().optional(),
});
export type DiffSpec = z.input<typeof DiffSpec>;
export const SpecDiff = z.object({ from: z.int(), to: z.int(), diff: z.string() });
export type SpecDiff = z.infer<typeof SpecDiff>;

export const ExportSpec = z.strictObject({
  format: z.enum(["markdown", "json"]).default("markdown"),
  /** As it was then. */
  version: z.int().positive().optional(),
});
export type ExportSpec = z.input<typeof ExportSpec>;
export const ExportedSpec = z.object({ format: z.enum(["markdown", "json"]), text: z.string() });
export type ExportedSpec = z.infer<typeof ExportedSpec>;
