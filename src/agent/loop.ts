import { setTimeout as delay } from "node:timers/promises";
import { CaissonError } from "../contract/error.ts";
import type { NewRunEvent, RunEvent } from "../contract/run-event.ts";
import { newId } from "../lib/new-id.ts";
import { duringTurn } from "../lib/turns.ts";
import { unreachable } from "../lib/unreachable.ts";
import { callModel } from "./call-model.ts";
import { compact } from "./compact.ts";
import { type Decision, decide } from "./decide-step.ts";
import { endRun } from "./end-run.ts";
import { isLogFailure, type Journal, letGoError, systemMessage } from "./journal.ts";
import type { Model, ToolSchema } from "./model/model.ts";
import { type RunToolsOptions, runTools } from "./run-tools.ts";
import { turnOf } from "./run-turn.ts";
import type { Tool } from "./tool.ts";
import { toolSchema } from "./tool-schema.ts";

/**
 * How long an effect that was interrupted may take to end by itself; then its sandbox is ended, and it has as long
 * again.
 */
const INTERRUPTED_GRACE_MS = 10_000;
/** An agent that was told to stop and summarise, and goes on in its circle, is stuck at the latest now. */
const NOTICES_MAX = 4;
/** How often a provider that was given up is looked for again while the run is paused. */
const OUTAGE_LOOK_MS = 5 * 60_000;

export interface LoopOptions extends Omit<RunToolsOptions, "tools" | "signal"> {
  journal: Journal;
  model: Model;
  tools: readonly Tool[];
  /** Lets go of the run without ending it, as when the program is asked to quit. */
  signal: AbortSignal;
}

/**
 * Drives a run to its end: look at the state, decide, say what is going to be done, do it, say what came out. The state
 * is a fold of the log and every decision a function of it, so a run that lost its process goes on here exactly where
 * it was. Throws `cancelled` when let go, `superseded` when another process took the run over, `unavailable` when its
 * model does not answer and nobody is there to wait for it, and what the log throws; the run stays as it is then.
 */
export async function driveRun(options: LoopOptions): Promise<void> {
  const { journal, model } = options;
  const tools = new Map(options.tools.map((tool) => [tool.name, tool]));
  const schemas = options.tools.map(toolSchema);
  while (journal.state.status !== "ended") {
    if (options.signal.aborted) throw letGoError(options.signal, journal.state.run);
    const heard = journal.heard();
    const turn = turnOf(journal.state);
    const decision = duringTurn(turn, () => decide(journal.state, { contextTokens: model.contextTokens }));
    using effect = interruptible(options);
    try {
      const given = { ...options, tools, schemas, signal: effect.signal, letGo: options.signal, heard };
      const performing = duringTurn(turn, () => perform(decision, given));
      await unlessLetGo(unlessStuck(performing, effect.signal, options), options.signal, journal.state.run);
    } catch (error) {
      // Somebody said something before it was over: that is part of the state, and may lead to another decision.
      if (error instanceof CaissonError && error.details?.heard !== undefined) continue;
      if (!(error instanceof CaissonError) || isLogFailure(error) || options.signal.aborted) throw error;
      if (error.details?.paused === true) throw error;
      await endRun(options, { reason: "error", text: error.sentences });
    }
  }
}

/**
 * What was interrupted ends soon, or is ended by the host's own means: a sandbox that is gone keeps nobody waiting.
 * Throws `timeout` for an effect that does not end even then.
 */
