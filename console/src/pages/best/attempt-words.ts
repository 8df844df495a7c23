import type { BestAttemptView, BestView } from "../../../../src/contract/best/best-verbs.ts";
import type { Tone } from "../../parts/badge.tsx";

/** Returns the state of an attempt as a word and a tone: the grade, or what it is doing. */
export function attemptState({ status, grade, finish }: Pick<BestAttemptView, "status" | "grade" | "finish">): {
  word: string;
  tone: Tone;
} {
  if (grade !== null) return grade.isPassed ? { word: "passed", tone: "good" } : { word: "not passed", tone: "bad" };
  switch (status) {
    case "waiting":
      return { word: "waiting", tone: "idle" };
    case "starting":
    case "running":
    case "grading":
      return { word: status, tone: "busy" };
    case "failed":
      return { word: "failed", tone: "bad" };
    default:
      if (finish === "done") return { word: "done", tone: "good" };
      return finish === "cancelled" ? { word: "stopped", tone: "idle" } : { word: (finish ?? status).replaceAll("_", " "), tone: "bad" };
  }
}

/** Describes a grade: the score, or how the grader exited. */
export function gradeText(grade: BestAttemptView["grade"]): string {
  if (grade === null) return "–";
  const exit = grade.exitCode === null ? "did not exit" : `exit ${grade.exitCode}`;
  return grade.score === null ? exit : `${grade.score}, ${exit}`;
}

/** Returns the limits of all attempts together, in words. */
export function budgetText({ costUsd, tokens }: BestView["budgets"]): string {
  const limits = [costUsd === undefined ? null : `$${costUsd}`, tokens === undefined ? null : `${tokens} tokens`];
  return limits.filter((limit) => limit !== null).join(", ") || "none";
}
