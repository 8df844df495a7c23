import { isLogFailure, systemMessage } from "../../agent/journal.ts";
import { budgetsFromLeft } from "../../agent/run-budgets.ts";
import type { RunState } from "../../agent/run-state.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { makeEvent } from "../../contract/event/event-family.ts";
import type { HostProcess, ProcessIdentity } from "../../contract/process-identity.ts";
import { NOTICE_CHARACTERS_MAX, runEvents } from "../../contract/run/run-event.ts";
import { isAtFork, type RunFacts } from "../../contract/run/run-facts.ts";
import type { RewoundRun } from "../../contract/run/run-verbs.ts";
import { ownedBy } from "../../contract/token/owner.ts";
import { defined } from "../../lib/defined.ts";
import { ignore } from "../../lib/failures.ts";
import { newId } from "../../lib/new-id.ts";
import type { HeldLease } from "../../log/hold-lease.ts";
import { foldRun } from "../runs/owned-journal.ts";
import { acquireWhenReleased, type ReleaseOptions, releaseSandbox } from "../runs/release-run.ts";
import { appendUnowned } from "../vocabulary/append-unowned.ts";
import { headOfRun } from "../vocabulary/head-of-run.ts";
import { runStream } from "../vocabulary/station-names.ts";
import { createFork, type ForkCreation, removeFork } from "./create-fork.ts";
import { checkKeepsFiles, type ForkFilesOptions } from "./fork-files.ts";
import type { Rewinding } from "./restore-files.ts";
import { interruptedRewinds, noteRewind, removeNote } from "./rewind-notes.ts";
import { stepEnd } from "./step-end.ts";

const FILES_MAX = 1000;
const RACES_MAX = 100;

export interface RewindOptions extends ForkCreation, ForkFilesOptions, ReleaseOptions {
  sessions: ForkFilesOptions["sessions"];
  identity: HostProcess;
  alive: (process: ProcessIdentity) => boolean;
  /** Restores the files of a run's session as they were after a step; see `restoreRunFiles`. */
  restoreFiles: (run: string, rewinding: Rewinding) => Promise<readonly string[]>;
}

export type Rewound = Pick<RewoundRun, "tail" | "files">;

/**
 * Takes a run back to a step: its conversation, files and model. A driver is asked to release the run first, and a fork
 * preserves the present. See `RunVerbs.rewind`.
 */
export async function rewindRun(run: string, { to, by }: { to: number; by: string }, options: RewindOptions): Promise<Rewound> {
  const { log, crashpoint } = options;
  const before = (await headOfRun(log, run)).facts;
  // A process that died may have left it half done.
  if (before.rewinding !== null && (await isAbandoned(run, options))) {
    const finished = await finishRewind(run, options);
    await removeNote(run, options);
    if (before.rewinding.toStep === to) return finished;
  }
  const { facts } = await headOfRun(log, run);
  const end = await stepEnd(log, run, to);
  await checkRewindable(facts, to, options);
  const tail = newId("run");
  await using _note = await noteRewind(run, options);
  crashpoint("run.rewind_started:before");
  await appendUnowned(
    log,
    run,
    (now) => {
      if (now.rewinding !== null) throw alreadyRewinding(now);
      return [{ type: "run.rewind_started", data: { by, toStep: to, toSeq: end.seq, tail } }];
    },
    { alsoEnded: true },
  );
  crashpoint("run.rewind_started:after");
  return await finishRewind(run, options);
}

/** Finishes rewinds whose process died. A failure is reported, and does not hold up the caller. */
export async function recoverRewinds(options: RewindOptions & { notice: (text: string) => void }): Promise<void> {
  for (const run of await interruptedRewinds(options)) {
    try {
      const head = await options.log.head(runStream(run));
      const { rewinding = null } = (head?.head ?? {}) as Partial<RunFacts>;
      if (rewinding !== null && (await isAbandoned(run, options))) await finishRewind(run, options);
      await removeNote(run, options);
    } catch (error) {
      options.notice(`the interrupted rewind of ${run} could not be finished: ${(error as Error).message}`);
    }
  }
}

/** Returns whether no living process is at work on the run. */
async function isAbandoned(run: string, { log, holderGone }: RewindOptions): Promise<boolean> {
  const lease = await log.holder(runStream(run));
  return lease === null || holderGone(lease.holder);
}

function alreadyRewinding({ run, rewinding }: RunFacts): CaissonError {
  return new CaissonError("conflict", `the run ${run} is already being rewound to step ${rewinding?.toStep}`, {
    hint: "Wait until that is done.",
    details: { rewinding: rewinding?.toStep },
  });
}

