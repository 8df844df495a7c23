import fc from "fast-check";
import { expect, test } from "vitest";
import { bestEvents, type NewBestEvent } from "../../contract/best/best-event.ts";
import { emptyJobFacts } from "../../contract/durable/durable-job.ts";
import { makeEvent } from "../../contract/event/event-family.ts";
import type { ReadKindEvent } from "../durable/kind.ts";
import { lowerBudgets, shareOfNext } from "./best-budget.ts";
import { applyToBest, type BestState, emptyBest } from "./best-state.ts";
import { decideBest } from "./decide-best.ts";

const facts = { ...emptyJobFacts(), id: "best_aaaaaaaaaaaa" };
const run = "run_aaaaaaaaaaaa";

function newState(about: Partial<Extract<NewBestEvent, { type: "best.begun" }>["data"]> = {}): BestState {
  const state = emptyBest();
  const data = {
    ...{ source: { kind: "task" as const, start: {} }, task: "t", attempts: 4, models: [], grade: null, gradeTimeoutMs: 1000, judge: null },
    ...{ concurrency: 2, budgets: {}, ...about },
  };
  fold(state, [{ type: "best.begun", data }]);
  return state;
}

function fold(state: BestState, events: readonly NewBestEvent[]): void {
  for (const event of events) applyToBest(state, makeEvent(bestEvents, event as never) as unknown as ReadKindEvent);
}

/** The outcome of an effect, chosen by a number. */
function outcomeOf(what: string, attempt: number, choice: number): NewBestEvent {
  if (choice === 0 && what !== "judge" && what !== "promote") return { type: "best.attempt_failed", data: { attempt, text: "no" } };
  switch (what) {
    case "start":
      return { type: "best.attempted", data: { attempt, run, session: run } };
    case "watch":
      return {
        type: "best.attempt_ended",
        data: { attempt, finish: choice === 1 ? "error" : "done", steps: 1, tokens: 10, costUsd: choice === 2 ? null : 0.1, workedMs: 1 },
      };
    case "grade":
      return { type: "best.graded", data: { attempt, isPassed: choice > 2, exitCode: choice > 2 ? 0 : 1, score: choice, text: "" } };
    case "judge":
      return { type: "best.judged", data: { opinions: null, costUsd: 0, text: null } };
    default:
      return { type: "best.promoted", data: { attempt, run, session: run } };
  }
}

test("a best-of ends, keeps to its bounds, and promotes only what passes", () => {
  const about = fc.record({
    attempts: fc.integer({ min: 1, max: 6 }),
    concurrency: fc.integer({ min: 1, max: 3 }),
    grade: fc.constantFrom(null, "npm test"),
    judge: fc.constantFrom(null, "a/b"),
    budgets: fc.constantFrom({}, { costUsd: 1 }, { tokens: 1000 }),
  });
  fc.assert(
    fc.property(about, fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 40 }), (request, choices) => {
      const state = newState(request);
      for (let turn = 0; turn < 200; turn++) {
        const decision = decideBest(state, { facts });
        const active = state.attempts.filter(({ status }) => ["starting", "running", "grading"].includes(status));
        expect(active.length).toBeLessThanOrEqual(request.concurrency);
        const shares = state.attempts.reduce((sum, { budgets }) => sum + (budgets.costUsd ?? 0), 0);
        expect(shares).toBeLessThanOrEqual(6 * ("costUsd" in request.budgets ? 1 : 0) + 1e-9);
        if ("append" in decision) fold(state, decision.append);
        else if ("end" in decision) {
          const winner = state.attempts.find(({ attempt }) => attempt === state.winner?.attempt);
          expect(decision.end.finish).toBe(winner === undefined ? "failed" : "completed");
          if (winner !== undefined) expect(request.grade === null ? winner.finish === "done" : winner.grade?.isPassed).toBe(true);
          return;
        } else {
          const [effect] = decision.effects;
          fold(state, [outcomeOf(effect?.what ?? "", effect?.attempt?.attempt ?? 0, choices[turn % choices.length] ?? 4)]);
        }
      }
      throw new Error("it does not end");
    }),
  );
});

test("a cancelled best-of cancels its work, then ends", () => {
  const state = newState();
  fold(state, [
    { type: "best.attempt_started", data: { attempt: 1, model: null, budgets: {} } },
    { type: "best.attempted", data: { attempt: 1, run, session: run } },
  ]);
  const cancelled = { ...facts, cancelRequested: { by: "me", text: "" } };
  expect(decideBest(state, { facts: cancelled })).toMatchObject({ effects: [{ what: "watch", cancel: true, after: `run/${run}` }] });
  fold(state, [outcomeOf("watch", 1, 3)]);
  expect(decideBest(state, { facts: cancelled })).toEqual({ end: { finish: "cancelled", text: null } });
});

test("attempts take turns with the models, and share what is left of the budget", () => {
  const state = newState({ models: ["a/1", "b/2"], budgets: { costUsd: 1 }, concurrency: 1, attempts: 3 });
  const next = () => {
    const decision = decideBest(state, { facts });
    if (!("append" in decision)) throw new Error("it starts nothing");
    fold(state, decision.append);
    return decision.append[0]?.data;
  };
  expect(next()).toEqual({ attempt: 1, model: "a/1", budgets: { costUsd: 1 / 3 } });
  fold(state, [outcomeOf("start", 1, 3), outcomeOf("watch", 1, 3)]);
  expect(next()).toEqual({ attempt: 2, model: "b/2", budgets: { costUsd: 0.45 } });
  fold(state, [outcomeOf("start", 2, 3), outcomeOf("watch", 2, 2)]);
  // The price of the second is unknown, so its whole share counts.
  expect(next()).toMatchObject({ attempt: 3, model: "a/1", budgets: { costUsd: expect.closeTo(0.45) } });
  expect(shareOfNext({ budgets: { tokens: 10 }, attempts: state.attempts })).toBeNull();
  expect(lowerBudgets({ costUsd: 1, steps: 5 }, { costUsd: 0.5 })).toEqual({ costUsd: 0.5, steps: 5 });
});
