import { setTimeout as delay } from "node:timers/promises";
import { type BudgetKind, exceededBudget } from "../../agent/decide-step.ts";
import { systemMessage } from "../../agent/journal.ts";
import { applyEvent, type RunState } from "../../agent/run-state.ts";
import { CaissonError } from "../../contract/error.ts";
import { makeEvent } from "../../contract/event-family.ts";
import type { Budgets } from "../../contract/run.ts";
import { type NewRunEvent, type RunReopened, runEvents } from "../../contract/run-event.ts";
import type { RunFacts } from "../../contract/run-facts.ts";
import { defined } from "../../lib/defined.ts";
import { newId } from "../../lib/new-id.ts";
import type { HeldLease } from "../../log/hold-lease.ts";
import { ifUnusable } from "../../workspace/sessions.ts";
import { keepRestorePoint } from "../sessions/restore-points.ts";
import type { RunsOptions } from "./drive.ts";
import { finishRun } from "./finish-runs.ts";
import { headOfRun, runStream } from "./head-of-run.ts";
import { foldRun } from "./owned-journal.ts";
import { acquireRun, isGone } from "./ownership.ts";
import { turnsOf } from "./run-turns.ts";

/** How long the last owner of a run that has ended may take to put its files away. */
const FINISH_MS_MAX = 60_000;
const FINISH_POLL_MS = 50;

export interface ReopenRun extends Omit<(typeof RunReopened)["shape"]["data"]["_output"], "budgets" | "lostName"> {
  /** What is said to it; absent: it goes on where it was. */
  text?: string;
  /** The whole run's bounds from here on, by what it has spent. Those that are not given stay. */
  budgets: (facts: RunFacts) => Budgets;
  /** Where a station is to drive it, when there is room. */
  queuedFor?: "resume" | "continue";
}

/**
 * Lets a run that has ended go on: its events get the reopening and what is said with it in one append, under the run's
 * lease, so that there is no moment at which somebody still puts away what somebody else goes on with. Nobody drives it
 * yet. Resolves with the sequence number of the last of these events: what is said, if anything. Nothing changes when
 * it throws: `conflict` for a run that has not ended, that is done and is told nothing new, whose bounds still hold, or
 * whose session is in use; `invalid` for a sub-run; `gone` when its session was removed; what a model throws that
 * cannot be used.
 */
export async function reopenRun(run: string, request: ReopenRun, options: RunsOptions & { owner: string }): Promise<number> {
  const { log, sessions, crashpoint } = options;
  checkReopenable(run, (await headOfRun(log, run)).facts, request);
  await using held = await whenPutAway(run, options);
  const { state, seq } = await foldRun(log, run);
  checkReopenable(run, state, request);
  // Its owner may have died before it put everything away.
  await putAway(state, options);
  if (!(await sessions.has(state.session))) {
    throw new CaissonError("gone", `the session ${state.session} of the run ${run} was removed, and its files with it`, {
      hint: 'Start another: caisson run "…"',
    });
  }
  await sessions.checkFree(state.session);
  await using name = await keptName(state, options);
  const events = reopening(state, request, { isUndone: await isLastTurnUndone(state, options), lostName: name?.lost });
  const at = new Date().toISOString();
  for (const event of events) applyEvent(state, makeEvent(runEvents, event, at));
  checkBounds(run, state);
  await options.model(state.model);
  if (request.text !== undefined) await keepFiles(state, seq + 1, options);
  crashpoint("run.reopened:before");
  await log.append(
    runStream(run),
    events.map((event) => makeEvent(runEvents, event, at)),
    { expectedSeq: seq, lease: held.lease },
  );
  crashpoint("run.reopened:after");
  return seq + events.length;
}

function checkReopenable(run: string, facts: RunFacts, { text }: ReopenRun): void {
  if (facts.parent !== null) {
    throw new CaissonError("invalid", `the run ${run} is part of ${facts.parent.run}, and continues only with it`, {
      hint: `Continue that one: caisson send ${facts.parent.run} "…"`,
    });
  }
  if (facts.status !== "ended") {
    throw new CaissonError("conflict", `the run ${run} has not ended`, { hint: `Say it to the running one: caisson send ${run} "…"` });
  }
  if (text === undefined && facts.finish === "done") {
    throw new CaissonError("conflict", `the run ${run} is done, and there is nothing to resume`, {
      hint: `Say what is next: caisson send ${run} "…"`,
      details: { finish: facts.finish },
    });
  }
}

