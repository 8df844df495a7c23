import type { StepOf, WorkflowDefinition, WorkflowStep } from "../../../../src/contract/workflow/workflow.ts";
import type { WorkflowStepView, WorkflowView } from "../../../../src/contract/workflow/workflow-verbs.ts";
import type { NodeState } from "../../parts/graph-state.tsx";
import type { StepAttempt } from "./step-history.ts";

/** A step of the definition, with its state. */
export interface StepNode {
  path: string;
  step: WorkflowStep;
  state: NodeState;
  /** Null if it has not started. */
  view: WorkflowStepView | null;
  /** The lists of steps inside it. */
  groups: readonly StepGroup[];
  /** How many items of a long list are not drawn. */
  left: number;
}

export interface StepGroup {
  key: string;
  label: string;
  isUnused: boolean;
  nodes: readonly StepNode[];
}

/** How many items of a list are drawn. Those with problems come first. */
const ITEMS_DRAWN = 12;
const ITEM_TEXT_MAX = 40;

interface Known {
  steps: ReadonlyMap<string, WorkflowStepView>;
  /** Path prefixes that end in `/` and contain at least one started step. */
  begun: ReadonlySet<string>;
  history: ReadonlyMap<string, readonly StepAttempt[]>;
  isOver: boolean;
}

/** Returns the steps of an instance's definition in order, each with its state. */
export function stepTree(
  { definition, steps, finish }: Pick<WorkflowView, "definition" | "steps" | "finish">,
  history: Known["history"] = new Map(),
): StepNode[] {
  const startedPrefixes = new Set<string>();
  for (const { path } of steps)
    for (let at = path.indexOf("/"); at !== -1; at = path.indexOf("/", at + 1)) startedPrefixes.add(path.slice(0, at + 1));
  const known = { steps: new Map(steps.map((view) => [view.path, view])), begun: startedPrefixes, history, isOver: finish !== null };
  return nodesOf((definition as unknown as WorkflowDefinition).steps, "", known);
}

function nodesOf(steps: readonly WorkflowStep[], prefix: string, known: Known, isUnused = false): StepNode[] {
  return steps.map((step) => {
    const path = `${prefix}${step.name}`;
    const view = known.steps.get(path) ?? null;
    const below = view === null || view.attempt === 1 ? `${path}/` : `${path}~${view.attempt}/`;
    const state = stateOf(view, known.isOver || isUnused);
    return { path, step, view, state, ...groupsOf(step, below, { ...known, isUnused: isUnused || isOut(state) }) };
  });
}

const isOut = (state: NodeState) => state === "unused" || state === "skipped";

export function stateOf(view: WorkflowStepView | null, isOver: boolean): NodeState {
  if (view === null) return isOver ? "unused" : "pending";
  if (view.status === "failed" && view.due !== null && !isOver) return "retrying";
  if (view.status !== "running") return view.status;
  if (view.kind === "approval") return "asks";
  return view.kind === "signal" || view.kind === "timer" ? "waiting" : "running";
}

type Inside = Known & { isUnused: boolean };

function groupsOf(step: WorkflowStep, below: string, known: Inside): Pick<StepNode, "groups" | "left"> {
  const group = (key: string, label: string, steps: readonly WorkflowStep[], isUnused = known.isUnused): StepGroup => {
    return { key, label, isUnused, nodes: nodesOf(steps, `${below}${key}/`, known, isUnused) };
  };
  const wasBegun = (key: string) => known.begun.has(`${below}${key}/`);
  switch (step.kind) {
    case "switch": {
      const ways = [
        ...step.cases.map(({ when, steps }, index) => ({ key: String(index), label: `when ${when}`, steps })),
        ...(step.default === undefined ? [] : [{ key: "default", label: "otherwise", steps: step.default }]),
      ];
      // A case was chosen as soon as one of its steps has started.
      const isDecided = ways.some(({ key }) => wasBegun(key));
      return {
        left: 0,
        groups: ways.map(({ key, label, steps }) => group(key, label, steps, known.isUnused || (isDecided && !wasBegun(key)))),
      };
    }
    case "parallel":
      return { left: 0, groups: Object.entries(step.branches).map(([name, steps]) => group(name, name, steps)) };
    case "foreach":
      return itemGroups(step, below, { ...known, group });
    case "try": {
      const hasFailed = wasBegun("catch");
      const isDone = wasBegun("finally");
      return {
        left: 0,
        groups: [
          group("try", "try", step.steps),
          ...(step.catch === undefined ? [] : [group("catch", "on failure", step.catch, known.isUnused || (isDone && !hasFailed))]),
          ...(step.finally === undefined ? [] : [group("finally", "always", step.finally)]),
        ],
      };
    }
    default:
      return { left: 0, groups: [] };
  }
}

