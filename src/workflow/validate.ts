import { Cron } from "croner";
import { CaissonError } from "../contract/error/error.ts";
import { checkValue, keysAt, type Problem, tellProblems } from "../contract/error/plain-problems.ts";
import {
  type StepKind,
  type StepOf,
  stepSchemas,
  type WorkflowDefinition,
  WorkflowDefinition as WorkflowSchema,
  type WorkflowStep,
} from "../contract/workflow/workflow.ts";
import { nearest } from "../lib/nearest.ts";
import { expressionProblem, expressionsIn } from "./expression.ts";
import type { Json } from "./state.ts";
import { createStepReferences, type StepReferences } from "./step-references.ts";

const DEFINITION_BYTES_MAX = 1024 * 1024;
export const DEPTH_MAX = 8;
const STEPS_IN_ALL_MAX = 2000;
const NESTED_MAX = 20;
/** A longer report would help no one. */
const PROBLEMS_MAX = 1000;
const VALUE_DEPTH_MAX = 200;
const NO_WORKSPACE = {
  text: "are in a workspace that is not stored",
  hint: "Name the workspace that the command works in: workspace: { from: STEP }",
};

const NOT_ITS_WORKSPACE = {
  text: "is of a workspace that other steps work in, too",
  hint: "Set cleanup for the whole workflow, or give the step its own workspace: workspace: own",
};

export interface DefinitionProblem {
  /** A path such as `steps.2.cases.0.when`. */
  path: string;
  text: string;
  hint?: string;
}

type Path = readonly PropertyKey[];

/** Checks a definition, and returns either it or its problems. */
export function readDefinition(
  value: unknown,
): { definition: WorkflowDefinition; problems: [] } | { definition: null; problems: DefinitionProblem[] } {
  if (isTooDeep(value)) return { definition: null, problems: [{ path: "", text: `is nested more than ${VALUE_DEPTH_MAX} deep` }] };
  const bytes = Buffer.byteLength(JSON.stringify(value) ?? "");
  if (bytes > DEFINITION_BYTES_MAX) {
    return { definition: null, problems: [{ path: "", text: `has ${bytes} bytes; the maximum is ${DEFINITION_BYTES_MAX}` }] };
  }
  const found = problemsWithWorkflow(value, { path: [], depth: 0, outer: [] });
  const problems = found.slice(0, PROBLEMS_MAX).map(({ path, text, hint }) => ({
    path: path.join("."),
    text,
    ...(hint !== undefined && { hint }),
  }));
  return problems.length === 0 ? { definition: value as WorkflowDefinition, problems: [] } : { definition: null, problems };
}

/** Returns an `invalid` error with all problems and the first hint. */
export function refusedDefinition(problems: readonly DefinitionProblem[]): CaissonError {
  const issues = problems.map(({ path, text }) => ({ path: path === "" ? [] : [path], text }));
  const hint = problems.find((each) => each.hint !== undefined)?.hint;
  return new CaissonError("invalid", `the workflow is invalid: ${tellProblems(issues)}`, {
    ...(hint !== undefined && { hint }),
    details: { problems },
  });
}

interface Found {
  path: Path;
  text: string;
  hint?: string;
}

interface Around {
  path: Path;
  /** Number of workflows that contain this one. */
  depth: number;
  /** The names of the workflows that contain this one. */
  outer: readonly string[];
}

function problemsWithWorkflow(value: unknown, around: Around): Found[] {
  const { path, depth, outer } = around;
  if (depth > DEPTH_MAX) return [{ path, text: `is nested in more than ${DEPTH_MAX} workflows` }];
  // Steps are checked separately below, so that each problem is reported once, with the settings of the step's kind.
  const own = ofSchema(WorkflowSchema, value, path).filter(
    (problem) => problem.path[path.length] !== "steps" || problem.path.length <= path.length + 1,
  );
  const { name, steps, output } = (value ?? {}) as { name?: string; steps?: unknown; output?: Json };
  if (name !== undefined && outer.includes(name)) {
    return [{ path: [...path, "name"], text: `${name} contains itself`, hint: "A workflow within another one needs a different name." }];
  }
  const names = new Map<string, Path>();
  const seen = { names, count: 0, references: createStepReferences() };
  const ofSteps = problemsWithSteps(steps, { ...around, path: [...path, "steps"], outer: [...outer, name ?? ""], nested: 0, seen });
  const ofOutput = output === undefined ? [] : problemsWithTexts(output, [...path, "output"]);
  return [...own, ...ofSteps, ...seen.references.problems(), ...ofOutput];
}