/** Becomes the run's owner once the last one has put away what the run left. */
async function whenPutAway(run: string, options: RunsOptions & { owner: string }): Promise<HeldLease> {
  const ownerGone = (other: string) => isGone(options, other);
  for (const startMs = performance.now(); ; await delay(FINISH_POLL_MS)) {
    try {
      return await acquireRun(run, { ...options, ownerGone });
    } catch (error) {
      const isHeld = error instanceof CaissonError && error.code === "conflict";
      if (!isHeld || performance.now() - startMs > FINISH_MS_MAX) throw error;
    }
  }
}

async function putAway(state: RunState, options: RunsOptions): Promise<void> {
  const session = await options.sessions.get(state.session).catch(ifUnusable);
  const name = session?.runtime ?? state.sandbox?.runtime;
  // No sandbox was ever made for it.
  if (name === undefined || name === null) return;
  await finishRun(state, { ...options, runtime: await options.runtime(name) });
}

/** What the turn that begins now changes can be taken back. */
async function keepFiles(state: RunState, turnSeq: number, options: RunsOptions): Promise<void> {
  const { sessions } = options;
  await using _ = await sessions.lock(state.session, state.run);
  const session = await sessions.get(state.session);
  // No sandbox was ever on it.
  if (session.runtime === null) return;
  const runtime = await options.runtime(session.runtime);
  await keepRestorePoint(session, { run: state.run, turnSeq }, { sessions, runtime });
}

async function isLastTurnUndone({ run, session }: RunState, { log, sessions }: RunsOptions): Promise<boolean> {
  const last = (await turnsOf(log, run)).at(-1);
  const history = await sessions.history(session);
  return history.some((event) => event.type === "session.undone" && event.data.run === run && event.data.turnSeq === last?.seq);
}

/** A name may have been given to something else since the run ended: that keeps it. */
async function keptName({ name, session, owner }: RunState, options: RunsOptions): Promise<KeptName | null> {
  if (name === null) return null;
  try {
    const claim = await options.claimName(name, { owner, ownSession: session });
    return { lost: undefined, [Symbol.asyncDispose]: () => claim[Symbol.asyncDispose]() };
  } catch (error) {
    if (!(error instanceof CaissonError) || (error.code !== "exists" && error.code !== "conflict")) throw error;
    return { lost: name, [Symbol.asyncDispose]: async () => undefined };
  }
}

interface KeptName extends AsyncDisposable {
  lost: string | undefined;
}

function reopening(
  state: RunState,
  { text, budgets, queuedFor, ...about }: ReopenRun,
  { isUndone, lostName }: { isUndone: boolean; lostName: string | undefined },
): NewRunEvent[] {
  const goesOn = text === undefined ? "It goes on now." : "A message continues it.";
  const files = isUndone
    ? "The user took back what your last turn changed in files: the workspace is as it was before it."
    : "The files of the workspace are as they were left.";
  const note = `This run had ended (${state.finish}). ${goesOn} ${files} The sandbox is a new one: programs that ran in it, and what was installed or written outside the workspace, may be gone.`;
  return [
    { type: "run.reopened", data: { ...about, budgets: budgets(state), ...defined({ lostName }) } },
    ...(queuedFor === undefined
      ? []
      : [{ type: "run.queued" as const, data: { by: about.by, for: queuedFor, priority: state.priority, startAt: null } }]),
    systemMessage(note),
    ...(text === undefined
      ? []
      : [{ type: "message.received" as const, data: { message: newId("msg"), source: "user" as const, mode: "steer" as const, text } }]),
  ];
}

const optionFor: Record<BudgetKind, string> = { steps: "--max-steps", time: "--timeout", tokens: "--max-tokens", cost: "--max-cost" };

/** A run whose bound still holds would end again at once. */
function checkBounds(run: string, state: RunState): void {
  const reached = exceededBudget(state);
  if (reached === null) return;
  throw new CaissonError("conflict", `a bound of the run ${run} still holds: ${reached.text.replace(/\.$/, "")}`, {
    hint: `Raise it with ${optionFor[reached.budget]}.`,
    details: { budget: reached.budget },
  });
}
