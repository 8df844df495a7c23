import { z } from "zod";
import { JsonValue } from "../json-value.ts";
import { ConflictPolicy } from "../merge/merge-event.ts";
import { MERGED_SESSIONS_MAX } from "../merge/merge-verbs.ts";
import { SessionCleanup } from "../session/session.ts";
import { ValueSchema } from "./value-schema.ts";

/**
 * A workflow definition, written in YAML or JSON. Texts may contain `${ … }` with a CEL expression; `when`, `in`,
 * `until` and `output` are expressions themselves.
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
  .regex(/^[a-z][a-zA-Z0-9_]{0,39}$/, "must be a name: a lower-case letter, then letters, digits or _, at most 40 characters");
const Duration = z
  .union([z.string(), z.number()])
  .refine((value) => /^\d+(\.\d+)?\s*(ms|s|m|h)?$/i.test(String(value)), "must be a duration such as 30s, 5m or 2h");
export type WorkflowDuration = z.infer<typeof Duration>;
/** A path in the shared data, such as `review.notes`. */
const DataPath = z.string().regex(/^[a-zA-Z_][a-zA-Z0-9_]*(\.[a-zA-Z_][a-zA-Z0-9_]*){0,9}$/, "must be names separated by dots");

const Retry = z.strictObject({
  /** Total number of attempts. */
  attempts: z.int().min(1).max(100),
  /** The pause before the second attempt; it doubles each time. Default 1s. */
  backoff: Duration.optional(),
  /** The longest pause. Default 5m. */
  maxDelay: Duration.optional(),
  /** The error codes to retry. Default: all. */
  on: z.array(z.string().max(64)).min(1).max(30).optional(),
});

/** Settings of every kind of step. */
const common = {
  name: Name,
  /** The step is skipped if this is false. */
  when: Expression.optional(),
  timeout: Duration.optional(),
  retry: Retry.optional(),
  /** Where to store its output in the shared data as well. */
  result: DataPath.optional(),
};

/** Work in the workspace of an earlier step. */
const FromStep = z.strictObject({ from: Name });
/** Workspace files for later steps, by path and digest. */
const Artifacts = z
  .record(Name, z.string().min(1).max(1000))
  .refine((artifacts) => Object.keys(artifacts).length <= ARTIFACTS_MAX, `must have at most ${ARTIFACTS_MAX} entries`)
  .optional();

const AgentStep = z.strictObject({
  ...common,
  kind: z.literal("agent"),
  /** An agent's name. Default `coder`. */
  agent: z.string().min(1).max(256).optional(),
  task: text,
  model: z.string().min(1).max(256).optional(),
  /**
   * `shared`: one workspace for all such steps, which run one at a time. `own`: a fresh one. `from`: that of an earlier
   * step. `fork`: a copy of that, which several steps can start from. Default `shared`.
   */
  workspace: z.union([z.enum(["shared", "own"]), FromStep, z.strictObject({ fork: Name })]).optional(),
  /**
   * For its own workspace: when it goes, which is at the end of the workflow at the earliest, since later steps may
   * use it. Default: as the workflow says.
   */
  cleanup: SessionCleanup.optional(),
  artifacts: Artifacts,
  maxSteps: z.int().min(1).max(100_000).optional(),
  maxCostUsd: z.number().positive().optional(),
  /** Values for the template in the agent file. */
  input: z.record(z.string().max(100), JsonValue).optional(),
});

const CommandStep = z.strictObject({
  ...common,
  kind: z.literal("command"),
  /** The program and its arguments. */
  argv: z.array(z.string().max(TEXT_MAX)).min(1).max(1000),
  env: z.record(z.string().max(100), z.string().max(TEXT_MAX)).optional(),
  /** The working folder inside; default `/workspace`. */
  cwd: z.string().min(1).max(1000).optional(),
  /** Whether an exit code other than 0 fails the step. Default true. */
  check: z.boolean().optional(),
  /** Absent: the sandbox that such commands of an instance share, which has none of the agents' changes. */
  workspace: FromStep.optional(),
  /** Artifacts of earlier steps to copy in first, by path: `${steps.build.output.artifacts.report}`. */
  files: z.record(z.string().min(1).max(1000), z.string().min(1).max(EXPRESSION_MAX)).optional(),
  artifacts: Artifacts,
});

