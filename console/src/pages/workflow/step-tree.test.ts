import { expect, test } from "vitest";
import type { WorkflowStep } from "../../../../src/contract/workflow/workflow.ts";
import type { WorkflowStepView } from "../../../../src/contract/workflow/workflow-verbs.ts";
import { historyOf } from "./step-history.ts";
import { aboutStep, countSteps, nodeAt, type StepNode, stepTree } from "./step-tree.ts";

const at = "2026-06-01T12:00:00.000Z";
const command = (name: string): WorkflowStep => ({ name, kind: "command", argv: ["true"] });
const view = (path: string, overrides: Partial<WorkflowStepView> = {}): WorkflowStepView => ({
  ...{
    path,
    kind: "command",
    status: "completed",
    attempt: 1,
    child: null,
    output: null,
    error: null,
    due: null,
    startedAt: at,
    endedAt: at,
  },
  ...overrides,
});
const tree = (
  steps: WorkflowStep[],
  views: WorkflowStepView[],
  options: { finish?: "failed"; history?: ReturnType<typeof historyOf> } = {},
) => stepTree({ definition: { name: "x", steps } as never, steps: views, finish: options.finish ?? null }, options.history);
const states = (nodes: readonly StepNode[]): string[] =>
  nodes.flatMap(({ path, state, groups }) => [`${path} ${state}`, ...groups.flatMap(({ nodes: inner }) => states(inner))]);

test("places steps of every kind where the engine puts them", () => {
  const steps: WorkflowStep[] = [
    {
      name: "way",
      kind: "switch",
      cases: [
        { when: "a", steps: [command("one")] },
        { when: "b", steps: [command("two")] },
      ],
      default: [command("three")],
    },
    { name: "both", kind: "parallel", branches: { left: [command("l")], right: [{ name: "ok", kind: "approval", text: "?" }] } },
    { name: "each", kind: "foreach", in: "input.list", steps: [command("item")] },
    { name: "risky", kind: "try", steps: [command("first")], catch: [command("mend")], finally: [command("last")] },
  ];
  const views = [
    view("way", { kind: "switch" }),
    view("way/1/two"),
    view("both", { kind: "parallel", status: "running" }),
    view("both/left/l", { status: "failed", due: at }),
    view("both/right/ok", { kind: "approval", status: "running" }),
  ];
  expect(states(tree(steps, views))).toEqual([
    ...["way completed", "way/0/one unused", "way/1/two completed", "way/default/three unused"],
    ...["both running", "both/left/l retrying", "both/right/ok asks"],
    ...["each pending", "each/0/item pending"],
    ...["risky pending", "risky/try/first pending", "risky/catch/mend pending", "risky/finally/last pending"],
  ]);
  expect(nodeAt(tree(steps, views), "both/right/ok")?.step.kind).toBe("approval");
  expect(nodeAt(tree(steps, views), "nowhere")).toBeNull();
  expect(countSteps(tree(steps, views))).toEqual({ done: 2, all: 11 });
});

test("marks steps that were not reached as unused, and catch steps after a success", () => {
  expect(states(tree([command("a"), command("b")], [view("a", { status: "failed" })], { finish: "failed" }))).toEqual([
    "a failed",
    "b unused",
  ]);
  const risky: WorkflowStep = { name: "t", kind: "try", steps: [command("x")], catch: [command("c")], finally: [command("f")] };
  expect(states(tree([risky], [view("t"), view("t/try/x"), view("t/finally/f")]))).toEqual([
    ...["t completed", "t/try/x completed", "t/catch/c unused", "t/finally/f completed"],
  ]);
});

test("separates the steps of a second attempt from those of the first", () => {
  const both: WorkflowStep = { name: "b", kind: "parallel", branches: { l: [command("x")] }, retry: { attempts: 2 } };
  const views = [view("b", { attempt: 2, status: "running" }), view("b/l/x", { status: "failed" }), view("b~2/l/x", { status: "running" })];
  expect(states(tree([both], views))).toEqual(["b running", "b~2/l/x running"]);
});

test("draws items with problems first in a long list, and counts the rest", () => {
  const each: WorkflowStep = { name: "e", kind: "foreach", in: "input.list", as: "file", steps: [command("x")] };
  const items = Array.from({ length: 40 }, (_, index) => `f${index}`);
  const history = historyOf([
    {
      type: "workflow.step_started",
      version: 1,
      at,
      data: { path: "e", kind: "foreach", attempt: 1, given: { items }, due: null, deadline: null },
    },
  ]);
  const views = [view("e", { status: "running" }), view("e/0/x"), view("e/30/x", { status: "failed" })];
  const [node] = tree([each], views, { history });
  expect(node?.left).toBe(28);
  expect(node?.groups.map(({ label }) => label)).toEqual([
    ...["file 1: f0", ...Array.from({ length: 10 }, (_, index) => `file ${index + 2}: f${index + 1}`), "file 31: f30"],
  ]);
});

test("stores each attempt of a step with its input and output", () => {
  const started = (attempt: number) =>
    ({
      type: "workflow.step_started",
      version: 1,
      at,
      data: { path: "a", kind: "agent", attempt, given: { task: "t" }, due: null, deadline: null },
    }) as const;
  const ended = { output: null, error: { code: "failed", text: "no" }, retryAt: at, data: {}, signal: null };
  const history = historyOf([
    started(1),
    { type: "workflow.child_started", version: 1, at, data: { path: "a", attempt: 1, child: "run/run_aaaaaaaaaaaa" } },
    { type: "workflow.step_ended", version: 1, at, data: { path: "a", attempt: 1, status: "failed", ...ended } },
    started(2),
  ]);
  expect(history.get("a")).toMatchObject([
    { attempt: 1, status: "failed", child: "run/run_aaaaaaaaaaaa", error: { code: "failed" }, given: { task: "t" } },
    { attempt: 2, status: "running", child: null },
  ]);
});

test("describes a step in one line", () => {
  expect(aboutStep({ name: "a", kind: "agent", task: "Write\n  it." })).toBe("coder: Write it.");
  expect(aboutStep({ name: "p", kind: "parallel", branches: {}, join: "any" })).toBe("in parallel, until one is done");
  expect(aboutStep({ name: "c", kind: "command", argv: ["x".repeat(300)] })).toHaveLength(160);
});
