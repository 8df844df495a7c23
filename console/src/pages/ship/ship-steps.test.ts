import { expect, test } from "vitest";
import type { ShipDetails } from "../../../../src/contract/ship-verbs.ts";
import { shownSteps, webAddress } from "./ship-steps.ts";

const at = "2026-06-01T12:00:00.000Z";
const commit = "a".repeat(40);
const event = (type: string, data: object) => ({ type, version: 1, at, data });
const begun = (step: string, attempt = 1) => event("ship.step_started", { step, attempt });
const ship = (given: object, ...history: object[]) =>
  ({ id: "ship_aaaaaaaaaaaa", status: "working", step: null, error: null, ...given, history }) as unknown as ShipDetails;
const lines = (given: ShipDetails) => shownSteps(given).map(({ step, state, text }) => `${step} ${state} ${text}`.trim());

test("steps are told in their order, each with what came of it", () => {
  const committed = event("ship.committed", { commit, base: commit, files: 1, leftOut: 0, borrows: "/x" });
  const pushed = event("ship.pushed", { branch: "feature/x", commit, into: "main" });
  expect(lines(ship({ step: "push" }, begun("commit"), committed, begun("push")))).toEqual([
    ...["commit done aaaaaaaaaaaa, 1 file", "push running", "request pending", "check pending", "merge pending", "remove_branch pending"],
  ]);
  const failed = ship(
    { step: "push", status: "blocked", error: { code: "denied", message: "no" } },
    begun("commit"),
    committed,
    begun("push"),
  );
  expect(lines(failed)[1]).toBe("push failed no");
  expect(lines(ship({ status: "open" }, committed, pushed)).at(-2)).toBe("merge waiting waits for somebody's word");
  expect(lines(ship({ status: "cancelled" }, committed, event("ship.closed", {}))).at(-1)).toBe("close done the branch is kept");
  expect(shownSteps(ship({ step: "push" }, begun("push"), begun("push", 2)))[1]?.attempts).toBe(2);
});

test("only an address of the web is followed", () => {
  expect(webAddress("https://forge.example.com/a/b/pulls/1")).not.toBeNull();
  for (const bad of ["javascript:alert(1)", "file:///etc/passwd", "refs/merge/1", "https://a b"]) expect(webAddress(bad)).toBeNull();
});
