import { z } from "zod";
import { jsonOrNull } from "../../lib/failures.ts";

/** How much of the end of a grader's output is looked at and kept. */
export const GRADE_OUTPUT_CHARACTERS_MAX = 4000;
const SCORE_LINE = /^score:[ \t]*(-?[0-9]{1,15}(?:\.[0-9]{1,15})?)$/i;
const SCORE_MAX = 1e15;

const ScoreObject = z.looseObject({ score: z.number().min(-SCORE_MAX).max(SCORE_MAX) });

/** What a grader's command says about an attempt. */
export interface Grade {
  /** Whether it exited with 0. */
  isPassed: boolean;
  /** Null if it did not exit by itself. */
  exitCode: number | null;
  /** Higher is better. Null if it printed none. */
  score: number | null;
  /** The end of its output, for people. */
  text: string;
}

/**
 * Reads a grader's exit code and score. The score is the last line of its standard output, either `score: 0.93` or a
 * JSON object with the number `score`; anything else counts as no score.
 */
export function parseGrade({ exitCode, stdout, stderr }: { exitCode: number | null; stdout: string; stderr: string }): Grade {
  const text = [stdout.trimEnd(), stderr.trimEnd()].filter((each) => each !== "").join("\n");
  return { isPassed: exitCode === 0, exitCode, score: scoreOf(stdout), text: endOf(text) };
}

function scoreOf(stdout: string): number | null {
  const end = endOf(stdout.trimEnd());
  const last = end.slice(end.lastIndexOf("\n") + 1).trim();
  const [, number] = SCORE_LINE.exec(last) ?? [];
  if (number !== undefined) return Number(number);
  return ScoreObject.safeParse(last.startsWith("{") ? jsonOrNull(last) : null).data?.score ?? null;
}

const endOf = (text: string) => text.slice(-GRADE_OUTPUT_CHARACTERS_MAX).toWellFormed();
