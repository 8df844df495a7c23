import { expect, test } from "vitest";
import { CaissonError } from "../../../../../src/contract/error/error.ts";
import { emptyFork, forkRequest, hintsOfForm } from "./fork-request.ts";

test("sends only the fields that are filled in", () => {
  const shared = { at: 3, attended: true, detached: true };
  expect(forkRequest(emptyFork, 3).request).toEqual({ ...shared, count: 1 });
  const draft = { count: "3", text: "try again ", model: " scripted:x ", name: "again", steps: "5" };
  expect(forkRequest(draft, 3).request).toEqual({
    ...{ ...shared, count: 3, text: "try again ", model: "scripted:x", name: "again", budgets: { steps: 5 } },
  });
});

test("says which field is wrong", () => {
  for (const [field, value] of [
    ["count", "0"],
    ["count", "101"],
    ["count", ""],
    ["count", "1.5"],
    ["steps", "-1"],
    ["name", "a b"],
  ] as const) {
    const { request, problems } = forkRequest({ ...emptyFork, [field]: value }, 1);
    expect([request, Object.keys(problems ?? {})]).toEqual([null, [field]]);
  }
});

test("an advice about the command line becomes one about the form", () => {
  const error = new CaissonError("conflict", "a fork could not work", { hint: "Use --max-steps.", details: { budget: "steps" } });
  expect(hintsOfForm(error)).toMatchObject({ message: "a fork could not work", hint: "Allow it more steps above." });
  const other = new CaissonError("gone", "its files are gone", { hint: "Start another." });
  expect(hintsOfForm(other)).toBe(other);
});
