import type { GuardianSettings } from "../../contract/agent/agent.ts";
import type { GuardianDetector } from "../../contract/guardian/guardian-event.ts";
import { LOCAL_OWNER } from "../../contract/token/owner.ts";
import type { CallFingerprint, SeenCall } from "./call-fingerprint.ts";

/** The last progress of a run. */
export interface Progress {
  seq: number;
  /** The number of active steps; see `Trajectory`. */
  step: number;
  costUsd: number;
  tokens: number;
  text: string;
  /** Whether a person intervened, which resets the idle steps but is not the run's own progress. */
  byPerson: boolean;
}

export interface StandingDecision {
  decision: string;
  seq: number;
  step: number;
  detectors: readonly GuardianDetector[];
}

/**
 * What the guardian knows of a run: a fold of its log, bounded however long the run is. Changed only by
 * `foldTrajectory` and by checks of the workspace.
 */
export interface Trajectory {
  run: string;
  /** The last event that was folded. */
  seq: number;
  owner: string;
  agent: string;
  session: string;
  task: string;
  words: ReadonlySet<string>;
  parent: string | null;
  /** The run with which the conversation of a fork began; null for a run that is not a fork. */
  root: string | null;
  createdAt: string;
  asked: GuardianSettings;
  /** Whether a person can be asked. */
  isAttended: boolean;
  status: "queued" | "working" | "held" | "ended";
  /** All steps, and those that did more than wait. */
  steps: number;
  activeSteps: number;
  stepWaits: boolean | null;
  workedMs: number;
  costUsd: number;
  tokens: number;
  open: Map<string, CallFingerprint>;
  calls: SeenCall[];
  /** Signatures and results seen before, newest last. */
  known: Set<string>;
  /** The last result of each test command, by its shape. */
  tests: Map<string, { failed: number; passed: number; isOk: boolean }>;
  /** The command that keeps failing the same way, despite changes in between. */
  failing: { shape: string; result: string; seqs: number[] } | null;
  errors: number[];
  waits: number;
  files: string[];
  todoDone: number;
  lastWords: string;
  progress: Progress;
  /** Whether a command has run since the last progress, which may have changed files without an event. */
  hasCommands: boolean;
  /** The last check of the workspace. */
  look: { digest: string; step: number; hasChanged: "yes" | "no" | "not yet known" } | null;
  standing: StandingDecision | null;
  decidedSeq: number;
  /** Decisions without effect since the last progress. */
  unheeded: number;
  judged: { calls: number; costUsd: number; step: number; coherence: number | null; text: string; seq: number };
  /** The event with which the harness paused the run for looping, and its text. Null if the run has continued since. */
  stuck: { seq: number; text: string } | null;
  /** Whether the guardian has already acted on a duplicate: once is enough. */
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
    root: null,
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
    progress: { seq: 0, step: 0, costUsd: 0, tokens: 0, text: "the run started", byPerson: true },
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

/** Records progress: earlier findings no longer count. */
export function noteProgress(trajectory: Trajectory, seq: number, text: string, { byPerson = false } = {}): void {
  const { activeSteps: step, costUsd, tokens } = trajectory;
  trajectory.progress = { seq, step, costUsd, tokens, text, byPerson };
  trajectory.errors = [];
  trajectory.hasCommands = false;
  if (trajectory.standing === null) trajectory.unheeded = 0;
}
