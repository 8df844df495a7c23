import { CaissonError } from "../contract/error.ts";
import { checkValue, tellProblems } from "../contract/plain-problems.ts";
import type { NewRunEvent } from "../contract/run-event.ts";
import { newId } from "../lib/new-id.ts";
import { duringTurn } from "../lib/turns.ts";
import { isUnresponsive } from "../sandbox/guest/waits.ts";
import { interruptible } from "../sandbox/interruptible.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { askHooks, type HookFunction } from "./hooks.ts";
import { isLogFailure, type Journal } from "./journal.ts";
import { permissionFor } from "./permissions.ts";
import type { RunNetwork } from "./run-network.ts";
import { turnOf } from "./run-turn.ts";

import type { History, Tool, ToolContext, ToolResult } from "./tool.ts";
import type { ToolCallState } from "./tool-call-state.ts";

export interface RunToolsOptions {
  journal: Journal;
  tools: ReadonlyMap<string, Tool>;
  /** Gives the run's sandbox, started or found again. */
  sandbox: () => Promise<Sandbox>;
  /** The sandbox died under a call: the next `sandbox()` is another one. Resolves with what became of the files. */
  onLost: (error: CaissonError) => Promise<"kept" | "gone">;
  hooks: { before: readonly HookFunction[]; after: readonly HookFunction[] };
  history: History;
  network: RunNetwork;
  signal: AbortSignal;
  crashpoint: (name: string) => void;
}

type Prepared =
  | { kind: "run"; call: ToolCallState; tool: Tool; args: unknown }
  | { kind: "answered"; events: NewRunEvent[] }
  | { kind: "asked"; events: NewRunEvent[] };

/**
 * Runs what the model asked for, in its order; calls that only read go side by side. Returns early when a person has to
 * be asked: the answer may take days, and the loop comes back here with it.
 */
export async function runTools(calls: readonly ToolCallState[], options: RunToolsOptions): Promise<void> {
  let group: Extract<Prepared, { kind: "run" }>[] = [];
  const runGroup = async () => {
    const now = group;
    group = [];
    await Promise.all(now.map((prepared) => runOne(prepared, options)));
  };
  for (const call of calls) {
    const prepared = await prepareInLiveSandbox(call, options);
    if (prepared.kind === "run") {
      if (!prepared.tool.parallel) await runGroup();
      if (options.signal.aborted) break;
      group.push(prepared);
      if (!prepared.tool.parallel) await runGroup();
      continue;
    }
    await runGroup();
    await options.journal.append(prepared.events);
    if (prepared.kind === "asked") return;
  }
  await runGroup();
}

/**
 * A sandbox that dies under a hook is replaced, and the hooks are asked again: nothing of the call itself has happened.
 */
async function prepareInLiveSandbox(call: ToolCallState, options: RunToolsOptions): Promise<Prepared> {
  try {
    return await prepare(call, options);
  } catch (error) {
    if (!(error instanceof CaissonError) || error.code !== "lost") throw error;
    await options.onLost(error);
    return await prepare(call, options);
  }
}

async function prepare(call: ToolCallState, options: RunToolsOptions): Promise<Prepared> {
  if (call.abandoned) return abandoned(call);
  const tool = options.tools.get(call.name);
  if (!tool)
    return answered(call, "error", `There is no tool ${JSON.stringify(call.name)}. There are: ${[...options.tools.keys()].join(", ")}.`);
  if (call.badArguments !== undefined) {
    return answered(call, "error", `The arguments of ${call.name} were not JSON: ${call.badArguments.slice(0, 300)}`);
  }
  const parsed = checkValue(tool.parameters, call.arguments);
  if (!parsed.success) return answered(call, "error", `The arguments of ${call.name} do not fit: ${tellProblems(parsed.problems)}`);
  const run: Prepared = { kind: "run", call, tool, args: parsed.data };
  // Begun by an earlier owner: it was permitted then, and asking again would be asking about the past.
  if (call.status === "started") return run;
  const about = { subject: tool.subject(parsed.data), once: tool.asksEachTime === true };
  const refused = duringTurn(turnOf(options.journal.state), () => permission(call, about, options.journal));
  if (refused) return refused;
  const verdict = await askHooks({
    call: { when: "before", call: call.call, tool: call.name, arguments: call.arguments },
    commands: options.journal.state.definition.hooks.before,
    functions: options.hooks.before,
    sandbox: await options.sandbox(),
    ref: (suffix) => `${options.journal.state.run}:${call.call}:${suffix}`,
  });
  if (verdict.kind === "block") return answered(call, "blocked", `A hook blocked this call: ${verdict.reason}`);
  if (verdict.kind === "interrupt") {
    return {
      kind: "answered",
      events: [
        ended(call, "blocked", `A hook stopped the run: ${verdict.reason}`),
        { type: "run.stop_requested", data: { by: `hook: ${verdict.reason.slice(0, 500)}` } },
      ],
    };
  }
  return run;
}

