import { checkValue, tellProblems } from "../../contract/plain-problems.ts";
import { type DataOf, type Judgement, PHASE_BYTES_MAX, phaseData, type SpecData, type WrittenPhase } from "../../contract/spec.ts";
import { evaluate } from "./evaluate.ts";
import { evaluators } from "./evaluators.ts";

export interface JudgedOutput<Phase extends WrittenPhase = WrittenPhase> {
  judgement: Judgement;
  /** Null for what is not even of the phase's shape. */
  data: DataOf<Phase> | null;
}

/**
 * What an agent handed in for a phase: the last words of its run, which are in the run's log. They are data: bounded,
 * parsed as JSON and nothing else, and checked against the phase's schema before an evaluator sees them.
 */
export function judgeOutput<Phase extends WrittenPhase>(phase: Phase, text: string, spec: SpecData): JudgedOutput<Phase> {
  if (Buffer.byteLength(text) > PHASE_BYTES_MAX)
    return malformed(phase, `the answer is longer than ${PHASE_BYTES_MAX / 1024} KiB; say it shorter`);
  const json = jsonIn(text);
  if (json === undefined) return malformed(phase, "the last answer has no JSON: end with one block ```json … ``` and nothing after it");
  const parsed = checkValue(phaseData[phase], json);
  if (!parsed.success) return malformed(phase, `the JSON has another shape: ${tellProblems(parsed.problems)}`);
  const data = parsed.data as DataOf<Phase>;
  return { judgement: evaluate(phase, { ...spec, [phase]: data }), data };
}

/** The run did not come to an answer. */
export function judgeNoAnswer(phase: WrittenPhase, why: string): Judgement {
  return malformed(phase, why).judgement;
}

function malformed<Phase extends WrittenPhase>(phase: Phase, why: string): JudgedOutput<Phase> {
  const { threshold } = evaluators[phase];
  const checks = [{ check: "format", weight: 1, score: 0, feedback: why.slice(0, 1000) }];
  return { judgement: { passed: false, score: 0, threshold, checks }, data: null };
}

/** The last fenced block that is JSON, or the whole text where it is. */
function jsonIn(text: string): unknown {
  const parts = text.split("```");
  // Every second part stands between fences.
  const blocks = parts.filter((_, index) => index % 2 === 1).map((block) => block.replace(/^[a-z]*\n/i, ""));
  for (const candidate of [...blocks.reverse(), text]) {
    const value = parsedObject(candidate);
    if (value !== undefined) return value;
  }
  return undefined;
}

function parsedObject(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null ? value : undefined;
  } catch {
    return undefined;
  }
}
