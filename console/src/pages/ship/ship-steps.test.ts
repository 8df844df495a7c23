import { expect, test } from "vitest";
import type { ShipDetails } from "../../../../src/contract/ship/ship-verbs.ts";
import { shownSteps, webAddress } from "./ship-steps.ts";

const at = "2026-06-01T12:00:00.000Z";
const commit = "a".repeat(40);
const event = (type: string, data: object) => ({ type, version: 1, at, data });
const stepStart = (step: string, attempt = 1) => event("ship.step_started", { step, attempt });
const ship = (overrides: object, ...history: object[]) =>
  ({ id: "ship_aaaaaaaaaaaa", status: "working", step: null, error: null, ...overrides, history }) as unknown as ShipDetails;
const lines = (details: ShipDetails) => shownSteps(details).map(({ step, state, text }) => `${step} ${state} ${text}`.trim());

test("shows the steps in order, each with its outcome", () => {
  const committed = event("ship.committed", { commit, base: commit, files: 1, leftOut: 0, borrows: "/x" });
  const pushed = event("ship.pushed", { branch: "feature/x", commit, into: "main" });
  expect(lines(ship({ step: "push" }, stepStart("commit"), committed, stepStart("push")))).toEqual([
    ...["commit done aaaaaaaaaaaa, 1 file", "push running", "request pending", "check pending", "merge pending", "remove_branch pending"],
  ]);
  const failed = ship(
    { step: "push", status: "blocked", error: { code: "denied", message: "no" } },
    stepStart("commit"),
    committed,
    stepStart("push"),
  );
  expect(lines(failed)[1]).toBe("push failed no");
  expect(lines(ship({ status: "open" }, committed, pushed)).at(-2)).toBe("merge waiting until someone merges it");
  expect(lines(ship({ status: "cancelled" }, committed, event("ship.closed", {}))).at(-1)).toBe("close done the branch stays");
  expect(shownSteps(ship({ step: "push" }, stepStart("push"), stepStart("push", 2)))[1]?.attempts).toBe(2);
});

test("accepts only web addresses as links", () => {
  expect(webAddress("https://forge.example.com/a/b/pulls/1")).not.toBeNull();
  for (const bad of ["javascript:alert(1)", "file:///etc/passwd", "refs/merge/1", "https://a b"]) expect(webAddress(bad)).toBeNull();
});
