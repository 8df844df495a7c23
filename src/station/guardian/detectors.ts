import type { GuardianConfig } from "../../contract/guardian-config.ts";
import {
  EVIDENCE_EVENTS_MAX,
  GUARDIAN_TEXT_CHARACTERS_MAX,
  type GuardianDetector,
  type GuardianFinding,
} from "../../contract/guardian-event.ts";
import { isNear, type SeenCall } from "./seen-call.ts";
import type { Trajectory } from "./trajectory.ts";

/** Looks at a run and says what is wrong with it, if anything; the same trajectory gives the same finding. */
export type Detector = (trajectory: Trajectory, settings: GuardianConfig) => GuardianFinding | null;

/** At the threshold a finding is worth a word; at twice as much somebody should look. */
const SEVERITY_AT_THRESHOLD = 0.35;
const SEVERITY_PER_THRESHOLD = 0.25;
const SEVERITY_MAX = 0.75;
/** Of what may be a good reason all the same: it is worth a word, and never more by itself. */
const SEVERITY_WORD = 0.32;

/** Of the calls since the last progress, so many may have brought something new without being idle. */
const NEW_SHARE = 0.4;
const CYCLE_LENGTH_MAX = 5;
const CYCLES_MIN = 4;
/** The same command fails the same way this often, whatever was changed in between. */
const SAME_FAILURES = 10;
/** Calls without a word of the task, by one that had been on it before. */
const DRIFT_CALLS = 24;
const ON_TASK_BEFORE_MIN = 3;
/** Spending says something only of a run that has made some steps. */
const COST_STEPS_MIN = 5;
/** Below it a judge's word is a finding. */
export const JUDGED_COHERENT = 0.5;

/** Steps that did something and brought nothing: no changed file, no better test, and hardly anything new to read. */
export const noProgress: Detector = (trajectory, { noProgressSteps }) => {
  const idle = idleSteps(trajectory);
  const calls = callsSinceProgress(trajectory);
  if (idle < noProgressSteps || calls.length === 0) return null;
  const fresh = calls.filter(({ isNew }) => isNew).length;
  if (fresh / calls.length >= NEW_SHARE) return null;
  const text = `${idle} steps without a changed file, a test that does better, or much that is new (last: ${trajectory.progress.text})`;
  return finding("no_progress", severityOf(idle / noProgressSteps), text, calls);
};

/** Calls that are nearly the same, or the same few in turn, with nearly the same results. */
export const repetition: Detector = (trajectory, { repetitions }) => {
  const calls = callsSinceProgress(trajectory).filter(({ seq }) => seq > trajectory.decidedSeq);
  const cycle = repeatedCycle(calls);
  const same = largestGroup(calls);
  if (same.length >= repetitions) {
    const text = `${same.length} calls of ${same[0]?.tool} are nearly the same and gave nearly the same result`;
    return finding("repetition", severityOf(same.length / repetitions), text, same);
  }
  if (cycle !== null) {
    const text = `the same ${cycle.length} calls again and again, ${cycle.times} times, with the same results`;
    return finding("repetition", severityOf(cycle.times / CYCLES_MIN), text, cycle.calls);
  }
  const { failing } = trajectory;
  if (failing === null || failing.seqs.length < SAME_FAILURES) return null;
  const text = `the same command failed the same way ${failing.seqs.length} times, whatever was changed in between`;
  return { detector: "repetition", severity: SEVERITY_WORD, text, events: failing.seqs.slice(-EVIDENCE_EVENTS_MAX) };
};

export const errors: Detector = ({ errors: seqs }, { errors: threshold }) => {
  if (seqs.length < threshold) return null;
  const text = `${seqs.length} calls failed, one after the other`;
  return { detector: "errors", severity: severityOf(seqs.length / threshold), text, events: seqs.slice(-EVIDENCE_EVENTS_MAX) };
};

/** What was spent since the run last got on. One that gets on may cost what its budget allows. */
export const cost: Detector = (trajectory, { costUsdWithoutProgress, tokensWithoutProgress }) => {
  const idle = idleSteps(trajectory);
  if (idle < COST_STEPS_MIN) return null;
  const costUsd = trajectory.costUsd - trajectory.progress.costUsd;
  const tokens = trajectory.tokens - trajectory.progress.tokens;
  const ratio = Math.max(costUsd / costUsdWithoutProgress, tokens / tokensWithoutProgress);
  if (ratio < 1) return null;
  const text = `$${costUsd.toFixed(2)} and ${tokens} tokens in ${idle} steps without progress`;
  return finding("cost", severityOf(ratio), text, callsSinceProgress(trajectory));
};

