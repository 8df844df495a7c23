import { z } from "zod";
import { JsonValue } from "./json-value.ts";
import { ConflictPolicy } from "./merge-event.ts";
import { MERGED_SESSIONS_MAX } from "./merge-verbs.ts";
import { ValueSchema } from "./value-schema.ts";

/**
 * A workflow's definition, as people write it in YAML or JSON. Texts may hold `${ … }` with an expression in CEL;
 * `when`, `in`, `until` and `output` are expressions themselves.
 */

const STEPS_MAX = 1000;
const TEXT_MAX = 20_000;
const EXPRESSION_MAX = 2000;
export const ITEMS_MAX = 1000;
const BRANCHES_MAX = 100;
const ARTIFACTS_MAX = 20;

const text = z.string().min(1).max(TEXT_MAX);
const Expression = z.string().min(1).max(EXPRESSION_MAX);
const Name = z
  .string()
  .regex(/^[a-z][a-zA-Z0-9_]{0,39}$/, "must be a name: a lower-case letter, then letters, digits or _, at most 40 in all");
const Duration = z
  .union([z.string(), z.number()])
  .refine((value) => /^\d+(\.\d+)?\s*(ms|s|m|h)?$/i.test(String(value)), "must be a time such as 30s, 5m or 2h");
export type WorkflowDuration = z.infer<typeof Duration>;
/** A place in the shared data, such as `review.notes`. */
const DataPath = z.string().regex(/^[a-zA-Z_][a-zA-Z0-9_]*(\.[a-zA-Z_][a-zA-Z0-9_]*){0,9}$/, "must be names with dots between them");

const Retry = z.strictObject({
  /** How often it is tried in all. */
  attempts: z.int().min(1).max(100),
  /** Before the second attempt; twice as long before each one after it. Default 1s. */
  backoff: Duration.optional(),
  /** The longest of these times. Default 5m. */
  maxDelay: Duration.optional(),
  /** The error codes it is tried again for. Absent: all. */
  on: z.array(z.string().max(64)).min(1).max(30).optional(),
});

/** What steps of every kind may have. */
const common = {
  name: Name,
  /** The step is skipped unless this is true. */
  when: Expression.optional(),
  timeout: Duration.optional(),
  retry: Retry.optional(),
  /** Where in the shared data its output is kept as well. */
  result: DataPath.optional(),
};

/** In the workspace that an earlier step worked in, after it. */
const FromStep = z.strictObject({ from: Name });
/** Files of its workspace that later steps are told of, by their paths there; what they were is said by a digest. */
const Artifacts = z
  .record(Name, z.string().min(1).max(1000))
  .refine((artifacts) => Object.keys(artifacts).length <= ARTIFACTS_MAX, `at most ${ARTIFACTS_MAX} artifacts`)
  .optional();

const AgentStep = z.strictObject({
  ...common,
  kind: z.literal("agent"),
  /** An agent's name. Default `coder`. */
  agent: z.string().min(1).max(256).optional(),
  task: text,
  model: z.string().min(1).max(256).optional(),
  /**
   * `shared`: the workspace of all such steps, one after the other. `own`: a fresh one. `from`: that of an earlier
   * step, after it. `fork`: a copy of that, so that several can begin there. Default `shared`.
   */
  workspace: z.union([z.enum(["shared", "own"]), FromStep, z.strictObject({ fork: Name })]).optional(),
  artifacts: Artifacts,
  maxSteps: z.int().min(1).max(100_000).optional(),
  maxCostUsd: z.number().positive().optional(),
  /** Values for the template of the agent's file. */
  input: z.record(z.string().max(100), JsonValue).optional(),
});

