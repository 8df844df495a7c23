import type { BestEvent, bestEvents } from "../../contract/best/best-event.ts";
import type { BestAttemptView, BestView } from "../../contract/best/best-verbs.ts";
import type { JobEvent } from "../../contract/durable/durable-event.ts";
import type { EventFor } from "../../contract/event/event-family.ts";
import { type Handlers, handle } from "../../contract/event/handlers.ts";
import { showDuration } from "../../lib/quantity.ts";
import { bold, dim, type Line, line } from "../terminal/line.ts";
import { table } from "../terminal/table.ts";

/** Formats a best-of for people: what it is about, and its attempts as a ranked table. */
export function bestLines(view: BestView): Line[] {
  const rows: [string, string][] = [
    ["status", view.finish ?? view.status],
    ["grader", view.grade ?? ""],
    ["judge", view.judge ?? ""],
    ["cost", costText(view.costUsd)],
    ["message", view.text ?? ""],
  ];
  const filledRows = rows.filter(([, value]) => value !== "").map(([name, value]) => [dim(`  ${name}`), value]);
  return [bold(view.id), ...table(filledRows), line``, ...attemptTable(view.attempts)];
}

/** Formats attempts as a table with the best first. */
export function attemptTable(attempts: readonly BestAttemptView[]): Line[] {
  const rows = attempts.map((attempt) => [
    attempt.place === null ? "–" : String(attempt.place),
    String(attempt.attempt),
    resultOf(attempt),
    attempt.grade?.score == null ? "–" : String(attempt.grade.score),
    attempt.opinion === null ? "–" : String(attempt.opinion.score),
    costText(attempt.costUsd),
    attempt.workedMs === 0 ? "–" : showDuration(attempt.workedMs),
    attempt.model ?? "–",
    attempt.run ?? "–",
    attempt.text ?? attempt.why,
  ]);
  return table([["PLACE", "ATTEMPT", "RESULT", "SCORE", "JUDGE", "COST", "TIME", "MODEL", "RUN", "WHY"], ...rows]);
}

function resultOf({ status, grade, finish }: BestAttemptView): string {
  if (grade !== null) return grade.isPassed ? "passed" : `failed (${grade.exitCode === null ? "no exit" : `exit ${grade.exitCode}`})`;
  return status === "ended" ? (finish ?? status) : status;
}

const costText = (costUsd: number | null) => (costUsd === null ? "?" : `$${costUsd.toFixed(4)}`);

/** Formats an event as a progress line, or returns null if it needs none. */
export const progressLine = (event: BestEvent | JobEvent): Line | null => handle(progress, event, undefined) ?? null;

const progress: Handlers<EventFor<typeof bestEvents, "terminal">, void, Line | null> = {
  "best.attempt_started": () => null,
  "best.attempted": ({ data: { attempt, run } }) => line`attempt ${attempt}: ${run}`,
  "best.attempt_ended": ({ data: { attempt, finish, steps, costUsd } }) =>
    line`attempt ${attempt}: ${finish} after ${steps} ${steps === 1 ? "step" : "steps"}, ${costText(costUsd)}`,
  "best.attempt_failed": ({ data: { attempt, text } }) => line`attempt ${attempt}: failed: ${text}`,
  "best.graded": ({ data: { attempt, isPassed, score } }) =>
    line`attempt ${attempt}: ${isPassed ? "passed" : "not passed"}${score === null ? "" : `, score ${score}`}`,
  "best.judged": ({ data: { text } }) => line`${text ?? "the judge compared the attempts"}`,
  "best.promoted": ({ data: { attempt, run } }) => line`attempt ${attempt} wins: ${run}`,
};