/** Merges the changes of several agents into one workspace. */
const MergeStep = z.strictObject({
  ...common,
  kind: z.literal("merge"),
  /** Agents or other merges; a step in a `foreach` includes all of its items. */
  of: z.array(Name).min(1).max(MERGED_SESSIONS_MAX),
  /** Who resolves conflicts. Default `ask`: a person. */
  conflicts: ConflictPolicy.optional(),
  /** The agent for `conflicts: agent`. Default `merger`. */
  agent: z.string().min(1).max(256).optional(),
  model: z.string().min(1).max(256).optional(),
  artifacts: Artifacts,
});

const SetStep = z.strictObject({ ...common, kind: z.literal("set"), data: z.record(DataPath, JsonValue) });

const TimerStep = z.strictObject({
  ...common,
  kind: z.literal("timer"),
  for: Duration.optional(),
  /** An expression for a time, as text. */
  until: Expression.optional(),
  /** Wait until the next match. */
  cron: z.string().min(1).max(200).optional(),
});

const ApprovalStep = z.strictObject({
  ...common,
  kind: z.literal("approval"),
  text,
  /** What happens without an answer in time. Default: the step fails. */
  onTimeout: z.enum(["fail", "approve", "deny"]).optional(),
  /** What happens after a refusal. Default: the step fails. */
  onDeny: z.enum(["fail", "continue"]).optional(),
});

const SignalStep = z.strictObject({ ...common, kind: z.literal("signal"), signal: Name });
const FailStep = z.strictObject({ ...common, kind: z.literal("fail"), text });

const Steps: z.ZodType<WorkflowStep[]> = z.lazy(() => z.array(Step).min(1).max(STEPS_MAX));
const join = {
  /** How many must complete: all, any one, or this many. Default all. */
  join: z.union([z.enum(["all", "any"]), z.int().min(1).max(ITEMS_MAX)]).optional(),
  /** `fail_fast`: cancels the others as soon as the join is impossible. `collect`: lets all of them finish. */
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
  branches: z
    .record(Name, Steps)
    .refine((branches) => Object.keys(branches).length <= BRANCHES_MAX, `must have at most ${BRANCHES_MAX} entries`),
  ...join,
});

const ForeachStep = z.strictObject({
  ...common,
  kind: z.literal("foreach"),
  /** An expression for a list. */
  in: Expression,
  /** The variable for the item in expressions. Default `item`; `index` is its number. */
  as: Name.optional(),
  /** How many items run at once. Default 1. */
  concurrency: z.int().min(1).max(100).optional(),
  steps: Steps,
  ...join,
});

const TryStep = z.strictObject({
  ...common,
  kind: z.literal("try"),
  steps: Steps,
  /** Runs if they fail; `error` has a code and a text. */
  catch: Steps.optional(),
  /** Runs in any case, even if the workflow is cancelled. */
  finally: Steps.optional(),
});

const SubWorkflowStep = z.strictObject({
  ...common,
  kind: z.literal("workflow"),
  /** A separate workflow, written inline. */
  definition: z.lazy((): z.ZodType<WorkflowDefinition> => WorkflowDefinition),
  input: z.record(z.string().max(100), JsonValue).optional(),
});

/** Step schemas by kind. The `steps` within them are checked separately, so that a problem names its own step. */
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
/** Written out by hand for steps that contain steps: TypeScript cannot infer the type of a recursive schema. */
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
  cleanup?: SessionCleanup | undefined;
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
  /** The author's own version. */
  version: z.union([z.string().max(64), z.number()]).optional(),
  input: ValueSchema.optional(),
  /** The initial shared data. */
  data: z.record(z.string().max(100), JsonValue).optional(),
  /** The timeout of the whole workflow. */
  timeout: Duration.optional(),
  /**
   * When the workspaces of its steps go: `always` at its end, `on_success` at its end if it completed, `never` when you
   * remove them. Default: as the workflow that contains it, else as the agents' files say, else never.
   */
  cleanup: SessionCleanup.optional(),
  steps: Steps,
  /** The result: a value with `${ … }`. Default: the output of the last step. */
  output: JsonValue.optional(),
  /** The schema of the output. */
  outputSchema: ValueSchema.optional(),
});