const CommandStep = z.strictObject({
  ...common,
  kind: z.literal("command"),
  /** The program and its arguments. */
  argv: z.array(z.string().max(TEXT_MAX)).min(1).max(1000),
  env: z.record(z.string().max(100), z.string().max(TEXT_MAX)).optional(),
  /** Inside; default `/workspace`. */
  cwd: z.string().min(1).max(1000).optional(),
  /** Whether an exit code other than 0 fails the step. Default true. */
  check: z.boolean().optional(),
  /** Absent: the sandbox that such commands of an instance share, which sees nothing of what agents changed. */
  workspace: FromStep.optional(),
  /** Artifacts of earlier steps that are put there before, by path: `${steps.build.output.artifacts.report}`. */
  files: z.record(z.string().min(1).max(1000), z.string().min(1).max(EXPRESSION_MAX)).optional(),
  artifacts: Artifacts,
});

/** What the agents of these steps changed becomes one workspace. */
const MergeStep = z.strictObject({
  ...common,
  kind: z.literal("merge"),
  /** Agents, or other merges; one in a `foreach` stands for all of its items. */
  of: z.array(Name).min(1).max(MERGED_SESSIONS_MAX),
  /** Who resolves what does not go together. Default `ask`: a person. */
  conflicts: ConflictPolicy.optional(),
  /** Who resolves it with `conflicts: agent`. Default `merger`. */
  agent: z.string().min(1).max(256).optional(),
  model: z.string().min(1).max(256).optional(),
  artifacts: Artifacts,
});

const SetStep = z.strictObject({ ...common, kind: z.literal("set"), data: z.record(DataPath, JsonValue) });

const TimerStep = z.strictObject({
  ...common,
  kind: z.literal("timer"),
  for: Duration.optional(),
  /** An expression that gives a time, as text. */
  until: Expression.optional(),
  /** Until the next time that matches. */
  cron: z.string().min(1).max(200).optional(),
});

const ApprovalStep = z.strictObject({
  ...common,
  kind: z.literal("approval"),
  text,
  /** What becomes of it when nobody answers in time. Default: it fails. */
  onTimeout: z.enum(["fail", "approve", "deny"]).optional(),
  /** What a refusal does. Default: the step fails. */
  onDeny: z.enum(["fail", "continue"]).optional(),
});

const SignalStep = z.strictObject({ ...common, kind: z.literal("signal"), signal: Name });
const FailStep = z.strictObject({ ...common, kind: z.literal("fail"), text });

const Steps: z.ZodType<WorkflowStep[]> = z.lazy(() => z.array(Step).min(1).max(STEPS_MAX));
const join = {
  /** How many must complete: all, any one, or this many. Default all. */
  join: z.union([z.enum(["all", "any"]), z.int().min(1).max(ITEMS_MAX)]).optional(),
  /** `fail_fast`: the others are cancelled once it cannot be joined. `collect`: all go on to their end. */
  onFailure: z.enum(["fail_fast", "collect"]).optional(),
};

const SwitchStep = z.strictObject({
  ...common,
  kind: z.literal("switch"),
  cases: z
    .array(z.strictObject({ when: Expression, steps: Steps }))
    .min(1)
    .max(BRANCHES_MAX),
  default: Steps.optional(),
});

const ParallelStep = z.strictObject({
  ...common,
  kind: z.literal("parallel"),
  branches: z.record(Name, Steps).refine((branches) => Object.keys(branches).length <= BRANCHES_MAX, `at most ${BRANCHES_MAX} branches`),
  ...join,
});

const ForeachStep = z.strictObject({
  ...common,
  kind: z.literal("foreach"),
  /** An expression that gives a list. */
  in: Expression,
  /** What an item is called in expressions. Default `item`; `index` is its number. */
  as: Name.optional(),
  /** How many at once. Default 1. */
  concurrency: z.int().min(1).max(100).optional(),
  steps: Steps,
  ...join,
});

const TryStep = z.strictObject({
  ...common,
  kind: z.literal("try"),
  steps: Steps,
  /** What is done when they fail; `error` has a code and a text. */
  catch: Steps.optional(),
  /** What is done in any case, also when the workflow is cancelled. */
  finally: Steps.optional(),
});

const SubWorkflowStep = z.strictObject({
  ...common,
  kind: z.literal("workflow"),
  /** A workflow of its own, written out. */
  definition: z.lazy((): z.ZodType<WorkflowDefinition> => WorkflowDefinition),
  input: z.record(z.string().max(100), JsonValue).optional(),
});