interface InSteps extends Around {
  nested: number;
  seen: { names: Map<string, Path>; count: number; references: StepReferences };
}

function problemsWithSteps(steps: unknown, around: InSteps): Found[] {
  if (!Array.isArray(steps)) return [];
  if (around.nested > NESTED_MAX) return [{ path: around.path, text: `steps are nested more than ${NESTED_MAX} deep` }];
  return steps.flatMap((step, index) => problemsWithStep(step, { ...around, path: [...around.path, index] }));
}

function problemsWithStep(step: unknown, around: InSteps): Found[] {
  const { path, seen } = around;
  if (step === null || typeof step !== "object" || Array.isArray(step)) return [{ path, text: "must be an object" }];
  seen.count += 1;
  if (seen.count > STEPS_IN_ALL_MAX)
    return seen.count === STEPS_IN_ALL_MAX + 1 ? [{ path, text: `there are more than ${STEPS_IN_ALL_MAX} steps` }] : [];
  const { kind, name } = step as { kind?: unknown; name?: unknown };
  const kinds = Object.keys(stepSchemas);
  if (typeof kind !== "string" || !Object.hasOwn(stepSchemas, kind)) {
    const suggestion = typeof kind === "string" ? nearest(kind, kinds) : undefined;
    const text = kind === undefined ? "is missing" : `must be one of ${kinds.join(", ")}`;
    return [
      {
        path: [...path, "kind"],
        text,
        hint: suggestion ? `Did you mean ${suggestion}?` : `Specify the kind of the step: kind: ${kinds.join(" | ")}`,
      },
    ];
  }
  const lists = listsIn(step as WorkflowStep);
  const own = ofSchema(stepSchemas[kind as StepKind], step, path).filter(
    (problem) =>
      !lists.some(
        (list) =>
          list.path.length + path.length < problem.path.length && list.path.every((part, at) => part === problem.path[path.length + at]),
      ),
  );
  const before = typeof name === "string" ? seen.names.get(name) : undefined;
  if (typeof name === "string") seen.names.set(name, path);
  if (own.length === 0) seen.references.add(step as WorkflowStep, path);
  const twice =
    before === undefined
      ? []
      : [
          {
            path: [...path, "name"],
            text: `the step ${before.join(".")} has the same name ${String(name)}`,
            hint: "Each step of a workflow needs a unique name.",
          },
        ];
  return [
    ...own,
    ...twice,
    ...(own.length === 0 ? problemsWithMeaning(step as WorkflowStep, around) : []),
    ...lists.flatMap((list) => problemsWithSteps(list.steps, { ...around, path: [...path, ...list.path], nested: around.nested + 1 })),
  ];
}

/** Returns the lists of steps within a step. */
function listsIn(step: WorkflowStep): { path: Path; steps: unknown }[] {
  switch (step.kind) {
    case "switch": {
      const cases = Array.isArray(step.cases) ? step.cases : [];
      return [
        ...cases.map((each, index) => ({ path: ["cases", index, "steps"], steps: each?.steps })),
        { path: ["default"], steps: step.default },
      ];
    }
    case "parallel":
      return Object.entries(step.branches ?? {}).map(([name, steps]) => ({ path: ["branches", name], steps }));
    case "foreach":
      return [{ path: ["steps"], steps: step.steps }];
    case "try":
      return (["steps", "catch", "finally"] as const).map((name) => ({ path: [name], steps: step[name] }));
    case "workflow":
      return [{ path: ["definition"], steps: undefined }];
    default:
      return [];
  }
}