async function unlessStuck(performing: Promise<void>, interrupted: AbortSignal, options: Pick<LoopOptions, "onLost">): Promise<void> {
  const stuck = Promise.withResolvers<never>();
  stuck.promise.catch(() => undefined);
  let timer: NodeJS.Timeout | undefined;
  const give = (graceMs: number, then: () => void) => {
    timer = setTimeout(then, graceMs);
  };
  const endSandbox = () => {
    const error = new CaissonError("timeout", "the call was interrupted and did not end", { hint: "Its sandbox was ended." });
    give(INTERRUPTED_GRACE_MS, () => stuck.reject(error));
    options.onLost(error).catch(() => undefined);
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
 * Being let go is not being interrupted: a running command goes on inside, unrecorded and unharmed, for the next owner
 * to attach to. The journal takes nothing more from the one who was let go.
 */
async function unlessLetGo(performing: Promise<void>, signal: AbortSignal, run: string): Promise<void> {
  const released = Promise.withResolvers<never>();
  const release = () => released.reject(letGoError(signal, run));
  signal.addEventListener("abort", release, { once: true });
  if (signal.aborted) release();
  performing.catch(() => undefined);
  released.promise.catch(() => undefined);
  try {
    await Promise.race([performing, released.promise]);
  } finally {
    signal.removeEventListener("abort", release);
  }
}

interface Performing extends RunToolsOptions {
  /** Ends what nobody can go on with later: the model's answer, and waiting. */
  letGo: AbortSignal;
  /** Of others, when it was decided. */
  heard: number;
  model: Model;
  schemas: readonly ToolSchema[];
}

async function perform(decision: Decision, options: Performing): Promise<void> {
  const { journal } = options;
  const either = () => AbortSignal.any([options.signal, options.letGo]);
  switch (decision.kind) {
    case "model":
      return await callModel({ ...options, signal: either(), tools: options.schemas, messages: decision.messages });
    case "tools":
      return await runTools(decision.calls, options);
    case "compact":
      return await compact({ ...options, signal: either() });
    case "wait":
      return await journal.changed(either()).catch(() => undefined);
    case "waitOut":
      return await waitOut(options, decision.text);
    case "continue":
      return await journal.append([{ type: "run.continued", data: { by: "answer" } }]);
    case "askBudget":
      return await journal.append(question({ kind: "budget", why: "budget", text: decision.text }));
    case "notice":
      return await notice(options, decision.noticed);
    case "answerMissing":
      return await journal.append([systemMessage("Your last answer was empty. Say what you found, or go on with a tool call.")]);
    case "end":
      return await endRun(options, { reason: decision.reason, text: decision.text, ifHeard: options.heard });
    default:
      unreachable(decision);
  }
}

/**
 * The run stays paused and is asked about again now and then, or goes on at once when somebody resumes it. Where nobody
 * is there to see it, it is let go of instead: whoever started it learns that, and resumes it later.
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
  const either = AbortSignal.any([options.signal, options.letGo, over.signal]);
  const changed = journal.changed(either).catch(() => undefined);
  const due = delay(OUTAGE_LOOK_MS, "due" as const, { signal: either }).catch(() => undefined);
  const first = await Promise.race([changed, due]);
  over.abort();
  if (first === "due") await journal.append([{ type: "run.continued", data: { by: "retry" } }]);
}

async function notice(options: Performing, noticed: Extract<Decision, { kind: "notice" }>["noticed"]): Promise<void> {
  const { journal } = options;
  const { text, pattern } = noticed;
  const happened = (action: "nudged" | "summarised" | "paused" | "failed"): NewRunEvent => ({
    type: "loop.noticed",
    data: { pattern, action, text },
  });
  // One append each: a crash in between would leave a loop that was noticed and never spoken of.
  if (!noticed.again) {
    const words = `${text}. This does not lead further. Say what you expected and what happened instead, then try something different.`;
    return await journal.append([happened("nudged"), systemMessage(words)]);
  }
  const { doomLoop, onAsk } = journal.state.definition.harness;
  const heedless = (journal.state.noticed?.times ?? 0) >= NOTICES_MAX;
  if (doomLoop.action === "fail" || (doomLoop.action === "pause" && onAsk === "deny") || (doomLoop.action === "summarize" && heedless)) {
    await journal.append([happened("failed")]);
    return await endRun(options, { reason: "stuck", text });
  }
  if (doomLoop.action === "pause") {
    return await journal.append([happened("paused"), ...question({ kind: "stuck", why: "stuck", text: `${text}. Let it go on?` })]);
  }
  const words = `${text}. Stop trying this. Summarise what was tried and why it failed, then choose another way, or end with what is missing.`;
  await journal.append([happened("summarised"), systemMessage(words)]);
}

function question(options: { kind: "budget" | "stuck"; why: "budget" | "stuck"; text: string }): NewRunEvent[] {
  return [
    { type: "permission.asked", data: { question: newId("ask"), call: null, kind: options.kind, text: options.text, pattern: null } },
    { type: "run.paused", data: { why: options.why, text: options.text } },
  ];
}

/**
 * A signal for one effect: fires when a person interrupts or stops the run, and when its time is up. What the effect
 * did until then is recorded by whoever performs it.
 */
function interruptible(options: LoopOptions): { signal: AbortSignal } & Disposable {
  const { journal } = options;
  const controller = new AbortController();
  const fire = () => controller.abort();
  const stopListening = journal.onForeign((event: RunEvent) => {
    if (event.type === "run.stop_requested" || event.type === "run.paused") fire();
    if (event.type === "message.received" && event.data.mode === "interrupt") fire();
  });
  const { state } = journal;
  const leftMs = (state.budgets.timeMs ?? state.definition.harness.timeoutMs) - state.workedMs;
  const timer = state.clock.counting && leftMs > 0 ? setTimeout(fire, Math.min(leftMs, 2 ** 31 - 1)) : undefined;
  return {
    signal: controller.signal,
    [Symbol.dispose]() {
      stopListening();
      clearTimeout(timer);
    },
  };
}