/** Throws before anything has changed if the run cannot be rewound. */
async function checkRewindable(facts: RunFacts, to: number, options: RewindOptions): Promise<void> {
  const { run, session, parent } = facts;
  const { sessions } = options;
  if (parent !== null) {
    throw new CaissonError("invalid", `the run ${run} is part of ${parent.run} and cannot be rewound alone`, {
      hint: `Rewind the whole: caisson rewind ${parent.run} --to STEP`,
    });
  }
  if (isAtFork(facts) && facts.step === to) {
    throw new CaissonError("conflict", `the run ${run} is as it was after step ${to}`, {
      hint: `Continue it: caisson send ${run} "…"`,
    });
  }
  if (!(await sessions.has(session))) {
    throw new CaissonError("gone", `the session ${session} of the run ${run} was removed, and its files with it`, {
      hint: 'Start another run: caisson run "…"',
    });
  }
  const last = (await sessions.history(session)).findLast(({ type }) => type === "session.run_started");
  if (last?.type === "session.run_started" && last.data.run !== run) {
    throw new CaissonError("conflict", `the run ${last.data.run} has worked on the same files since`, {
      hint: `Rewinding would also take back its changes. Fork instead: caisson fork ${run}@${to}`,
    });
  }
  // Plans a copy of the stored files, only to learn whether they exist and can be copied.
  await checkKeepsFiles(await sessions.get(session), options);
  await options.planFork({ session: run, at: to });
}

/** Does what `run.rewind_started` announced, from wherever it stopped, and records the outcome. */
async function finishRewind(run: string, options: RewindOptions): Promise<Rewound> {
  let held: HeldLease;
  try {
    held = await acquireWhenReleased(run, options);
  } catch (error) {
    await recordFailure(run, error, options);
    throw error;
  }
  await using _ = held;
  const { state, seq } = await foldRun(options.log, run);
  const { rewinding } = state;
  if (rewinding === null) throw new CaissonError("conflict", `another process finished the rewind of ${run}`);
  try {
    await releaseSandbox(state, options);
    await keepTail(state, seq, options);
    const files = await restore(state, options);
    options.crashpoint("rewind.restored:after");
    await recordRewound(state, { seq, lease: held.lease }, options);
    return { tail: rewinding.tail, files: files.slice(0, FILES_MAX) };
  } catch (error) {
    if (error instanceof CaissonError && isLogFailure(error)) throw error;
    await ignore(removeFork(rewinding.tail, options), "it is an ordinary fork, which the user can remove");
    await recordFailure(run, error, options);
    throw error;
  }
}

async function recordFailure(run: string, error: unknown, { log }: RewindOptions): Promise<void> {
  const text = (error instanceof CaissonError ? error.sentences : String(error)).slice(0, NOTICE_CHARACTERS_MAX);
  const append = appendUnowned(log, run, ({ rewinding }) => (rewinding === null ? null : [{ type: "run.rewind_failed", data: { text } }]), {
    alsoEnded: true,
  });
  await ignore(append, "the error itself is thrown; the next start tries again");
}

/** Creates the fork that preserves the present, unless an interrupted attempt has. */
async function keepTail(state: RunState, seq: number, options: RewindOptions): Promise<void> {
  const { run, rewinding, step, agent, model, owner, labels } = state;
  if (rewinding === null || (await options.log.lastSeq(runStream(rewinding.tail))) > 0) return;
  const forked = {
    ...{ run: rewinding.tail, from: { run, step, seq }, by: rewinding.by, agent, model, isTail: true as const },
    budgets: { ...budgetsFromLeft(state), ...defined({ steps: state.budgets.steps }) },
    ...ownedBy(owner),
    ...defined({ labels: Object.keys(labels).length === 0 ? undefined : labels }),
  };
  const files = { ...(await options.planFork({ session: run })), check: async () => undefined };
  await createFork({ forked, files, cleanup: "never" }, options);
}

/** Restores the files. An interrupted attempt may have done so already. */
async function restore({ run, rewinding }: RunState, { restoreFiles }: RewindOptions): Promise<readonly string[]> {
  try {
    return rewinding === null ? [] : await restoreFiles(run, rewinding);
  } catch (error) {
    if (error instanceof CaissonError && error.code === "not_found") return [];
    throw error;
  }
}

async function recordRewound(
  { run, rewinding }: RunState,
  { seq: afterSeq, lease }: Pick<HeldLease, "lease"> & { seq: number },
  options: RewindOptions,
): Promise<void> {
  const { log, crashpoint } = options;
  if (rewinding === null) return;
  const { state: then } = await foldRun(log, run, { toSeq: rewinding.toSeq });
  const text = `The user took this run back to its step ${rewinding.toStep}: the conversation and the workspace are as they were then. The sandbox is new: programs that ran in the old one have ended, and /tmp is empty.`;
  const events = [
    makeEvent(runEvents, { type: "run.rewound", data: { ...rewinding, model: then.model, budgets: then.budgets } }),
    makeEvent(runEvents, systemMessage(text)),
  ];
  crashpoint("run.rewound:before");
  for (let seq = afterSeq, races = 0; ; races++) {
    try {
      await log.append(runStream(run), events, { expectedSeq: seq, lease });
      break;
    } catch (error) {
      // Its labels or its health may have changed meanwhile.
      const lastSeq = error instanceof CaissonError && error.code === "conflict" ? error.details?.lastSeq : undefined;
      if (typeof lastSeq !== "number" || races >= RACES_MAX) throw error;
      seq = lastSeq;
    }
  }
  crashpoint("run.rewound:after");
}