function permission(call: ToolCallState, about: { subject: string; once: boolean }, journal: Journal): Prepared | null {
  const { state } = journal;
  const { subject } = about;
  const question = call.question === null ? undefined : state.questions.get(call.question);
  if (question?.answer) {
    if (question.answer.answer !== "deny") return null;
    return answered(call, "denied", `A person said no${question.answer.text ? `: ${question.answer.text}` : "."}`);
  }
  const { permissions, floor } = state.definition;
  const rule = permissionFor(subject, { own: permissions, floor, always: state.always });
  if (rule.permission === "allow") return null;
  if (rule.permission === "deny") return answered(call, "denied", `The rule ${JSON.stringify(rule.pattern)} denies ${short(subject)}.`);
  if (state.definition.harness.onAsk === "deny") {
    return answered(
      call,
      "denied",
      `The rule ${JSON.stringify(rule.pattern)} wants a person to be asked about ${short(subject)}, and nobody is there.`,
    );
  }
  const text = `May ${state.definition.name} do this? ${short(subject)}`;
  return {
    kind: "asked",
    events: [
      {
        type: "permission.asked",
        data: { question: newId("ask"), call: call.call, kind: "tool", text, pattern: about.once ? null : rule.pattern },
      },
      { type: "run.paused", data: { why: "permission", text } },
    ],
  };
}

async function runOne(prepared: Extract<Prepared, { kind: "run" }>, options: RunToolsOptions): Promise<void> {
  const { journal } = options;
  const { call, tool, args } = prepared;
  const resumed = call.status === "started";
  if (!resumed) await journal.append([{ type: "tool.started", data: { call: call.call } }]);
  options.crashpoint("tool.effect");
  const startMs = performance.now();
  const unknown = resumed && !tool.repeatable ? unknownOutcome(call, tool) : null;
  const result = withNetwork(unknown ?? (await tryTool(tool, args, options, { call, resumed })), options.network);
  options.crashpoint("tool.effect.after");
  const afterwards = result.outcome === "lost" ? null : await afterHooks(call, result, options);
  const files = result.files ?? [];
  const details = { ...(isObject(result.details) ? result.details : {}), ...(files.length > 0 ? { changedFiles: true } : {}) };
  journal.note([
    ...files.map((file): NewRunEvent => ({ type: "file.changed", data: { call: call.call, ...file } })),
    {
      type: "tool.ended",
      data: {
        call: call.call,
        outcome: result.outcome,
        text: afterwards ? `${result.text}\n\n${afterwards.text}` : result.text,
        details,
        // Of a call that an earlier owner began: it went on inside while nobody drove the run.
        durationMs: resumed && call.startedAt !== null ? Math.max(0, Date.now() - Date.parse(call.startedAt)) : performance.now() - startMs,
      },
    },
    ...(afterwards?.stop ? [{ type: "run.stop_requested", data: { by: afterwards.stop } } as const] : []),
  ]);
}

/** What was denied meanwhile is told with the result: the program that was denied may have said nothing of it. */
function withNetwork(result: ToolResult, network: RunNetwork): ToolResult {
  const denials = network.takeDenials();
  const told = denials.length === 0 ? "" : `\n\n[network] ${denials.join("\n[network] ")}`;
  return { ...result, text: network.redact(`${result.text}${told}`) };
}

