import type { CheckResult, Judgement, SpecData, WrittenPhase } from "../../contract/spec/spec.ts";
import { unreachable } from "../../lib/unreachable.ts";
import { earsForm } from "./ears.ts";
import { type Evaluator, evaluators, type Rule } from "./evaluators.ts";
import { taskGraph } from "./task-graph.ts";

/** The longest feedback of one check. */
const FEEDBACK_CHARACTERS_MAX = 1000;
const NAMED_MAX = 8;

/** Scores a phase's data with its evaluator. `spec` contains everything written so far, including this phase. */
export function evaluate(phase: WrittenPhase, spec: SpecData, evaluator: Evaluator = evaluators[phase]): Judgement {
  const data = spec[phase] ?? {};
  const results = evaluator.checks.map((check) => {
    const { score, feedback } = judge(check.rule, data, spec);
    const wrong = score === 1 ? "" : `${check.wants}${feedback === "" ? "" : `; ${feedback}`}`.slice(0, FEEDBACK_CHARACTERS_MAX);
    return { result: { check: check.id, weight: check.weight, score, feedback: wrong }, failed: check.must === true && score < 1 };
  });
  const checks: CheckResult[] = results.map(({ result }) => result);
  const total = checks.reduce((sum, { weight }) => sum + weight, 0);
  const score = round(checks.reduce((sum, each) => sum + each.weight * each.score, 0) / total);
  const passed = score >= evaluator.threshold && results.every(({ failed }) => !failed);
  return { passed, score, threshold: evaluator.threshold, checks };
}

interface RuleVerdict {
  score: number;
  /** What exactly is wrong. */
  feedback: string;
}

function judge(rule: Rule, data: object, spec: SpecData): RuleVerdict {
  switch (rule.kind) {
    case "text": {
      const { length } = textAt(data, rule.path).trim();
      return verdict(length > rule.moreThan, `it has ${length} characters`);
    }
    case "count": {
      const { length } = listAt(data, rule.path);
      return { score: Math.min(1, length / rule.min), feedback: `there are ${length}` };
    }
    case "ids":
      return ids(listAt(data, rule.path), rule.prefix);
    case "countEach":
      return each(listAt(data, rule.path), (item) => listAt(item, rule.field).length >= rule.min);
    case "numberEach":
      return each(listAt(data, rule.path), (item) => isBetween(valueAt(item, rule.field), rule));
    case "ears":
      return each(listAt(data, rule.path), (item) => earsForm(textAt(item, rule.field)) !== null);
    case "graph": {
      const { problems } = taskGraph(tasksAt(data, rule.path));
      return verdict(problems.length === 0, problems.slice(0, NAMED_MAX).join("; "));
    }
    case "criticalPath": {
      const { criticalPath, criticalHours } = taskGraph(tasksAt(data, rule.tasks));
      const hours = hoursAlong(valueAt(data, rule.path), tasksAt(data, rule.tasks));
      return verdict(hours !== null && hours === criticalHours, `it is ${criticalPath.join(" → ")}`);
    }
    case "known": {
      const known = new Set(idsIn(spec[rule.phase], rule.among));
      return each(listAt(data, rule.path), (item) => {
        const named = listAt(item, rule.field);
        return named.length > 0 && named.every((id) => known.has(String(id)));
      });
    }
    case "covers": {
      const named = new Set(listAt(data, rule.path).flatMap((item) => namesIn(valueAt(item, rule.field))));
      const requiredIds = idsIn(spec[rule.phase], rule.of);
      const missing = requiredIds.filter((id) => !named.has(id));
      const score = requiredIds.length === 0 ? 1 : 1 - missing.length / requiredIds.length;
      return { score: round(score), feedback: `nothing names ${some(missing)}` };
    }
    case "isTrue":
      return verdict(valueAt(data, rule.path) === true, "it is false or missing");
    default:
      return unreachable(rule);
  }
}

const verdict = (passed: boolean, feedback: string): RuleVerdict => ({ score: passed ? 1 : 0, feedback: passed ? "" : feedback });

/** Scores the share of correct items. An empty list scores 0. */
function each(items: readonly unknown[], isGood: (item: unknown) => boolean): RuleVerdict {
  const bad = items.filter((item) => !isGood(item));
  const score = items.length === 0 ? 0 : round(1 - bad.length / items.length);
  return { score, feedback: items.length === 0 ? "the list is empty" : `fails for ${some(bad.map(nameOf))}` };
}

function ids(items: readonly unknown[], prefix: string): RuleVerdict {
  const form = new RegExp(`^${prefix}-[0-9]{3,6}$`);
  const all = items.map((item) => textAt(item, "id"));
  return each(items, (item) => {
    const id = textAt(item, "id");
    return form.test(id) && all.indexOf(id) === all.lastIndexOf(id);
  });
}

/**
 * Returns the hours of a chain of tasks, or null if it is not a chain in which each task depends on the previous one.
 */
function hoursAlong(path: unknown, tasks: ReturnType<typeof tasksAt>): number | null {
  if (!Array.isArray(path) || path.length === 0) return null;
  let hours = 0;
  for (const [index, id] of path.entries()) {
    const task = tasks.find((each) => each.id === id);
    if (task === undefined || (index > 0 && !task.dependsOn.includes(path[index - 1] as string))) return null;
    hours += task.hours;
  }
  return hours;
}

const round = (score: number) => Math.round(score * 1000) / 1000;
const some = (names: readonly string[]) =>
  names.length > NAMED_MAX ? `${names.slice(0, NAMED_MAX).join(", ")} and ${names.length - NAMED_MAX} more` : names.join(", ");
const nameOf = (item: unknown) => (textAt(item, "id") || textAt(item, "requirement") || "an item without an id").slice(0, 64);
const idsIn = (data: unknown, path: string): string[] => listAt(data, path).map((item) => textAt(item, "id"));
const namesIn = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : value === undefined ? [] : [String(value)]);
const isBetween = (value: unknown, { min, max }: { min: number; max: number }) => typeof value === "number" && value >= min && value <= max;

function tasksAt(data: unknown, path: string): { id: string; dependsOn: string[]; hours: number }[] {
  return listAt(data, path).map((item) => ({
    id: textAt(item, "id"),
    dependsOn: listAt(item, "dependsOn").map(String),
    hours: Number(valueAt(item, "hours") ?? 0),
  }));
}

function valueAt(data: unknown, path: string): unknown {
  let value = data;
  for (const name of path.split(".")) value = (value as Record<string, unknown> | null | undefined)?.[name];
  return value;
}

function textAt(data: unknown, path: string): string {
  const value = valueAt(data, path);
  return typeof value === "string" ? value : "";
}

function listAt(data: unknown, path: string): unknown[] {
  const value = valueAt(data, path);
  return Array.isArray(value) ? value : [];
}
