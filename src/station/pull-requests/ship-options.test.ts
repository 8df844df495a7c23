import { describe, expect, test } from "vitest";
import { parseRequest } from "../../contract/error/parse-request.ts";
import type { NewShipEvent } from "../../contract/ship/ship-event.ts";
import { applyToShipFacts, emptyShipFacts, type ShipFacts } from "../../contract/ship/ship-facts.ts";
import { StartShip } from "../../contract/ship/ship-verbs.ts";
import { decideShip } from "./decide-ship.ts";
import { takeUpOptions } from "./ship-options.ts";

const SHIP = "ship_k3v7q2m5x4ab";
const COMMIT = "1".repeat(40);
const now = new Date("2026-01-02T03:04:05.000Z");

const created: NewShipEvent = {
  type: "ship.created",
  data: {
    session: "ses_x",
    run: null,
    target: { forge: "gitea", remote: "https://git.example.com/team/project", into: null, token: "GITEA_TOKEN", allowPrivate: false },
    branch: { kind: "feature", ticket: null, slug: "two-for-one" },
    title: "Two for one",
    body: "Shipped without tests: none yet",
    author: { name: "Agent", email: "agent@example.com" },
    tests: { kind: "waived", reason: "none yet" },
    merge: false,
    includeConfiguration: false,
    leaveOut: false,
  },
};
const started = (step: "commit" | "push" | "request"): NewShipEvent => ({ type: "ship.step_started", data: { step, attempt: 1 } });
const failed = (step: "commit" | "push" | "request", code: string): NewShipEvent => ({
  type: "ship.step_failed",
  data: { step, attempt: 1, error: { code, message: "no" }, nextAt: null },
});
const committed: NewShipEvent = { type: "ship.committed", data: { commit: COMMIT, base: COMMIT, files: 1, leftOut: 0, borrows: "/x" } };
const pushed: NewShipEvent = { type: "ship.pushed", data: { branch: "feature/two-for-one", commit: COMMIT, into: "main" } };
const requested: NewShipEvent = { type: "ship.requested", data: { request: { id: "1", url: "https://git.example.com/1" } } };

function folded(...events: NewShipEvent[]): ShipFacts {
  const facts = emptyShipFacts();
  for (const event of [created, ...events]) applyToShipFacts(facts, { ...event, at: now.toISOString() });
  return facts;
}
const takeUp = (facts: ShipFacts, more: Partial<StartShip>) =>
  takeUpOptions(SHIP, { facts, asked: parseRequest(StartShip, { of: "ses_x", ...more }, "a ship"), tests: null, by: "local" });
const next = (facts: ShipFacts) => decideShip(facts, { facts: { id: SHIP, cancelRequested: null }, now });
const begins = (step: string) => ({ append: [{ type: "ship.step_started", data: { step, attempt: 1 } }] });

describe("the options of a repeated request", () => {
  test("change nothing if they are unchanged or omitted", () => {
    expect(takeUp(folded(), {})).toEqual([]);
    expect(takeUp(folded(committed, pushed, requested), { title: "Two for one", kind: "feature", token: "GITEA_TOKEN" })).toEqual([]);
  });

  test("rebuild the commit as long as it is not pushed", () => {
    const facts = folded(started("commit"), committed);
    const events = takeUp(facts, { title: "Three", leaveOut: true });
    expect(events).toEqual([
      {
        type: "ship.options_changed",
        data: { by: "local", title: "Three", branch: { kind: "feature", ticket: null, slug: "three" }, leaveOut: true },
      },
    ]);
    const after = folded(started("commit"), committed, ...events);
    expect(after).toMatchObject({ committed: null, created: { title: "Three", leaveOut: true } });
    expect(next(after)).toEqual(begins("commit"));
  });

  test.each([
    ["commit", committed],
    ["commit", failed("commit", "conflict")],
    ["push", pushed],
    ["push", failed("push", "not_found")],
  ] as const)("repeat a %s in progress, whatever its outcome", (step, outcome) => {
    const before = step === "push" ? [committed, started(step)] : [started(step)];
    const after = folded(...before, ...takeUp(folded(...before), { into: "next" }), outcome);
    expect(after).toMatchObject({ failure: null, created: { target: { into: "next" } } });
    expect(next(after)).toEqual(begins(step));
    const done = step === "push" ? pushed : committed;
    expect(folded(...before, ...takeUp(folded(...before), { into: "next" }), outcome, started(step), done)).toMatchObject({
      [step === "push" ? "pushed" : "committed"]: done.data,
    });
  });

  test("retarget a pushed branch until its pull request is open", () => {
    const after = folded(committed, pushed, ...takeUp(folded(committed, pushed), { into: "next" }));
    expect(next(after)).toEqual(begins("push"));
    expect(after.committed).not.toBeNull();
  });

  test("retry the step that failed because of them", () => {
    const stuck = folded(started("commit"), failed("commit", "conflict"));
    expect(next(folded(started("commit"), failed("commit", "conflict"), ...takeUp(stuck, { leaveOut: true })))).toEqual(begins("commit"));
    const refused = [committed, started("push"), failed("push", "conflict")];
    expect(next(folded(...refused, ...takeUp(folded(...refused), { title: "As the hook wants it" })))).toEqual(begins("commit"));
  });

  test.each([
    ["a title", [committed, pushed], { title: "Three" }, "its branch is pushed"],
    ["a ticket", [committed, pushed], { ticket: "12" }, "its branch is pushed"],
    ["a title", [committed, started("push")], { title: "Three" }, "may be pushed already"],
    ["a title", [committed, started("push"), failed("push", "timeout")], { title: "Three" }, "may be pushed already"],
    ["a branch", [committed, pushed, requested], { into: "next" }, "its pull request is open"],
    ["a branch", [committed, pushed, started("request")], { into: "next" }, "may be open already"],
    ["a merge", [{ type: "ship.merge_asked", data: { by: "x" } }], { merge: false }, "is already requested"],
  ] as const)("are rejected when it is too late for %s", (_what, events, more, why) => {
    expect(() => takeUp(folded(...events), more)).toThrow(why);
  });

  test("may change the token or request a merge at any time", () => {
    expect(takeUp(folded(committed, pushed, requested), { token: "OTHER", merge: true }).map(({ type }) => type)).toEqual([
      "ship.options_changed",
      "ship.merge_asked",
    ]);
  });
});
