import fc from "fast-check";
import { expect, test } from "vitest";
import { type RankedFacts, rankAttempts } from "./rank-attempts.ts";

const facts = (attempt: number, other: Partial<RankedFacts> = {}): RankedFacts => ({
  ...{ attempt, isPassed: true, score: null, judged: null, costUsd: 1, workedMs: 1000 },
  ...other,
});
const order = (...attempts: RankedFacts[]) => rankAttempts(attempts).map(({ attempt }) => attempt);

test("attempts that pass come first, then score, judge, cost and time decide", () => {
  expect(order(facts(1, { isPassed: false, score: 9 }), facts(2))).toEqual([2, 1]);
  expect(order(facts(1), facts(2, { score: 0.1 }), facts(3, { score: 0.9, costUsd: 50 }))).toEqual([3, 2, 1]);
  expect(order(facts(1, { judged: 0.2 }), facts(2, { judged: 0.8, costUsd: 9 }))).toEqual([2, 1]);
  expect(order(facts(1, { costUsd: null }), facts(2, { costUsd: 2 }), facts(3, { costUsd: 1 }))).toEqual([3, 2, 1]);
  expect(order(facts(1, { workedMs: 2 }), facts(2, { workedMs: 1 }))).toEqual([2, 1]);
});

test("equal attempts keep their order, and each place says what decided it", () => {
  expect(rankAttempts([facts(2), facts(1), facts(3, { isPassed: false })])).toEqual([
    { attempt: 1, place: 1, why: "" },
    { attempt: 2, place: 2, why: "it began later" },
    { attempt: 3, place: 3, why: "it does not pass" },
  ]);
  expect(rankAttempts([])).toEqual([]);
});

test("the order does not depend on the order of the attempts", () => {
  const value = fc.option(fc.integer({ min: 0, max: 2 }), { nil: null });
  const fields = fc.record({
    isPassed: fc.boolean(),
    score: value,
    judged: value,
    costUsd: value,
    workedMs: fc.integer({ min: 0, max: 2 }),
  });
  fc.assert(
    fc.property(fc.array(fields, { maxLength: 6 }), fc.integer(), (all, seed) => {
      const attempts = all.map((each, index) => facts(index + 1, each));
      const shuffled = [...attempts].sort((a, b) => Math.sin(a.attempt * seed) - Math.sin(b.attempt * seed));
      expect(rankAttempts(shuffled)).toEqual(rankAttempts(attempts));
    }),
  );
});
