import { type BudgetKind, exceededBudget } from "../../agent/decide-step.ts";
import { systemMessage } from "../../agent/journal.ts";
import { applyEvent, type RunState } from "../../agent/run-state.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { makeEvent } from "../../contract/event/event-family.ts";
import type { Budgets } from "../../contract/run/run.ts";
import { type NewRunEvent, type RunReopened, runEvents } from "../../contract/run/run-event.ts";
import { isAtFork, type RunFacts } from "../../contract/run/run-facts.ts";
import { defined } from "../../lib/defined.ts";
import { newId } from "../../lib/new-id.ts";
import { storePoint } from "../sessions/stored-points.ts";
import { headOfRun } from "../vocabulary/head-of-run.ts";
import { refuseRewinding } from "../vocabulary/refuse-rewinding.ts";
import { runStream } from "../vocabulary/station-names.ts";
import type { RunsOptions } from "./drive.ts";
import { foldRun } from "./owned-journal.ts";
import { acquireWhenReleased, releaseSandbox } from "./release-run.ts";
import { turnsOf } from "./run-turns.ts";

export interface ReopenRun extends Omit<(typeof RunReopened)["shape"]["data"]["_output"], "budgets" | "lostName"> {
  /** The message to the run. Without one, it continues where it was. */
  text?: string;
  /** Computes new budgets for the whole run from its spending so far. Omitted budgets stay the same. */
  budgets: (facts: RunFacts) => Budgets;
  /** Set if a station should drive it as soon as there is room. */
  queuedFor?: "resume" | "continue";
}

/**
 * Reopens a run that has ended, or a fork that waits for its first message. One append under the run's lease adds the
 * reopening and the message, so no other process can still be storing files while the run continues. The run has no
 * driver yet. Resolves with the sequence number of the last of these events. If it throws, nothing has changed:
 * `conflict` if the run has not ended, if it is done and gets no new message, if its bounds still apply, or if its
 * session is in use; `invalid` for a sub-run; `gone` if its session was removed; and the errors of the model lookup.
 */
export async function reopenRun(run: string, request: ReopenRun, options: RunsOptions & { holder: string }): Promise<number> {
  const { log, sessions, crashpoint } = options;
  checkReopenable(run, (await headOfRun(log, run)).facts, request);
  await using held = await acquireWhenReleased(run, options);
  const { state, seq } = await foldRun(log, run);
  checkReopenable(run, state, request);
  // Its last driver may have died before it stored everything.
  await releaseSandbox(state, options);
  if (!(await sessions.has(state.session))) {
    throw new CaissonError("gone", `the session ${state.session} of the run ${run} was removed, and its files with it`, {
      hint: 'Start another run: caisson run "…"',
    });
  }
  await sessions.checkFree(state.session);
  await using name = await keptName(state, options);
  const events = reopenEvents(state, request, { isUndone: await isLastTurnUndone(state, options), lostName: name?.lost });
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
    throw new CaissonError("invalid", `the run ${run} is part of ${facts.parent.run} and continues only with it`, {
      hint: `Continue the parent: caisson send ${facts.parent.run} "…"`,
    });
  }
  refuseRewinding({ run, rewinding: facts.rewinding });
  if (facts.status !== "ended" && !(isAtFork(facts) && text !== undefined)) {
    throw new CaissonError("conflict", `the run ${run} has not ended`, {
      hint: `Send the message to the active run: caisson send ${run} "…"`,
    });
  }
  if (text === undefined && facts.finish === "done") {
    throw new CaissonError("conflict", `the run ${run} is done, and there is nothing to resume`, {
      hint: `Send the next message: caisson send ${run} "…"`,
      details: { finish: facts.finish },
    });
  }
}

/** Stores the files as they are now, so that the changes of the next turn can be undone. */
async function keepFiles(state: RunState, turnSeq: number, options: RunsOptions): Promise<void> {
  const { sessions } = options;
  await using _ = await sessions.lock(state.session, state.run);
  const session = await sessions.get(state.session);
  // It never had a sandbox.
  if (session.runtime === null) return;
  const runtime = await options.runtime(session.runtime);
  await storePoint(session, { run: state.run, turnSeq }, { sessions, runtime });
}

async function isLastTurnUndone({ run, session }: RunState, { log, sessions }: RunsOptions): Promise<boolean> {
  const last = (await turnsOf(log, run)).at(-1);
  const history = await sessions.history(session);
  return history.some((event) => event.type === "session.undone" && event.data.run === run && event.data.turnSeq === last?.seq);
}

/** Claims the run's name again. If another thing got the name after the run ended, the run loses it. */
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

function reopenEvents(
  state: RunState,
  { text, budgets, queuedFor, ...about }: ReopenRun,
  { isUndone, lostName }: { isUndone: boolean; lostName: string | undefined },
): NewRunEvent[] {
  const continuation = text === undefined ? "It continues now." : "A new message continues it.";
  const files = isUndone
    ? "The user undid the file changes of your last turn: the workspace is as it was before that turn."
    : "The workspace files are as you left them.";
  const note = `This run had ended (${state.finish}). ${continuation} ${files} The sandbox is new: programs that ran in the old one have ended, and /tmp is empty.`;
  return [
    { type: "run.reopened", data: { ...about, budgets: budgets(state), ...defined({ lostName }) } },
    ...(queuedFor === undefined
      ? []
      : [{ type: "run.queued" as const, data: { by: about.by, for: queuedFor, priority: state.priority, startAt: null } }]),
    // A fork was already told what it is.
    ...(isAtFork(state) ? [] : [systemMessage(note)]),
    ...(text === undefined
      ? []
      : [{ type: "message.received" as const, data: { message: newId("msg"), source: "user" as const, mode: "steer" as const, text } }]),
  ];
}

const optionFor: Record<BudgetKind, string> = { steps: "--max-steps", time: "--timeout", tokens: "--max-tokens", cost: "--max-cost" };

/** Throws if a bound would end the run again at once. */
function checkBounds(run: string, state: RunState): void {
  const reached = exceededBudget(state);
  if (reached === null) return;
  throw new CaissonError("conflict", `a bound of the run ${run} still applies: ${reached.text.replace(/\.$/, "")}`, {
    hint: `Raise it with ${optionFor[reached.budget]}.`,
    details: { budget: reached.budget },
  });
}
