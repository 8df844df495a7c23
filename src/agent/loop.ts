import { CaissonError } from "../contract/error/error.ts";
import type { NewRunEvent, RunEvent } from "../contract/run/run-event.ts";
import { ignore } from "../lib/failures.ts";
import { newId } from "../lib/new-id.ts";
import { duringTurn } from "../lib/turns.ts";
import { unreachable } from "../lib/unreachable.ts";
import { callModel } from "./call-model.ts";
import { compact } from "./compact.ts";
import { decide, type StepDecision } from "./decide-step.ts";
import { endRun } from "./end-run.ts";
import { createStepEnds, type StepEnds, type StoreStep } from "./end-step.ts";
import { isLogFailure, type Journal, releasedError, rewindingError, systemMessage } from "./journal.ts";
import { type LoopClock, realClock } from "./loop-clock.ts";
import type { Model, ToolSchema } from "./model/model.ts";
import { type RunToolsOptions, runTools } from "./run-tools.ts";
import { turnOf } from "./run-turn.ts";
import type { Tool } from "./tool.ts";
import { toolSchema } from "./tool-schema.ts";

/**
 * How long an interrupted effect has to finish. After that we end its sandbox, and the effect gets as much time again.
 */
const INTERRUPTED_GRACE_MS = 10_000;
/** An agent that still loops after this many notices, even though it was asked to stop and summarize, is stuck. */
const NOTICES_MAX = 4;
/** How often a paused run checks whether its provider is back. */
const OUTAGE_LOOK_MS = 5 * 60_000;

export interface LoopOptions extends Omit<RunToolsOptions, "tools" | "signal" | "onWriting"> {
  journal: Journal;
  model: Model;
  tools: readonly Tool[];
  storeStep: StoreStep;
  /** Releases the run without ending it, for example when the program is asked to quit. */
  signal: AbortSignal;
  /** Default: real time. */
  clock?: LoopClock;
}

/**
 * Drives a run until it ends: decide, record the intent, act, record the outcome. The state is a fold of the log and
 * every decision a function of the state, so a run that lost its process continues exactly where it was. Throws
 * `cancelled` when released, `superseded` when another process took the run over or rewinds it, `unavailable` when the
 * model does not respond and the run is unattended, and errors of the log. In these cases the run stays as it is.
 */
export async function driveRun(options: LoopOptions): Promise<void> {
  const { journal, model, clock = realClock } = options;
  const tools = new Map(options.tools.map((tool) => [tool.name, tool]));
  const schemas = options.tools.map(toolSchema);
  const steps = createStepEnds(journal, options.storeStep);
  while (journal.state.status !== "ended") {
    if (options.signal.aborted) throw releasedError(options.signal, journal.state.run);
    if (journal.state.rewinding !== null) throw rewindingError(journal.state.run);
    const heardCount = journal.countUnowned();
    const turn = turnOf(journal.state);
    const decision = duringTurn(turn, () => decide(journal.state, { contextTokens: model.contextTokens }));
    using effect = interruptible({ journal, clock });
    try {
      const context = {
        ...options,
        clock,
        tools,
        schemas,
        steps,
        onWriting: steps.noteTool,
        signal: effect.signal,
        releaseSignal: options.signal,
        heard: heardCount,
      };
      const performing = duringTurn(turn, () => perform(decision, context));
      await unlessReleased(unlessStuck(performing, effect.signal, options), options.signal, journal.state.run);
    } catch (error) {
      // Another writer appended an event first. It is part of the state now and may change the decision.
      if (error instanceof CaissonError && error.details?.heard !== undefined) continue;
      if (!(error instanceof CaissonError) || isLogFailure(error) || options.signal.aborted) throw error;
      if (error.details?.paused === true) throw error;
      await endRun(options, { reason: "error", text: error.sentences });
    }
  }
}

