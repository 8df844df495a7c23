import { z } from "zod";

/**
 * A spec: from an idea to completed work, in phases. An agent submits each phase as data of these shapes; the
 * evaluators decide whether it is good enough (`station/specs/evaluators.ts`).
 */

export const SpecId = z.string().regex(/^spec_[a-z2-7]{12}$/, "a spec id looks like spec_k3v7q2m5x4ab");
export type SpecId = z.infer<typeof SpecId>;

/**
 * The phases in order. Agents write all but the last; in the last one the tasks are done, merged and checked for
 * coverage.
 */
export const phases = ["explore", "prd", "requirements", "design", "tasks", "sync", "complete"] as const;
export const SpecPhase = z.enum(phases);
export type SpecPhase = z.infer<typeof SpecPhase>;
export const WrittenPhase = SpecPhase.exclude(["complete"]);
export type WrittenPhase = z.infer<typeof WrittenPhase>;
/** The phases that may need a person's approval. */
export const GatePhase = WrittenPhase.extract(["requirements", "design"]);
export type GatePhase = z.infer<typeof GatePhase>;

/** Maximum size of one phase as JSON. */
export const PHASE_BYTES_MAX = 256 * 1024;
const ITEMS_MAX = 200;

const Words = z.string().trim().max(20_000);
const Line = z.string().trim().min(1).max(2000);
const lines = z.array(Line).max(ITEMS_MAX).default([]);
const ItemId = z.string().trim().min(1).max(64);

export const ExploreData = z.strictObject({
  summary: Words,
  /** Where the agent expects the work to be. Only names; we never open them. */
  keyFiles: z.array(z.strictObject({ path: Line, why: Words.default("") })).max(ITEMS_MAX),
  scope: z.strictObject({ inside: lines, outside: lines }),
  questions: lines,
});

export const PrdData = z.strictObject({
  problem: Words,
  goals: lines,
  stories: z.array(z.strictObject({ id: ItemId, as: Line, want: Line, so: Words.default("") })).max(ITEMS_MAX),
  metrics: z.array(z.strictObject({ name: Line, target: Line })).max(ITEMS_MAX),
  outOfScope: lines,
});

export const RequirementsData = z.strictObject({
  requirements: z
    .array(z.strictObject({ id: ItemId, statement: Line, story: ItemId.optional(), criteria: z.array(Line).max(50).default([]) }))
    .max(ITEMS_MAX),
});

export const DesignData = z.strictObject({
  overview: Words,
  components: z
    .array(z.strictObject({ name: Line, does: Words.default(""), requirements: z.array(ItemId).max(ITEMS_MAX).default([]) }))
    .max(ITEMS_MAX),
  api: Words.default(""),
  data: Words.default(""),
  security: Words.default(""),
});

export const SpecTask = z.strictObject({
  id: ItemId,
  title: Line,
  description: Words.default(""),
  hours: z.number().min(0).max(1000),
  dependsOn: z.array(ItemId).max(ITEMS_MAX).default([]),
  requirements: z.array(ItemId).max(ITEMS_MAX).default([]),
});
export type SpecTask = z.infer<typeof SpecTask>;
export const TASKS_MAX = 50;
export const TasksData = z.strictObject({
  tasks: z.array(SpecTask).max(TASKS_MAX),
  criticalPath: z.array(ItemId).max(TASKS_MAX).default([]),
});

export const SyncData = z.strictObject({
  matrix: z
    .array(
      z.strictObject({ requirement: ItemId, components: z.array(Line).max(ITEMS_MAX).default([]), tasks: z.array(ItemId).max(TASKS_MAX) }),
    )
    .max(ITEMS_MAX),
  gaps: lines,
  ready: z.boolean(),
});

export const phaseData = {
  explore: ExploreData,
  prd: PrdData,
  requirements: RequirementsData,
  design: DesignData,
  tasks: TasksData,
  sync: SyncData,
} as const satisfies Record<WrittenPhase, z.ZodType>;

/** The phases written so far; unwritten phases are absent. */
export const SpecData = z.strictObject({
  explore: ExploreData.optional(),
  prd: PrdData.optional(),
  requirements: RequirementsData.optional(),
  design: DesignData.optional(),
  tasks: TasksData.optional(),
  sync: SyncData.optional(),
});
export type SpecData = z.infer<typeof SpecData>;
export type DataOf<Phase extends WrittenPhase> = NonNullable<SpecData[Phase]>;

/** The result of one check by an evaluator. */
export const CheckResult = z.object({
  check: z.string().max(100),
  weight: z.number(),
  /** From 0 to 1. */
  score: z.number().min(0).max(1),
  /** What is wrong, as feedback for the next attempt; empty if nothing is. */
  feedback: z.string().max(2000),
});
export type CheckResult = z.infer<typeof CheckResult>;

export const Judgement = z.object({
  passed: z.boolean(),
  score: z.number().min(0).max(1),
  threshold: z.number(),
  checks: z.array(CheckResult).max(50),
});
export type Judgement = z.infer<typeof Judgement>;

/** The tasks for a requirement, and what they actually changed. */
export const CoverageRow = z.object({
  requirement: z.string(),
  statement: z.string(),
  tasks: z.array(z.string()),
  changes: z.array(z.object({ task: z.string(), path: z.string() })),
  /** `planned`: it has tasks that are not all done. `done`: all are done and changed something. */
  state: z.enum(["missing", "planned", "unchanged", "done"]),
});
export type CoverageRow = z.infer<typeof CoverageRow>;
