import { checkValue, tellProblems } from "../../contract/error/plain-problems.ts";
import { type DataOf, type Judgement, PHASE_BYTES_MAX, phaseData, type SpecData, type WrittenPhase } from "../../contract/spec/spec.ts";
import { jsonOrNull } from "../../lib/failures.ts";
import { evaluate } from "./evaluate.ts";
import { evaluators } from "./evaluators.ts";

export interface JudgedOutput<Phase extends WrittenPhase = WrittenPhase> {
  judgement: Judgement;
  /** Null if the output does not match the phase's schema. */
  data: DataOf<Phase> | null;
}

/**
 * Judges an agent's output for a phase: the last message of its run, taken from the run's log. The output is data: it
 * has a size limit, is only parsed as JSON, and is checked against the phase's schema before an evaluator sees it.
 */
export function judgeOutput<Phase extends WrittenPhase>(phase: Phase, text: string, spec: SpecData): JudgedOutput<Phase> {
  if (Buffer.byteLength(text) > PHASE_BYTES_MAX)
    return judgeMalformed(phase, `the answer is longer than ${PHASE_BYTES_MAX / 1024} KiB; shorten it`);
  const json = jsonIn(text);
  if (json === undefined)
    return judgeMalformed(phase, "the last answer has no JSON: end with one block ```json … ``` and nothing after it");
  const parsed = checkValue(phaseData[phase], json);
  if (!parsed.success) return judgeMalformed(phase, `the JSON does not match the schema: ${tellProblems(parsed.problems)}`);
  const data = parsed.data as DataOf<Phase>;
  return { judgement: evaluate(phase, { ...spec, [phase]: data }), data };
}

/** Returns the judgement for a run that ended without an answer. */
export function judgeNoAnswer(phase: WrittenPhase, why: string): Judgement {
  return judgeMalformed(phase, why).judgement;
}

function judgeMalformed<Phase extends WrittenPhase>(phase: Phase, why: string): JudgedOutput<Phase> {
  const { threshold } = evaluators[phase];
  const checks = [{ check: "format", weight: 1, score: 0, feedback: why.slice(0, 1000) }];
  return { judgement: { passed: false, score: 0, threshold, checks }, data: null };
}

/** Returns the last fenced block that is JSON, or else the whole text if it is JSON. */
function jsonIn(text: string): unknown {
  const parts = text.split("```");
  // Every second part is inside a fence.
  const blocks = parts.filter((_, index) => index % 2 === 1).map((block) => block.replace(/^[a-z]*\n/i, ""));
  for (const candidate of [...blocks.reverse(), text]) {
    const value = parsedObject(candidate);
    if (value !== undefined) return value;
  }
  return undefined;
}

function parsedObject(text: string): unknown {
  const value = jsonOrNull(text);
  return typeof value === "object" && value !== null ? value : undefined;
}
