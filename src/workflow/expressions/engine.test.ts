import { expect, test } from "vitest";
import { evaluateWithin } from "./engine.ts";
import { evaluateHere } from "./evaluate.ts";
import { readScope } from "./read-scope.ts";

const list = Array.from({ length: 900 }, (_, index) => index);
const long = "a".repeat(100_000);
/** Binds `a0` to `first`, and each later name to a value that uses the previous one twice. */
const doubled = (first: string, twice: (before: string) => string) =>
  `${[...Array(20).keys()].map((at) => `cel.bind(a${at}, ${at === 0 ? first : twice(`a${at - 1}`)}, `).join("")}a19${")".repeat(20)}`;

test.each([
  ["nested loops", "input.list.all(a, input.list.all(b, input.list.all(c, input.list.all(d, a >= 0))))", "steps"],
  ["nested loops whose failure is caught", "input.list.all(a, input.list.all(b, input.list.all(c, a >= 0))) || true", "steps"],
  ["text that doubles", doubled("input.long", (before) => `${before} + ${before}`), "bytes"],
  ["lists that double", doubled("input.list", (before) => `${before} + ${before}`), "bytes"],
  ["lists of lists that double", doubled("input.list", (before) => `[${before}, ${before}]`), "bytes"],
  ["long texts in a loop", "input.list.map(a, input.long + input.long).size()", "bytes"],
  ["comparisons in a loop", "input.list.map(a, input.list + [a] == input.list + [a]).size()", "bytes"],
  ["a huge value", "input.list.map(a, input.list)", "bytes"],
  ["an ambiguous regular expression on much text", 'input.list.all(a, input.long.matches("^(a|a)*(b|b)*$"))', "steps"],
  ["the entries of a map in a loop", "input.list.all(a, input.map.exists(k, true))", "bytes"],
])("rejects %s: over the budget", (_, expression, what) => {
  const map = Object.fromEntries(Array.from({ length: 5_000 }, (_unused, index) => [`key${index}`, index]));
  const scope = { input: { list, long, map } };
  expect(() => evaluateWithin(expression, scope)).toThrow(
    expect.objectContaining({ code: "too_large", message: expect.stringContaining(what) }),
  );
});

test("rejects a duration that is too long without parsing it", () => {
  expect(() => evaluateWithin("duration(input.digits)", { input: { digits: "1".repeat(100_000) } })).toThrow("too long");
  expect(evaluateWithin('duration("1h30m").getMinutes()', {})).toBe(90);
});

test("runs matches in linear time, wherever it appears", () => {
  const scope = { input: { text: `${"a".repeat(5_000)}!` } };
  expect(evaluateWithin('input.text.matches("^(a+)+$")', scope)).toBe(false);
  expect(evaluateWithin('[input.text].exists(x, x.matches("^(a+)+!$"))', scope)).toBe(true);
  expect(() => evaluateWithin('"a".matches("(?=a)")', scope)).toThrow("has look-around");
});

test.each([
  ["steps.a.output.text", ["steps.a.output.text"]],
  ['steps["a"].output', ["steps.a.output"]],
  ["has(steps.a.error) && input.n == 1", ["steps.a.error", "input.n"]],
  ["input.list.filter(x, x > data.least)", ["input.list", "data.least"]],
  ["steps.map(name, steps[name].status)", ["steps"]],
  ["cel.bind(s, steps.a, s.output.text)", ["steps.a"]],
])("%s reads only %j, with the same result as for the whole scope", async (expression, read) => {
  const scope = {
    input: { n: 1, list: [1, 2, 3], more: "x" },
    data: { least: 1, other: [1] },
    steps: {
      a: { status: "completed", output: { text: "t", rest: "r" }, error: null },
      b: { status: "failed", output: null, error: null },
    },
  };
  const reads = JSON.parse(readScope(expression, scope));
  expect(leaves(reads, scope)).toEqual(read.toSorted());
  expect(await evaluateHere({ expression, scope }, { owner: "ada" })).toEqual({ value: evaluateWithin(expression, scope) });
});

/** Returns the paths of the parts of a scope that are complete. */
function leaves(part: unknown, whole: unknown, path = ""): string[] {
  if (JSON.stringify(part) === JSON.stringify(whole) && path !== "") return [path.slice(1)];
  return Object.entries(part as object)
    .flatMap(([key, each]) => leaves(each, (whole as Record<string, unknown>)[key], `${path}.${key}`))
    .sort();
}

test("rejects an expression that reads too much before sending anything", async () => {
  const steps = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`s${index}`, { output: long }]));
  const answer = (expression: string) => evaluateHere({ expression, scope: { steps } }, { owner: "ada" });
  expect(await answer("size(steps)")).toMatchObject({ error: { code: "too_large", message: expect.stringContaining("reads more than") } });
  expect(await answer("size(steps.s1.output)")).toEqual({ value: 100_000 });
});