/**
 * Gives an interrupted effect time to finish, then ends its sandbox from the host, so a lost sandbox cannot block the
 * run. Throws `timeout` if the effect does not finish even then.
 */
async function unlessStuck(performing: Promise<void>, interrupted: AbortSignal, options: Pick<LoopOptions, "onLost">): Promise<void> {
  const stuck = Promise.withResolvers<never>();
  void ignore(stuck.promise, "awaited in the race below");
  let timer: NodeJS.Timeout | undefined;
  const give = (graceMs: number, then: () => void) => {
    timer = setTimeout(then, graceMs);
  };
  const endSandbox = () => {
    const error = new CaissonError("timeout", "the call was interrupted but did not finish", { hint: "Its sandbox was ended." });
    give(INTERRUPTED_GRACE_MS, () => stuck.reject(error));
    void ignore(options.onLost(error), "the call fails with this error after the grace period");
  };
  const watch = () => give(INTERRUPTED_GRACE_MS, endSandbox);
  interrupted.addEventListener("abort", watch, { once: true });
  if (interrupted.aborted) watch();
  try {
    await Promise.race([performing, stuck.promise]);
  } finally {
    clearTimeout(timer);
    interrupted.removeEventListener("abort", watch);
  }
}

/**
 * Stops waiting for an effect when the run is released. Unlike an interruption this harms nothing: a running command
 * continues inside, unrecorded, until the next holder attaches to it. The journal accepts no more events from the old
 * holder.
 */
async function unlessReleased(performing: Promise<void>, signal: AbortSignal, run: string): Promise<void> {
  const released = Promise.withResolvers<never>();
  const release = () => released.reject(releasedError(signal, run));
  signal.addEventListener("abort", release, { once: true });
  if (signal.aborted) release();
  void ignore(performing, "a released call continues unobserved");
  void ignore(released.promise, "awaited in the race below");
  try {
    await Promise.race([performing, released.promise]);
  } finally {
    signal.removeEventListener("abort", release);
  }
}

interface Performing extends RunToolsOptions {
  /** Fires when the run is released, and ends what cannot be continued later: the model's answer, and waiting. */
  releaseSignal: AbortSignal;
  /** `Journal.countUnowned()` at the time of the decision. */
  heard: number;
  model: Model;
  schemas: readonly ToolSchema[];
  steps: StepEnds;
  clock: LoopClock;
}

async function perform(decision: StepDecision, options: Performing): Promise<void> {
  const { journal } = options;
  const either = () => AbortSignal.any([options.signal, options.releaseSignal]);
  switch (decision.kind) {
    case "model":
      // The model needs no files, so storing them costs no time. The next step's tools wait for both.
      return await bothOf(
        options.steps.end(),
        callModel({ ...options, signal: either(), tools: options.schemas, messages: decision.messages }),
      );
    case "tools":
      return await runTools(decision.calls, options);
    case "compact":
      return await compact({ ...options, signal: either() });
    case "wait":
      return void (await ignore(journal.waitForUnowned(either()), "the loop checks the signals"));
    case "waitOut":
      return await waitOut(options, decision.text);
    case "continue":
      return await journal.append([{ type: "run.continued", data: { by: "answer" } }]);
    case "askBudget":
      return await journal.append(question({ kind: "budget", why: "budget", text: decision.text }));
    case "notice":
      return await notice(options, decision.noticed);
    case "answerMissing":
      return await journal.append([systemMessage("Your last answer was empty. Say what you found, or continue with a tool call.")]);
    case "end":
      await options.steps.end();
      return await endRun(options, { reason: decision.reason, text: decision.text, ifHeard: options.heard });
    default:
      unreachable(decision);
  }
}

/** Waits for both even if one fails, and throws the error of the second one first. */
async function bothOf(first: Promise<void>, second: Promise<void>): Promise<void> {
  const [one, other] = await Promise.allSettled([first, second]);
  for (const outcome of [other, one]) if (outcome.status === "rejected") throw outcome.reason;
}