function itemGroups(
  step: StepOf<"foreach">,
  below: string,
  known: Inside & { group(key: string, label: string, steps: readonly WorkflowStep[]): StepGroup },
): Pick<StepNode, "groups" | "left"> {
  const path = below.replace(/(~\d+)?\/$/, "");
  const input = known.history.get(path)?.at(-1)?.given as { items?: unknown[] } | null | undefined;
  const items = input?.items ?? countedItems(below, known.begun);
  if (items.length === 0) return { left: 0, groups: [known.group("0", `each of ${step.in}`, step.steps)] };
  const name = step.as ?? "item";
  const groups = items.map((item, index) => {
    const text = item === undefined ? "" : `: ${(typeof item === "string" ? item : (JSON.stringify(item) ?? "")).slice(0, ITEM_TEXT_MAX)}`;
    return known.group(String(index), `${name} ${index + 1}${text}`, step.steps);
  });
  const drawn = new Set(groups.toSorted((one, other) => rank(one) - rank(other)).slice(0, ITEMS_DRAWN));
  return { left: groups.length - drawn.size, groups: groups.filter((each) => drawn.has(each)) };
}

/** Returns a list with one `undefined` for each item whose steps have started. */
function countedItems(below: string, startedPrefixes: ReadonlySet<string>): undefined[] {
  let count = 0;
  while (startedPrefixes.has(`${below}${count}/`)) count += 1;
  return Array.from({ length: count }, () => undefined);
}

const ranks: readonly (readonly NodeState[])[] = [
  ["failed", "retrying", "asks"],
  ["running", "waiting"],
  ["completed", "cancelled", "skipped"],
];

function rank({ nodes }: StepGroup): number {
  const states = nodes.map(({ state }) => state);
  const found = ranks.findIndex((each) => states.some((state) => each.includes(state)));
  return found === -1 ? ranks.length : found;
}

/** Finds the node of a path at any depth. */
export function nodeAt(nodes: readonly StepNode[], path: string): StepNode | null {
  for (const node of nodes) {
    if (node.path === path) return node;
    const found = node.groups.map((group) => nodeAt(group.nodes, path)).find((each) => each !== null);
    if (found !== undefined) return found;
  }
  return null;
}

/** Counts finished steps and all steps, for a summary. */
export function countSteps(nodes: readonly StepNode[]): { done: number; all: number } {
  let [done, all] = [0, 0];
  for (const { state, groups } of nodes) {
    if (state !== "unused") all += 1;
    if (state === "completed" || state === "skipped") done += 1;
    for (const group of groups) {
      if (group.isUnused) continue;
      const inside = countSteps(group.nodes);
      done += inside.done;
      all += inside.all;
    }
  }
  return { done, all };
}

const TEXT_MAX = 160;

/** Describes a step in one line. */
export function aboutStep(step: WorkflowStep): string {
  const text = wordsOf(step).replaceAll(/\s+/g, " ").trim();
  return text.length > TEXT_MAX ? `${text.slice(0, TEXT_MAX - 1)}…` : text;
}

function wordsOf(step: WorkflowStep): string {
  switch (step.kind) {
    case "agent":
      return `${step.agent ?? "coder"}: ${step.task}`;
    case "command":
      return step.argv.join(" ");
    case "set":
      return Object.keys(step.data).join(", ");
    case "timer":
      return step.for === undefined ? (step.until ?? step.cron ?? "") : `for ${step.for}`;
    case "approval":
    case "fail":
      return step.text;
    case "signal":
      return step.signal;
    case "switch":
      return "one of these";
    case "parallel":
      return joinWords(step.join, "in parallel");
    case "foreach":
      return joinWords(step.join, `in ${step.in}${step.concurrency === undefined ? "" : `, ${step.concurrency} at a time`}`);
    case "try":
      return "";
    case "merge":
      return step.of.join(", ");
    case "workflow":
      return step.definition.name;
    default:
      return step satisfies never;
  }
}

const joinWords = (join: StepOf<"parallel">["join"], text: string) =>
  join === undefined || join === "all" ? text : `${text}, until ${join === "any" ? "one is" : `${join} are`} done`;
