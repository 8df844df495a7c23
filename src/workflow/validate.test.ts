// biome-ignore-all lint/suspicious/noTemplateCurlyInString: expressions of workflows are written so.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { evaluateCondition, fillIn } from "./expression.ts";
import { evaluateWithin } from "./expressions/engine.ts";
import { workflowSchema } from "./json-schema.ts";
import { checkDefinition } from "./testing-definitions.ts";
import { readDefinition } from "./validate.ts";

const step = (more: object) => ({ name: "x", steps: [{ name: "a", ...more }] });
const nested = (depth: number): object =>
  depth === 0 ? { name: "a", kind: "fail", text: "x" } : { name: `s${depth}`, kind: "try", steps: [nested(depth - 1)] };

const after = (more: object) => ({
  name: "x",
  steps: [
    { name: "coder", kind: "agent", task: "x" },
    { name: "note", kind: "set", data: {} },
    { name: "b", kind: "command", argv: ["x"], ...more },
  ],
});
const before = (workspace: object) => ({
  name: "x",
  steps: [
    { name: "a", kind: "agent", task: "x", workspace },
    { name: "b", kind: "agent", task: "x" },
  ],
});

test.each([
  ["an unknown kind", step({ kind: "agnet" }), "steps.0.kind", "Did you mean agent?"],
  ["a missing kind", step({}), "steps.0.kind", "Specify the kind of the step"],
  ["an invalid expression", step({ kind: "set", when: "1 +", data: { x: 1 } }), "steps.0.when", "Write expressions in CEL"],
  ["an expression in a text", step({ kind: "command", argv: ["echo", "${a..b}"] }), "steps.0.argv.1", "Write expressions in CEL"],
  ["times that never come", step({ kind: "timer", cron: "61 * * * *" }), "steps.0.cron", "Use minute, hour"],
  ["two ways to say when", step({ kind: "timer", for: "1s", cron: "* * * * *" }), "steps.0", undefined],
  ["a name twice", { name: "x", steps: [1, 2].map(() => ({ name: "a", kind: "fail", text: "x" })) }, "steps.1.name", "Each step"],
  [
    "a workflow in itself",
    step({ kind: "workflow", definition: step({ kind: "fail", text: "x" }) }),
    "steps.0.definition.name",
    "A workflow within",
  ],
  ["steps too deep", { name: "x", steps: [nested(30)] }, /^steps\.0\.steps\.0/, undefined],
  ["the workspace of a step that is not there", after({ workspace: { from: "codr" } }), "steps.2.workspace.from", "Did you mean coder?"],
  ["the workspace of a step that comes later", before({ from: "b" }), "steps.0.workspace.from", "one that has ended"],
  ["a step in its own workspace", before({ fork: "a" }), "steps.0.workspace.fork", "one that has ended"],
  ["the workspace of a step without one", after({ workspace: { from: "note" } }), "steps.2.workspace.from", "Agents and merges"],
  ["artifacts of a workspace that is not kept", step({ kind: "command", argv: ["x"], artifacts: { a: "a" } }), "steps.0.artifacts", "from"],
  ["a merge of what is not there", step({ kind: "merge", of: ["b"] }), "steps.0.of.0", undefined],
  [
    "the workspace of a step beside it",
    step({
      kind: "parallel",
      branches: { l: [{ name: "b", kind: "agent", task: "x" }], r: [{ name: "c", kind: "agent", task: "x", workspace: { from: "b" } }] },
    }),
    "steps.0.branches.r.0.workspace.from",
    "after all branches",
  ],
  [
    "more branches than there are",
    step({ kind: "parallel", join: 3, branches: { b: [{ name: "c", kind: "fail", text: "x" }] } }),
    "steps.0.join",
    undefined,
  ],
])("rejects %s, with its place and a hint", (_, definition, path, hint) => {
  const { problems } = readDefinition(definition);
  expect(problems[0]?.path).toEqual(typeof path === "string" ? path : expect.stringMatching(path));
  if (hint !== undefined) expect(problems[0]?.hint).toContain(hint);
});

test("reports an unknown setting with the known ones of that kind of step", () => {
  const { problems } = readDefinition(step({ kind: "signal", signal: "go", argv: ["x"] }));
  expect(problems).toEqual([{ path: "steps.0", text: 'has no setting "argv" (known: name, when, timeout, retry, result, kind, signal)' }]);
});

test("rejects definitions that are far too large or too deep without parsing them", () => {
  let deep: unknown = 1;
  for (let depth = 0; depth < 100_000; depth++) deep = [deep];
  expect(() => checkDefinition({ name: "x", data: { deep }, steps: [] })).toThrow("is nested more than 200 deep");
  expect(() => checkDefinition({ name: "x".repeat(10_000_000), steps: [] })).toThrow("bytes; the maximum is");
});

test("lets expressions see their variables and nothing else", () => {
  const scope = { input: { n: 2, list: [1, 2, 3] }, data: {} };
  const evaluate = (expression: string) => evaluateWithin(expression, scope);
  expect(evaluate("input.list.filter(x, x > 1).map(x, x * input.n)")).toEqual([4, 6]);
  expect(fillIn({ a: "${input.n}", b: "n=${input.n}, $${left}" }, evaluate)).toEqual({ a: 2, b: "n=2, ${left}" });
  for (const name of ["process", "globalThis", "input.constructor", "data.__proto__.x"]) expect(() => evaluate(name), name).toThrow();
  expect(() => evaluateCondition("input.n", evaluate)).toThrow("not true or false");
});

test("publishes the current JSON Schema of definitions", () => {
  const published = readFileSync(join(import.meta.dirname, "..", "..", "docs", "workflow.schema.json"), "utf8");
  expect(JSON.parse(published), "make it again: node scripts/workflow-schema.ts").toEqual(JSON.parse(JSON.stringify(workflowSchema())));
});