/** What a judge said last; without one, whether the run has left the words of its task behind. */
export const drift: Detector = (trajectory, { judge }) => {
  const { judged, decidedSeq } = trajectory;
  if (judge.model !== undefined) {
    if (judged.coherence === null || judged.coherence >= JUDGED_COHERENT || judged.seq <= decidedSeq) return null;
    const severity = judged.coherence < JUDGED_COHERENT / 2 ? SEVERITY_AT_THRESHOLD + 0.1 : SEVERITY_AT_THRESHOLD;
    return { detector: "drift", severity, text: cut(`the judge says ${judged.coherence}: ${judged.text}`), events: [judged.seq] };
  }
  const { calls } = trajectory;
  const recent = calls.slice(-DRIFT_CALLS);
  const before = calls.slice(0, -DRIFT_CALLS).filter(({ isOnTask }) => isOnTask).length;
  if (recent.length < DRIFT_CALLS || before < ON_TASK_BEFORE_MIN) return null;
  if (recent.some(({ isOnTask, seq }) => isOnTask || seq <= decidedSeq)) return null;
  const text = `none of the last ${DRIFT_CALLS} calls has anything of the task in it, as earlier ones had`;
  return finding("drift", SEVERITY_WORD, text, recent);
};

const detectors: readonly Detector[] = [noProgress, repetition, errors, cost, drift];

/** What the guardian may act on. It leaves a run alone that is young, by steps or by time of work. */
export function findingsOf(trajectory: Trajectory, settings: GuardianConfig): GuardianFinding[] {
  return isYoung(trajectory, settings) ? [] : detected(trajectory, settings);
}

/** Everything that speaks against a run, for people who ask: of a young one too, and what its own harness noticed. */
export function shownFindings(trajectory: Trajectory, settings: GuardianConfig): GuardianFinding[] {
  const found = detected(trajectory, settings);
  const { stuck } = trajectory;
  if (stuck === null || found.some(({ detector }) => detector === "repetition")) return found;
  return [...found, { detector: "repetition", severity: SEVERITY_AT_THRESHOLD, text: cut(stuck.text), events: [stuck.seq] }];
}

const detected: (...given: Parameters<Detector>) => GuardianFinding[] = (trajectory, settings) =>
  detectors.flatMap((detect) => detect(trajectory, settings) ?? []);

export function isYoung({ steps, workedMs }: Trajectory, { stepsMin, workedMsMin }: GuardianConfig): boolean {
  return steps < stepsMin || workedMs < workedMsMin;
}

export const idleSteps = ({ activeSteps, progress }: Trajectory): number => activeSteps - progress.step;

/** Calls that only waited say nothing. */
function callsSinceProgress({ calls, progress }: Trajectory): SeenCall[] {
  return calls.filter(({ seq, isWaiting }) => seq > progress.seq && !isWaiting);
}

function largestGroup(calls: readonly SeenCall[]): SeenCall[] {
  const groups: SeenCall[][] = [];
  for (const call of calls) {
    const group = groups.find(([first]) => first !== undefined && first.result === call.result && isNear(first, call));
    if (group === undefined) groups.push([call]);
    else group.push(call);
  }
  return groups.reduce((best, group) => (group.length > best.length ? group : best), [] as SeenCall[]);
}

/** The last calls as one sequence, over and over: A-B-A-B, A-B-C-A-B-C and so on. */
function repeatedCycle(calls: readonly SeenCall[]): { length: number; times: number; calls: SeenCall[] } | null {
  const isSame = (one: SeenCall | undefined, other: SeenCall | undefined) =>
    one !== undefined && other !== undefined && one.result === other.result && isNear(one, other);
  for (let length = 2; length <= CYCLE_LENGTH_MAX; length++) {
    let matching = 0;
    while (matching < calls.length - length && isSame(calls.at(-1 - matching), calls.at(-1 - matching - length))) matching += 1;
    const times = Math.floor((matching + length) / length);
    if (times >= CYCLES_MIN) return { length, times, calls: calls.slice(-times * length) };
  }
  return null;
}

function severityOf(ratio: number): number {
  return round(Math.min(SEVERITY_AT_THRESHOLD + SEVERITY_PER_THRESHOLD * (ratio - 1), SEVERITY_MAX));
}

function finding(detector: GuardianDetector, severity: number, text: string, calls: readonly SeenCall[]): GuardianFinding {
  return { detector, severity, text: cut(text), events: calls.map(({ seq }) => seq).slice(-EVIDENCE_EVENTS_MAX) };
}

export const cut = (text: string) =>
  (text.length > GUARDIAN_TEXT_CHARACTERS_MAX ? `${text.slice(0, GUARDIAN_TEXT_CHARACTERS_MAX - 1)}…` : text).toWellFormed();
export const round = (value: number) => Math.round(value * 1000) / 1000;
