import type { WrittenPhase } from "../../contract/spec/spec.ts";

/**
 * The rules that a phase's output must pass, as data: weighted checks, and the share of the weight that is enough.
 * `evaluate.ts` implements each kind of rule. Paths refer to the phase's schema.
 */
export interface Check {
  id: string;
  weight: number;
  /** The expectation, as a fragment of the agent's task. */
  wants: string;
  rule: Rule;
  /** If this check fails, the attempt fails regardless of its score. */
  must?: true;
}

export type Rule =
  /** A text longer than this many characters. */
  | { kind: "text"; path: string; moreThan: number }
  /** A list of at least this many items. */
  | { kind: "count"; path: string; min: number }
  /** A list whose items have unique ids of this form. */
  | { kind: "ids"; path: string; prefix: string }
  /** A list whose items each have a list of at least this many. */
  | { kind: "countEach"; path: string; field: string; min: number }
  /** A list whose items each have a number in this range. */
  | { kind: "numberEach"; path: string; field: string; min: number; max: number }
  /** A list whose items each have a text in the Easy Approach to Requirements Syntax. */
  | { kind: "ears"; path: string; field: string }
  /** A task list without cycles and without unknown dependencies. */
  | { kind: "graph"; path: string }
  /** The path is the longest chain through the tasks. */
  | { kind: "criticalPath"; path: string; tasks: string }
  /** A list whose items name, in a field, only ids that exist in this or another phase. */
  | { kind: "known"; path: string; field: string; phase: WrittenPhase; among: string }
  /** A list that names every id of another phase's list. */
  | { kind: "covers"; path: string; field: string; phase: WrittenPhase; of: string }
  | { kind: "isTrue"; path: string };

export interface Evaluator {
  threshold: number;
  attempts: number;
  checks: readonly Check[];
}

/** The share of the total weight that is enough. */
const THRESHOLD = 0.7;
/** How many attempts a phase has. */
const ATTEMPTS = 3;
const usual = { threshold: THRESHOLD, attempts: ATTEMPTS };

export const evaluators: Readonly<Record<WrittenPhase, Evaluator>> = {
  explore: {
    ...usual,
    checks: [
      {
        id: "summary",
        weight: 0.4,
        wants: "`summary` describes the project in more than 50 characters",
        rule: { kind: "text", path: "summary", moreThan: 50 },
      },
      {
        id: "key-files",
        weight: 0.4,
        wants: "`keyFiles` lists at least 3 files and why each one matters",
        rule: { kind: "count", path: "keyFiles", min: 3 },
      },
      {
        id: "scope",
        weight: 0.2,
        wants: "`scope.inside` lists what is in scope",
        rule: { kind: "count", path: "scope.inside", min: 1 },
      },
    ],
  },
  prd: {
    ...usual,
    checks: [
      {
        id: "problem",
        weight: 0.2,
        wants: "`problem` describes the problem and who has it",
        rule: { kind: "text", path: "problem", moreThan: 30 },
      },
      { id: "stories", weight: 0.25, wants: "`stories` has at least one story", rule: { kind: "count", path: "stories", min: 1 } },
      {
        id: "story-ids",
        weight: 0.3,
        wants: "each story has a unique `id` such as US-001",
        rule: { kind: "ids", path: "stories", prefix: "US" },
      },
      {
        id: "metrics",
        weight: 0.25,
        wants: "`metrics` has at least one measure of success",
        rule: { kind: "count", path: "metrics", min: 1 },
      },
    ],
  },
  requirements: {
    ...usual,
    checks: [
      {
        id: "some",
        weight: 0.1,
        wants: "`requirements` has at least one requirement",
        rule: { kind: "count", path: "requirements", min: 1 },
        must: true,
      },
      {
        id: "ids",
        weight: 0.2,
        wants: "each requirement has a unique `id` such as REQ-001",
        rule: { kind: "ids", path: "requirements", prefix: "REQ" },
        must: true,
      },
      {
        id: "ears",
        weight: 0.35,
        wants:
          "each `statement` is in EARS: “When …, the … shall …”, “While …, the … shall …”, “Where …, the … shall …”, “If …, then the … shall …” or “The … shall …”",
        rule: { kind: "ears", path: "requirements", field: "statement" },
      },
      {
        id: "criteria",
        weight: 0.35,
        wants: "each requirement has at least 2 `criteria` that can be checked",
        rule: { kind: "countEach", path: "requirements", field: "criteria", min: 2 },
      },
    ],
  },
  design: {
    ...usual,
    checks: [
      { id: "overview", weight: 0.25, wants: "`overview` explains how it works", rule: { kind: "text", path: "overview", moreThan: 50 } },
      {
        id: "components",
        weight: 0.25,
        wants: "`components` names the parts and what each one does",
        rule: { kind: "count", path: "components", min: 1 },
      },
      { id: "api", weight: 0.15, wants: "`api` describes what callers use", rule: { kind: "text", path: "api", moreThan: 10 } },
      { id: "data", weight: 0.15, wants: "`data` says what is stored, and where", rule: { kind: "text", path: "data", moreThan: 10 } },
      {
        id: "security",
        weight: 0.2,
        wants: "`security` says what could be misused",
        rule: { kind: "text", path: "security", moreThan: 10 },
      },
    ],
  },
  tasks: {
    ...usual,
    checks: [
      { id: "some", weight: 0.1, wants: "`tasks` has at least one task", rule: { kind: "count", path: "tasks", min: 1 }, must: true },
      {
        id: "ids",
        weight: 0.15,
        wants: "each task has a unique `id` such as TASK-001",
        rule: { kind: "ids", path: "tasks", prefix: "TASK" },
        must: true,
      },
      {
        id: "graph",
        weight: 0.2,
        wants: "`dependsOn` names existing tasks, and no tasks wait for each other",
        rule: { kind: "graph", path: "tasks" },
        must: true,
      },
      {
        id: "hours",
        weight: 0.2,
        wants: "each task takes 1 to 4 `hours`",
        rule: { kind: "numberEach", path: "tasks", field: "hours", min: 1, max: 4 },
      },
      {
        id: "requirements",
        weight: 0.2,
        wants: "each requirement has a task that names it in `requirements`",
        rule: { kind: "covers", path: "tasks", field: "requirements", phase: "requirements", of: "requirements" },
      },
      {
        id: "critical-path",
        weight: 0.15,
        wants: "`criticalPath` is the longest chain of tasks, by hours",
        rule: { kind: "criticalPath", path: "criticalPath", tasks: "tasks" },
      },
    ],
  },
  sync: {
    ...usual,
    checks: [
      {
        id: "matrix",
        weight: 0.4,
        wants: "`matrix` has a row for each requirement",
        rule: { kind: "covers", path: "matrix", field: "requirement", phase: "requirements", of: "requirements" },
      },
      {
        id: "traceability",
        weight: 0.3,
        wants: "each row of `matrix` names at least one of the tasks",
        rule: { kind: "known", path: "matrix", field: "tasks", phase: "tasks", among: "tasks" },
      },
      { id: "ready", weight: 0.3, wants: "`ready` is true: nothing is missing", rule: { kind: "isTrue", path: "ready" }, must: true },
    ],
  },
};