/** Returns problems that a schema cannot express. */
function problemsWithMeaning(step: WorkflowStep, around: InSteps): Found[] {
  const { path } = around;
  const conditions: [Path, string | undefined][] = [[["when"], step.when]];
  const texts: [Path, Json | undefined][] = [];
  const found: Found[] = [];
  switch (step.kind) {
    case "agent":
      texts.push([["task"], step.task], [["input"], step.input]);
      found.push(...problemsWithCleanup(step, path));
      break;
    case "command":
      texts.push([["argv"], step.argv], [["env"], step.env], [["cwd"], step.cwd], [["files"], step.files]);
      if (step.artifacts !== undefined && step.workspace === undefined) found.push({ path: [...path, "artifacts"], ...NO_WORKSPACE });
      break;
    case "set":
      texts.push([["data"], step.data]);
      break;
    case "approval":
    case "fail":
      texts.push([["text"], step.text]);
      break;
    case "timer":
      conditions.push([["until"], step.until]);
      found.push(...problemsWithTimer(step, path));
      break;
    case "switch":
      conditions.push(...step.cases.map(({ when }, index): [Path, string] => [["cases", index, "when"], when]));
      break;
    case "foreach":
      conditions.push([["in"], step.in]);
      break;
    case "parallel":
      if (typeof step.join === "number" && step.join > Object.keys(step.branches).length) {
        found.push({ path: [...path, "join"], text: `waits for ${step.join} of ${Object.keys(step.branches).length} branches` });
      }
      break;
    case "workflow":
      texts.push([["input"], step.input]);
      found.push(...problemsWithWorkflow(step.definition, { path: [...path, "definition"], depth: around.depth + 1, outer: around.outer }));
      break;
    default:
  }
  for (const [at, expression] of conditions)
    if (expression !== undefined) found.push(...problemsWithExpression(expression, [...path, ...at]));
  for (const [at, value] of texts) if (value !== undefined) found.push(...problemsWithTexts(value, [...path, ...at]));
  return found;
}

function problemsWithCleanup({ cleanup, workspace }: StepOf<"agent">, path: Path): Found[] {
  if (cleanup === undefined || workspace === "own" || (typeof workspace === "object" && "fork" in workspace)) return [];
  return [{ path: [...path, "cleanup"], ...NOT_ITS_WORKSPACE }];
}

function problemsWithTimer(step: Extract<WorkflowStep, { kind: "timer" }>, path: Path): Found[] {
  const count = [step.for, step.until, step.cron].filter((each) => each !== undefined).length;
  if (count !== 1) return [{ path, text: "needs exactly one of for, until and cron" }];
  if (step.cron === undefined) return [];
  try {
    new Cron(step.cron, { timezone: "UTC" });
    return [];
  } catch (error) {
    return [
      {
        path: [...path, "cron"],
        text: (error as Error).message.slice(0, 200),
        hint: 'Use minute, hour, day, month, weekday: "0 9 * * 1-5" is nine o\'clock from Monday to Friday.',
      },
    ];
  }
}

function problemsWithTexts(value: Json, path: Path): Found[] {
  return expressionsIn(value, path).flatMap(({ path: at, expression }) => problemsWithExpression(expression, at));
}

function problemsWithExpression(expression: string, path: Path): Found[] {
  const text = expressionProblem(expression);
  return text === null
    ? []
    : [
        {
          path,
          text: `${JSON.stringify(expression.slice(0, 200))} is not an expression: ${text}`,
          hint: "Write expressions in CEL, such as steps.test.output.exitCode == 0.",
        },
      ];
}

function ofSchema(schema: Parameters<typeof checkValue>[0], value: unknown, path: Path): Found[] {
  const checked = checkValue(schema, value);
  if (checked.success) return [];
  return checked.problems.map((problem: Problem) => {
    const { unknown } = problem;
    // Only the settings of this kind of step; other kinds have different ones.
    const known = unknown === undefined || problem.path.length > 0 ? unknown?.known : keysAt(schema, []);
    const suggestion = unknown === undefined ? undefined : nearest(unknown.key, known ?? []);
    return { path: [...path, ...problem.path], text: problem.text, ...(suggestion && { hint: `Did you mean ${suggestion}?` }) };
  });
}

/** Checks the depth without recursion: the value may be arbitrarily deep. */
export function isTooDeep(value: unknown): boolean {
  let level: unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > VALUE_DEPTH_MAX) return true;
    level = level.flatMap((each) => (each !== null && typeof each === "object" ? Object.values(each) : []));
  }
  return false;
}
