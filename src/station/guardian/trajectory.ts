import type { GuardianSettings } from "../../contract/agent.ts";
import type { GuardianDetector } from "../../contract/guardian-event.ts";
import { LOCAL_OWNER } from "../../contract/owner.ts";
import type { AskedCall, SeenCall } from "./seen-call.ts";

/** Where a run last got on. */
export interface Progress {
  seq: number;
  /** Of steps that did something; see `Trajectory`. */
  step: number;
  costUsd: number;
  tokens: number;
  text: string;
  /** Somebody had a word: the run has as long as at the beginning, and has not got on by that. */
  byPerson: boolean;
}

export interface StandingDecision {
  decision: string;
  seq: number;
  step: number;
  detectors: readonly GuardianDetector[];
}

/**
 * What the guardian keeps of a run: a fold of its log, bounded however long the run. Changed only by `foldTrajectory`
 * and by what was seen of the workspace.
 */
export interface Trajectory {
  run: string;
  /** The last event that is in it. */
  seq: number;
  owner: string;
  agent: string;
  session: string;
  task: string;
  words: ReadonlySet<string>;
  parent: string | null;
  createdAt: string;
  asked: GuardianSettings;
  /** Whether somebody is there to be asked. */
  isAttended: boolean;
  status: "queued" | "working" | "held" | "ended";
  /** All steps, and those in which something was done other than to wait. */
  steps: number;
  activeSteps: number;
  stepWaits: boolean | null;
  workedMs: number;
  costUsd: number;
  tokens: number;
  open: Map<string, AskedCall>;
  calls: SeenCall[];
  /** Signatures and results seen before, the newest last. */
  known: Set<string>;
  /** Of commands that run tests, by their shape: what came out last. */
  tests: Map<string, { failed: number; passed: number; isOk: boolean }>;
  /** The command that fails the same way again and again, whatever is changed in between. */
  failing: { shape: string; result: string; seqs: number[] } | null;
  errors: number[];
  waits: number;
  files: string[];
  todoDone: number;
  lastWords: string;
  progress: Progress;
  /** Whether a command ran since, which may have changed files without an event. */
  hasCommands: boolean;
  /** Of the workspace, as it was looked at last. */
  look: { digest: string; step: number; hasChanged: "yes" | "no" | "not yet known" } | null;
  standing: StandingDecision | null;
  decidedSeq: number;
  /** Decisions without effect since the last progress. */
  unheeded: number;
  judged: { calls: number; costUsd: number; step: number; coherence: number | null; text: string; seq: number };
  /** The harness paused the run for going in circles, and no answer came yet: the event, and its text. */
  stuck: { seq: number; text: string } | null;
  /** Something was done about its being the same work as another run's: once is enough. */
  isKnownDuplicate: boolean;
}

export function emptyTrajectory(run: string): Trajectory {
  return {
    run,
    seq: 0,
    owner: LOCAL_OWNER,
    agent: "",
    session: "",
    task: "",
    words: new Set(),
    parent: null,
    createdAt: "",
    asked: {},
    isAttended: false,
    status: "queued",
    steps: 0,
    activeSteps: 0,
    stepWaits: null,
    workedMs: 0,
    costUsd: 0,
    tokens: 0,
    open: new Map(),
    calls: [],
    known: new Set(),
    tests: new Map(),
    failing: null,
    errors: [],
    waits: 0,
    files: [],
    todoDone: 0,
    lastWords: "",
    progress: { seq: 0, step: 0, costUsd: 0, tokens: 0, text: "the run began", byPerson: true },
    hasCommands: false,
    look: null,
    standing: null,
    decidedSeq: 0,
    unheeded: 0,
    judged: { calls: 0, costUsd: 0, step: 0, coherence: null, text: "", seq: 0 },
    stuck: null,
    isKnownDuplicate: false,
  };
}

/** Something brought the run further: what was found against it until here does not count any more. */
export function noteProgress(trajectory: Trajectory, seq: number, text: string, { byPerson = false } = {}): void {
  const { activeSteps: step, costUsd, tokens } = trajectory;
  trajectory.progress = { seq, step, costUsd, tokens, text, byPerson };
  trajectory.errors = [];
  trajectory.hasCommands = false;
  if (trajectory.standing === null) trajectory.unheeded = 0;
}
