import type { GuardianConfig } from "../../contract/guardian/guardian-config.ts";
import type { GuardianFinding } from "../../contract/guardian/guardian-event.ts";
import type { Crashpoint } from "../../lib/crashpoint.ts";
import { ignore } from "../../lib/failures.ts";
import type { Log } from "../../log/log.ts";
import { appendUnowned } from "../vocabulary/append-unowned.ts";
import { appendDecision, type GuardianDecision } from "./append-decision.ts";
import { chooseAction, coherenceOf, unwatchedBecause } from "./choose-action.ts";
import { cut, findingsOf, isYoung } from "./detectors.ts";
import { duplicateOf } from "./duplicates.ts";
import { effectOf } from "./effect.ts";
import type { Judgement } from "./judge.ts";
import type { LookAtFiles } from "./look.ts";
import { noteProgress, type Trajectory } from "./trajectory.ts";

export interface EvaluateOptions {
  log: Log;
  settings: GuardianConfig;
  crashpoint: Crashpoint;
  look: LookAtFiles;
  /** Resolves with null if there is no judge, its hourly limit is reached, or it fails. */
  judge: (trajectory: Trajectory, signal: AbortSignal) => Promise<Judgement | null>;
  /** Returns whether two runs work on the same folder. */
  sameFolder: (one: string, other: string) => Promise<boolean>;
  others: () => Iterable<Trajectory>;
  /** Folds the events appended since. */
  catchUp: (trajectory: Trajectory) => Promise<void>;
  /** Called when the run's place in the queue may have changed. */
  requeue: (run: string) => Promise<void>;
  signal: AbortSignal;
}

/** How many steps pass between two checks of a run's files, so that the agent has time to change them. */
const LOOK_STEPS = 4;
/** A streaming run appends constantly. A guardian that loses this many races tries again after the next step. */
const RACES_MAX = 20;

/** Evaluates a run: the effect of the last decision, what is wrong now, and what to do about it. */
export async function evaluateRun(trajectory: Trajectory, options: EvaluateOptions): Promise<void> {
  const { settings } = options;
  if (unwatchedBecause(trajectory, settings) !== null) return;
  if (trajectory.standing !== null && !(await settle(trajectory, options))) return;
  for (let races = 0; races < RACES_MAX; races++) {
    const first = await decisionNow(trajectory, options);
    if (first === null) return;
    if (needsLook(trajectory, first.findings) && (await hasChangedFiles(trajectory, options)) !== "no") return;
    await options.catchUp(trajectory);
    // The new events may have changed everything, and may include a decision.
    if (trajectory.standing !== null) return;
    const expectedSeq = trajectory.seq;
    const decision = await decisionNow(trajectory, options);
    if (decision?.action !== first.action) continue;
    options.crashpoint("guardian.decided:before");
    const isDone = await appendDecision(options.log, trajectory.run, { ...decision, expectedSeq });
    options.crashpoint("guardian.decided:after");
    await options.catchUp(trajectory);
    if (isDone) return await options.requeue(trajectory.run);
  }
}

/** Returns whether the last decision is settled. Until then its effect may still appear, and the guardian waits. */
async function settle(trajectory: Trajectory, options: EvaluateOptions): Promise<boolean> {
  const { log, settings } = options;
  const { standing } = trajectory;
  let found = effectOf(trajectory, settings);
  if (found === null || standing === null) return false;
  if (found.effect === "none" && trajectory.hasCommands) {
    const changed = await hasChangedFiles(trajectory, options);
    if (changed === "not yet known") return false;
    if (changed === "yes") found = { effect: "progress", text: trajectory.progress.text, events: [] };
  }
  const data = { decision: standing.decision, ...found, text: cut(found.text) };
  await appendUnowned(log, trajectory.run, ({ guardian }) => {
    const isOpen = guardian.decisions.some(({ decision, effect }) => decision === standing.decision && effect === null);
    return isOpen ? { type: "guardian.settled", data } : null;
  });
  await options.catchUp(trajectory);
  return trajectory.standing === null;
}

async function decisionNow(trajectory: Trajectory, options: EvaluateOptions): Promise<GuardianDecision | null> {
  const findings = await findingsNow(trajectory, options);
  const coherence = coherenceOf(trajectory, findings);
  const action = findings.length === 0 ? null : chooseAction(trajectory, coherence, options.settings);
  return action && { action, coherence, findings };
}

async function findingsNow(trajectory: Trajectory, options: EvaluateOptions): Promise<GuardianFinding[]> {
  const { settings } = options;
  if (trajectory.status === "working") await judgeWhenDue(trajectory, options);
  const own = trajectory.status === "working" ? findingsOf(trajectory, settings) : [];
  const isOld = trajectory.status === "queued" || !isYoung(trajectory, settings);
  const duplicate = isOld ? duplicateOf(trajectory, options.others(), settings) : null;
  if (duplicate === null || !(await options.sameFolder(trajectory.run, duplicate.other.run))) return own;
  return [...own, duplicate.finding];
}

async function judgeWhenDue(trajectory: Trajectory, options: EvaluateOptions): Promise<void> {
  const { judge, ...settings } = options.settings;
  const { judged, activeSteps } = trajectory;
  if (judge.model === undefined || isYoung(trajectory, { ...settings, judge })) return;
  if (activeSteps - judged.step < judge.everySteps || judged.calls >= judge.callsMax || judged.costUsd >= judge.costUsdMax) return;
  const judgement = await options.judge(trajectory, options.signal);
  if (judgement === null) return;
  await appendUnowned(options.log, trajectory.run, () => ({ type: "guardian.judged", data: judgement }));
  await options.catchUp(trajectory);
}

/** The log shows what file tools changed, but not what commands changed. */
function needsLook({ hasCommands }: Trajectory, findings: readonly GuardianFinding[]): boolean {
  return hasCommands && findings.some(({ detector }) => detector !== "drift" && detector !== "duplicate");
}

/** Compares the files with those of the last check. A run whose files cannot be read gets the benefit of the doubt. */
async function hasChangedFiles(trajectory: Trajectory, options: EvaluateOptions): Promise<HasChanged> {
  await options.catchUp(trajectory);
  const { look: before, activeSteps: step } = trajectory;
  // A check is valid for its whole step.
  if (before?.step === step) return before.hasChanged;
  if (before !== null && step - before.step < LOOK_STEPS) return "not yet known";
  const digest = await ignore(options.look(trajectory.session, options.signal), "the next evaluation looks again");
  if (digest == null) return "not yet known";
  const hasChanged = changedSince(digest, before?.digest ?? null);
  // The run continued during the check, and the digest may include its latest work, so the next check counts from here.
  await options.catchUp(trajectory);
  trajectory.look = { digest, step: trajectory.activeSteps, hasChanged };
  if (hasChanged === "yes") noteProgress(trajectory, trajectory.seq, "files in its workspace changed");
  return hasChanged;
}

type HasChanged = NonNullable<Trajectory["look"]>["hasChanged"];

function changedSince(digest: string, before: string | null): HasChanged {
  if (before !== null) return digest === before ? "no" : "yes";
  // Nothing differs from the original files.
  return digest === "" ? "no" : "not yet known";
}