/**
 * Keeps the run paused and checks the model now and then; a user may resume it earlier. An unattended run is released
 * instead: its starter gets the error and resumes it later.
 */
async function waitOut(options: Performing, text: string): Promise<void> {
  const { journal } = options;
  const { run, definition } = journal.state;
  if (definition.harness.onAsk === "deny") {
    throw new CaissonError("unavailable", `run ${run} is paused: ${text}`, {
      hint: `Continue it with \`caisson resume ${run}\`.`,
      details: { paused: true },
    });
  }
  const over = new AbortController();
  const either = AbortSignal.any([options.signal, options.releaseSignal, over.signal]);
  const changed = ignore(journal.waitForUnowned(either), "the loop checks the signals");
  const due = ignore(
    options.clock.pause(OUTAGE_LOOK_MS, either).then(() => "due" as const),
    "the loop checks the signals",
  );
  const first = await Promise.race([changed, due]);
  over.abort();
  if (first === "due") await journal.append([{ type: "run.continued", data: { by: "retry" } }]);
}

async function notice(options: Performing, noticed: Extract<StepDecision, { kind: "notice" }>["noticed"]): Promise<void> {
  const { journal } = options;
  const { text, pattern } = noticed;
  const loopEvent = (action: "nudged" | "summarised" | "paused" | "failed"): NewRunEvent => ({
    type: "loop.noticed",
    data: { pattern, action, text },
  });
  // Each pair of events is one append: after a crash in between, the log would have a notice that the agent never saw.
  if (!noticed.again) {
    const words = `${text}. This is not making progress. Say what you expected and what happened instead, then try something different.`;
    return await journal.append([loopEvent("nudged"), systemMessage(words)]);
  }
  const { doomLoop, onAsk } = journal.state.definition.harness;
  const heedless = (journal.state.noticed?.times ?? 0) >= NOTICES_MAX;
  if (doomLoop.action === "fail" || (doomLoop.action === "pause" && onAsk === "deny") || (doomLoop.action === "summarize" && heedless)) {
    await journal.append([loopEvent("failed")]);
    return await endRun(options, { reason: "stuck", text });
  }
  if (doomLoop.action === "pause") {
    return await journal.append([loopEvent("paused"), ...question({ kind: "stuck", why: "stuck", text: `${text}. Let it continue?` })]);
  }
  const words = `${text}. Stop trying this. Summarize what you tried and why it failed, then choose another approach, or end with what is missing.`;
  await journal.append([loopEvent("summarised"), systemMessage(words)]);
}

function question(options: { kind: "budget" | "stuck"; why: "budget" | "stuck"; text: string }): NewRunEvent[] {
  return [
    { type: "permission.asked", data: { question: newId("ask"), call: null, kind: options.kind, text: options.text, pattern: null } },
    { type: "run.paused", data: { why: options.why, text: options.text } },
  ];
}

/**
 * Returns a signal for one effect. It fires when a person interrupts or stops the run, and when the run's time is up.
 * The code that performs the effect records what it did until then.
 */
function interruptible({ journal, clock }: { journal: Journal; clock: LoopClock }): { signal: AbortSignal } & Disposable {
  const controller = new AbortController();
  const fire = () => controller.abort();
  const stopListening = journal.onForeign((event: RunEvent) => {
    if (event.type === "run.stop_requested" || event.type === "run.paused" || event.type === "run.rewind_started") fire();
    if (event.type === "message.received" && event.data.mode === "interrupt") fire();
  });
  const { state } = journal;
  const leftMs = (state.budgets.timeMs ?? state.definition.harness.timeoutMs) - state.workedMs;
  const stopTimer = state.clock.counting && leftMs > 0 ? clock.after(leftMs, fire) : undefined;
  return {
    signal: controller.signal,
    [Symbol.dispose]() {
      stopListening();
      stopTimer?.();
    },
  };
}