/** By their kinds; `steps` in them are checked one by one, so that a problem names the step it is in. */
export const stepSchemas = {
  agent: AgentStep,
  command: CommandStep,
  merge: MergeStep,
  set: SetStep,
  timer: TimerStep,
  approval: ApprovalStep,
  signal: SignalStep,
  fail: FailStep,
  switch: SwitchStep,
  parallel: ParallelStep,
  foreach: ForeachStep,
  try: TryStep,
  workflow: SubWorkflowStep,
} as const;
export type StepKind = keyof typeof stepSchemas;

interface CommonSettings {
  name: string;
  when?: string | undefined;
  timeout?: WorkflowDuration | undefined;
  retry?: z.infer<typeof Retry> | undefined;
  result?: string | undefined;
}
interface JoinSettings {
  join?: "all" | "any" | number | undefined;
  onFailure?: "fail_fast" | "collect" | undefined;
}
type Json = z.core.util.JSONType;
/** The steps that have steps in them are written out: a schema that leads to itself cannot be asked for its type. */
export type WorkflowStep =
  | z.infer<typeof AgentStep>
  | z.infer<typeof CommandStep>
  | z.infer<typeof MergeStep>
  | z.infer<typeof SetStep>
  | z.infer<typeof TimerStep>
  | z.infer<typeof ApprovalStep>
  | z.infer<typeof SignalStep>
  | z.infer<typeof FailStep>
  | (CommonSettings & { kind: "switch"; cases: { when: string; steps: WorkflowStep[] }[]; default?: WorkflowStep[] | undefined })
  | (CommonSettings & JoinSettings & { kind: "parallel"; branches: Record<string, WorkflowStep[]> })
  | (CommonSettings &
      JoinSettings & { kind: "foreach"; in: string; as?: string | undefined; concurrency?: number | undefined; steps: WorkflowStep[] })
  | (CommonSettings & {
      kind: "try";
      steps: WorkflowStep[];
      catch?: WorkflowStep[] | undefined;
      finally?: WorkflowStep[] | undefined;
    })
  | (CommonSettings & { kind: "workflow"; definition: WorkflowDefinition; input?: Record<string, Json> | undefined });
export type StepOf<Kind extends StepKind> = Extract<WorkflowStep, { kind: Kind }>;

export interface WorkflowDefinition {
  name: string;
  description?: string | undefined;
  version?: string | number | undefined;
  input?: ValueSchema | undefined;
  data?: Record<string, Json> | undefined;
  timeout?: WorkflowDuration | undefined;
  steps: WorkflowStep[];
  output?: Json | undefined;
  outputSchema?: ValueSchema | undefined;
}

const Step: z.ZodType<WorkflowStep> = z.lazy(
  () =>
    z.discriminatedUnion("kind", [
      AgentStep,
      CommandStep,
      MergeStep,
      SetStep,
      TimerStep,
      ApprovalStep,
      SignalStep,
      FailStep,
      SwitchStep,
      ParallelStep,
      ForeachStep,
      TryStep,
      SubWorkflowStep,
    ]) as unknown as z.ZodType<WorkflowStep>,
);

export const WorkflowDefinition: z.ZodType<WorkflowDefinition> = z.strictObject({
  name: z.string().regex(/^[a-z0-9][a-z0-9._-]{0,63}$/, "must be 1 to 64 lower-case letters, digits, dots, dashes or underscores"),
  description: z.string().max(2000).optional(),
  /** The author's own. */
  version: z.union([z.string().max(64), z.number()]).optional(),
  input: ValueSchema.optional(),
  /** What the shared data begins with. */
  data: z.record(z.string().max(100), JsonValue).optional(),
  /** Of the whole workflow. */
  timeout: Duration.optional(),
  steps: Steps,
  /** What comes of it: a value with `${ … }`. Absent: the output of the last step. */
  output: JsonValue.optional(),
  /** Which values its output may have. */
  outputSchema: ValueSchema.optional(),
});
