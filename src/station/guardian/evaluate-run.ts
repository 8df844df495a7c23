import type { GuardianConfig } from "../../contract/guardian-config.ts";
import type { GuardianFinding } from "../../contract/guardian-event.ts";
import type { Log } from "../../log/log.ts";
import type { Crashpoint } from "../crashpoint.ts";
import { appendForeign } from "../runs/append-foreign.ts";
import { appendDecision, type Decision } from "./append-decision.ts";
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
  /** Null where none is configured, or the station has asked enough. */
  judge: (trajectory: Trajectory, signal: AbortSignal) => Promise<Judgement | null>;
  /** Whether two runs work on the same folder. */
  sameFolder: (one: string, other: string) => Promise<boolean>;
  others: () => Iterable<Trajectory>;
  /** Folds what came meanwhile. */
  catchUp: (trajectory: Trajectory) => Promise<void>;
  /** Somebody's place in the queue may have changed. */
  requeue: (run: string) => Promise<void>;
  signal: AbortSignal;
}

/** Between two looks at the files of a run, so that they can say something. */
const LOOK_STEPS = 4;
/** A run that streams appends all the time; whoever does not get in a word tries again after its next step. */
const RACES_MAX = 20;

/** One look at a run: what became of the last decision, what is wrong now, and what is to be done about it. */
export async function evaluateRun(trajectory: Trajectory, options: EvaluateOptions): Promise<void> {
  const { settings } = options;
  if (unwatchedBecause(trajectory, settings) !== null) return;
  if (trajectory.standing !== null && !(await settle(trajectory, options))) return;
  for (let races = 0; races < RACES_MAX; races++) {
    const first = await decisionNow(trajectory, options);
    if (first === null) return;
    if (needsLook(trajectory, first.findings) && (await hasChangedFiles(trajectory, options)) !== "no") return;
    await options.catchUp(trajectory);
    // What came meanwhile may have changed everything; an earlier look may have led to a decision.
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

/** Whether the last decision is over with; otherwise its effect may still show, and nothing else is done. */
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
  await appendForeign(log, trajectory.run, ({ guardian }) => {
    const isOpen = guardian.decisions.some(({ decision, effect }) => decision === standing.decision && effect === null);
    return isOpen ? { type: "guardian.settled", data } : null;
  });
  await options.catchUp(trajectory);
  return trajectory.standing === null;
}

async function decisionNow(trajectory: Trajectory, options: EvaluateOptions): Promise<Decision | null> {
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
  await appendForeign(options.log, trajectory.run, () => ({ type: "guardian.judged", data: judgement }));
  await options.catchUp(trajectory);
}

/** The log tells what tools for files changed, and nothing of what commands did. */
function needsLook({ hasCommands }: Trajectory, findings: readonly GuardianFinding[]): boolean {
  return hasCommands && findings.some(({ detector }) => detector !== "drift" && detector !== "duplicate");
}

/** Compares the files with how they were at the last look. Whatever cannot be seen speaks for the run. */
async function hasChangedFiles(trajectory: Trajectory, options: EvaluateOptions): Promise<HasChanged> {
  await options.catchUp(trajectory);
  const { look: before, activeSteps: step } = trajectory;
  // What was seen in this step holds for it.
  if (before?.step === step) return before.hasChanged;
  if (before !== null && step - before.step < LOOK_STEPS) return "not yet known";
  const digest = await options.look(trajectory.session, options.signal).catch(() => null);
  if (digest === null) return "not yet known";
  const hasChanged = compared(digest, before?.digest ?? null);
  // The run went on meanwhile, and what it did may be in what was seen: the next look counts from here.
  await options.catchUp(trajectory);
  trajectory.look = { digest, step: trajectory.activeSteps, hasChanged };
  if (hasChanged === "yes") noteProgress(trajectory, trajectory.seq, "files in its workspace changed");
  return hasChanged;
}

type HasChanged = NonNullable<Trajectory["look"]>["hasChanged"];

function compared(digest: string, before: string | null): HasChanged {
  if (before !== null) return digest === before ? "no" : "yes";
  // Nothing differs from how it all began.
  return digest === "" ? "no" : "not yet known";
}