/** What may have happened must not happen a second time: null when the tool itself can find out. */
function unknownOutcome(call: ToolCallState, tool: Tool): ToolResult | null {
  // In another sandbox the same ref is another process.
  if (call.sandboxLost !== null) return lostWithSandbox(call.sandboxLost);
  if (tool.resumable) return null;
  return {
    outcome: "lost",
    text: "The program that drives this run died during this call. Whether it took effect is not known, and it was not made again. Look at what it was to change before you call it again.",
  };
}

function lostWithSandbox(files: "kept" | "gone"): ToolResult {
  const fate =
    files === "kept"
      ? "A new one was started on the same workspace."
      : "Its files could not be saved: everything that was changed since they were last saved, when this run began or when a sandbox of it died before, is gone.";
  return { outcome: "lost", text: `The sandbox died during this call; nobody knows how far it came. ${fate}` };
}

async function tryTool(
  tool: Tool,
  args: unknown,
  options: RunToolsOptions,
  about: { call: ToolCallState; resumed: boolean },
): Promise<ToolResult> {
  try {
    const sandbox = await options.sandbox();
    return await duringTurn(turnOf(options.journal.state), () => tool.run(args, context(sandbox, options, about)));
  } catch (error) {
    if (!(error instanceof CaissonError)) throw error;
    if (isLogFailure(error)) throw error;
    if (error.code === "lost" || error.code === "protocol" || isUnresponsive(error)) return lostWithSandbox(await options.onLost(error));
    if (error.code === "cancelled" || options.signal.aborted) return { outcome: "interrupted", text: "The call was interrupted." };
    return { outcome: "error", text: error.sentences };
  }
}

function context(sandbox: Sandbox, options: RunToolsOptions, about: { call: ToolCallState; resumed: boolean }): ToolContext {
  const { journal } = options;
  const { call } = about.call;
  return {
    sandbox: interruptible(sandbox, options.signal),
    call,
    ref: (suffix) => `${journal.state.run}:${call}${suffix ? `:${suffix}` : ""}`,
    signal: options.signal,
    onOutput: (text) => {
      // For watching only; a failure shows at the next append that counts.
      journal.append([{ type: "tool.streamed", data: { call, text: options.network.redact(text) } }]).catch(() => undefined);
    },
    resumed: about.resumed,
    todo: {
      get: () => journal.state.todo,
      set: (todo) => journal.append([{ type: "todo.changed", data: { call, todo } }]),
    },
    history: options.history,
    network: options.network,
  };
}

async function afterHooks(
  call: ToolCallState,
  result: ToolResult,
  options: RunToolsOptions,
): Promise<{ text: string; stop?: string } | null> {
  const { hooks } = options.journal.state.definition;
  if (hooks.after.length === 0 && options.hooks.after.length === 0) return null;
  const verdict = await askHooks({
    call: { when: "after", call: call.call, tool: call.name, arguments: call.arguments, outcome: result.outcome, text: result.text },
    commands: hooks.after,
    functions: options.hooks.after,
    sandbox: await options.sandbox(),
    ref: (suffix) => `${options.journal.state.run}:${call.call}:${suffix}`,
  });
  if (verdict.kind === "continue") return null;
  if (verdict.kind === "block") return { text: `A hook objects to the result: ${verdict.reason}` };
  return { text: `A hook stopped the run: ${verdict.reason}`, stop: `hook: ${verdict.reason.slice(0, 500)}` };
}

/** What was asked for before the run ended is told, and not done: whoever went on with the run may not want it. */
function abandoned(call: ToolCallState): Prepared {
  const text =
    call.status === "started"
      ? "The run ended during this call. How far it came is not known, and it was not made again. Look at what it was to change before you call it again."
      : "The run ended before this call was made, and it was not made since. Call it again if it is still wanted.";
  return answered(call, "interrupted", text);
}

function answered(call: ToolCallState, outcome: AnsweredOutcome, text: string): Prepared {
  return { kind: "answered", events: [ended(call, outcome, text)] };
}

function ended(call: ToolCallState, outcome: AnsweredOutcome, text: string): NewRunEvent {
  return { type: "tool.ended", data: { call: call.call, outcome, text, durationMs: 0 } };
}

type AnsweredOutcome = "error" | "blocked" | "denied" | "interrupted";

const isObject = (value: unknown): value is Record<string, never> => typeof value === "object" && value !== null && !Array.isArray(value);
const short = (text: string) => (text.length > 500 ? `${text.slice(0, 500)}…` : text);
