/** What the rank of an attempt depends on. */
export interface RankedFacts {
  attempt: number;
  /** Whether the grader passed it; without a grader, whether its run was done. */
  isPassed: boolean;
  /** The grader's score; higher is better. */
  score: number | null;
  /** The judge's score; higher is better. */
  judged: number | null;
  /** Null if the price is unknown. */
  costUsd: number | null;
  workedMs: number;
}

export interface Rank {
  attempt: number;
  place: number;
  /** Why it is behind the attempt before it. */
  why: string;
}

interface Criterion {
  name: string;
  /** Lower is better. An attempt without the value comes last. */
  value: (facts: RankedFacts) => number;
  differ: string;
}

const missing = Number.POSITIVE_INFINITY;
const higher = (value: number | null) => (value === null ? missing : -value);

/** In this order: an attempt that fails its grader is never before one that passes. */
const criteria: readonly Criterion[] = [
  { name: "passes", value: ({ isPassed }) => (isPassed ? 0 : 1), differ: "it does not pass" },
  { name: "score", value: ({ score }) => higher(score), differ: "its score is lower" },
  { name: "judge", value: ({ judged }) => higher(judged), differ: "the judge prefers another" },
  { name: "cost", value: ({ costUsd }) => costUsd ?? missing, differ: "it cost more" },
  { name: "time", value: ({ workedMs }) => workedMs, differ: "it took longer" },
  { name: "number", value: ({ attempt }) => attempt, differ: "it began later" },
];

/**
 * Ranks attempts: first those that pass, then by score, by the judge, by cost and by time. Attempts that are equal in
 * everything keep their order. Each place says what decided it.
 */
export function rankAttempts(attempts: readonly RankedFacts[]): Rank[] {
  const sorted = [...attempts].sort((one, other) => {
    const criterion = deciding(one, other);
    return criterion === undefined ? 0 : criterion.value(one) - criterion.value(other) || 0;
  });
  return sorted.map((facts, index) => {
    const better = sorted[index - 1];
    const why = better === undefined ? "" : (deciding(better, facts)?.differ ?? "");
    return { attempt: facts.attempt, place: index + 1, why };
  });
}

/** Returns the first criterion in which two attempts differ. */
function deciding(one: RankedFacts, other: RankedFacts): Criterion | undefined {
  return criteria.find(({ value }) => value(one) !== value(other));
}
