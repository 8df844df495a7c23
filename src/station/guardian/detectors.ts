import type { GuardianConfig } from "../../contract/guardian/guardian-config.ts";
import {
  EVIDENCE_EVENTS_MAX,
  GUARDIAN_TEXT_CHARACTERS_MAX,
  type GuardianDetector,
  type GuardianFinding,
} from "../../contract/guardian/guardian-event.ts";
import { isNear, type SeenCall } from "./call-fingerprint.ts";
import type { Trajectory } from "./trajectory.ts";

/** Returns what is wrong with a run, or null. The same trajectory always gives the same finding. */
export type Detector = (trajectory: Trajectory, settings: GuardianConfig) => GuardianFinding | null;

/** At the threshold a finding justifies a nudge; at twice the threshold a person should look. */
const SEVERITY_AT_THRESHOLD = 0.35;
const SEVERITY_PER_THRESHOLD = 0.25;
const SEVERITY_MAX = 0.75;
/** The severity of findings that may have a good reason. One alone justifies a nudge, but nothing stronger. */
const SEVERITY_WORD = 0.32;

/** The share of calls since the last progress that must have read something new for a run not to be idle. */
const NEW_SHARE = 0.4;
const CYCLE_LENGTH_MAX = 5;
const CYCLES_MIN = 4;
/** How often the same command must fail the same way, despite changes in between. */
const SAME_FAILURES = 10;
/** How many calls in a row must not mention the task, after earlier calls did. */
const DRIFT_CALLS = 24;
const ON_TASK_BEFORE_MIN = 3;
/** Spending means something only after a few steps. */
const COST_STEPS_MIN = 5;
/** A score by the judge below this is a finding. */
export const JUDGED_COHERENT = 0.5;

/** Finds steps without a result: no changed file, no improved test, and hardly anything new to read. */
export const noProgress: Detector = (trajectory, { noProgressSteps }) => {
  const idle = idleSteps(trajectory);
  const calls = callsSinceProgress(trajectory);
  if (idle < noProgressSteps || calls.length === 0) return null;
  const fresh = calls.filter(({ isNew }) => isNew).length;
  if (fresh / calls.length >= NEW_SHARE) return null;
  const text = `${idle} steps without a changed file, an improved test, or much new to read (last: ${trajectory.progress.text})`;
  return finding("no_progress", severityOf(idle / noProgressSteps), text, calls);
};

/** Finds calls, or short cycles of calls, that are nearly the same and have nearly the same results. */
export const repetition: Detector = (trajectory, { repetitions }) => {
  const calls = callsSinceProgress(trajectory).filter(({ seq }) => seq > trajectory.decidedSeq);
  const cycle = repeatedCycle(calls);
  const same = largestGroup(calls);
  if (same.length >= repetitions) {
    const text = `${same.length} calls of ${same[0]?.tool} are nearly the same and gave nearly the same result`;
    return finding("repetition", severityOf(same.length / repetitions), text, same);
  }
  if (cycle !== null) {
    const text = `the same ${cycle.length} calls were repeated ${cycle.times} times, with the same results`;
    return finding("repetition", severityOf(cycle.times / CYCLES_MIN), text, cycle.calls);
  }
  const { failing } = trajectory;
  if (failing === null || failing.seqs.length < SAME_FAILURES) return null;
  const text = `the same command failed the same way ${failing.seqs.length} times, despite changes in between`;
  return { detector: "repetition", severity: SEVERITY_WORD, text, events: failing.seqs.slice(-EVIDENCE_EVENTS_MAX) };
};

export const errors: Detector = ({ errors: seqs }, { errors: threshold }) => {
  if (seqs.length < threshold) return null;
  const text = `${seqs.length} calls failed in a row`;
  return { detector: "errors", severity: severityOf(seqs.length / threshold), text, events: seqs.slice(-EVIDENCE_EVENTS_MAX) };
};

/** Finds high spending since the last progress. A run that makes progress may spend what its budget allows. */
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

/** Uses the judge's last score. Without a judge, finds runs whose calls no longer mention the task. */
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
  const text = `none of the last ${DRIFT_CALLS} calls mentions the task, although earlier ones did`;
  return finding("drift", SEVERITY_WORD, text, recent);
};

const detectors: readonly Detector[] = [noProgress, repetition, errors, cost, drift];

/** Returns the findings on which the guardian may act: none if the run is young, by steps or by working time. */
export function findingsOf(trajectory: Trajectory, settings: GuardianConfig): GuardianFinding[] {
  return isYoung(trajectory, settings) ? [] : detectAll(trajectory, settings);
}

/** Returns all findings, for people who ask: even those of a young run, and what its own harness noticed. */
export function shownFindings(trajectory: Trajectory, settings: GuardianConfig): GuardianFinding[] {
  const found = detectAll(trajectory, settings);
  const { stuck } = trajectory;
  if (stuck === null || found.some(({ detector }) => detector === "repetition")) return found;
  return [...found, { detector: "repetition", severity: SEVERITY_AT_THRESHOLD, text: cut(stuck.text), events: [stuck.seq] }];
}

const detectAll: (...args: Parameters<Detector>) => GuardianFinding[] = (trajectory, settings) =>
  detectors.flatMap((detect) => detect(trajectory, settings) ?? []);

export function isYoung({ steps, workedMs }: Trajectory, { stepsMin, workedMsMin }: GuardianConfig): boolean {
  return steps < stepsMin || workedMs < workedMsMin;
}

export const idleSteps = ({ activeSteps, progress }: Trajectory): number => activeSteps - progress.step;

/** Leaves out calls that only waited. */
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

/** Finds a sequence at the end of the calls that repeats: A-B-A-B, A-B-C-A-B-C and so on. */
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
