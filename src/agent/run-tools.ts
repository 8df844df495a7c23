import { CaissonError } from "../contract/error/error.ts";
import { checkValue, tellProblems } from "../contract/error/plain-problems.ts";
import type { NewRunEvent } from "../contract/run/run-event.ts";
import { ignore } from "../lib/failures.ts";
import { newId } from "../lib/new-id.ts";
import { duringTurn } from "../lib/turns.ts";
import { isUnresponsive } from "../sandbox/guest/waits.ts";
import { interruptible } from "../sandbox/interruptible.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { CommitWatch } from "./commit-watch.ts";
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
  /** Returns the run's sandbox, starting it or finding it again. */
  sandbox: () => Promise<Sandbox>;
  /**
   * Called when the sandbox dies under a call; the next `sandbox()` returns another one. Resolves with the fate of its
   * files.
   */
  onLost: (error: CaissonError) => Promise<"kept" | "gone">;
  hooks: { before: readonly HookFunction[]; after: readonly HookFunction[] };
  history: History;
  network: RunNetwork;
  /** Called before a tool that may change files. */
  onWriting: () => void;
  /** Finds commits in the workspace. Absent: they are not events. */
  commits?: CommitWatch;
  signal: AbortSignal;
  crashpoint: (name: string) => void;
}

type Prepared =
  | { kind: "run"; call: ToolCallState; tool: Tool; args: unknown }
  | { kind: "answered"; events: NewRunEvent[] }
  | { kind: "asked"; events: NewRunEvent[] };

/**
 * Runs the calls that the model requested, in order; read-only calls run in parallel. Returns early when a person must
 * approve a call: the answer may take days, and the loop calls again with it.
 */
export async function runTools(calls: readonly ToolCallState[], options: RunToolsOptions): Promise<void> {
  const calledTools = await runInOrder(calls, options);
  if (calledTools.some(({ files }) => files === "any")) await noteCommits(options);
}

/** Notes the commits of commands. */
async function noteCommits({ commits, sandbox, journal, network }: RunToolsOptions): Promise<void> {
  if (commits === undefined) return;
  const events =
    (await ignore(
      sandbox().then((inside) => commits.look(inside)),
      "the next call deals with the sandbox",
    )) ?? [];
  if (events.length > 0) journal.note(events.map((event) => redactCommit(event, network)));
}

function redactCommit(event: NewRunEvent, network: RunNetwork): NewRunEvent {
  if (event.type !== "git.committed") return event;
  return { ...event, data: { ...event.data, subject: network.redact(event.data.subject) } };
}

/** Resolves with the tools that were called. */
async function runInOrder(calls: readonly ToolCallState[], options: RunToolsOptions): Promise<Tool[]> {
  const calledTools: Tool[] = [];
  let group: Extract<Prepared, { kind: "run" }>[] = [];
  const runGroup = async () => {
    const now = group;
    group = [];
    calledTools.push(...now.map(({ tool }) => tool));
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
    if (prepared.kind === "asked") return calledTools;
  }
  await runGroup();
  return calledTools;
}

/** If the sandbox dies under a hook, we replace it and run the hooks again: the call itself has not started. */
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
  if (call.abandoned) return abandonCall(call);
  const tool = options.tools.get(call.name);
  if (!tool)
    return answerCall(
      call,
      "error",
      `There is no tool ${JSON.stringify(call.name)}. Available tools: ${[...options.tools.keys()].join(", ")}.`,
    );
  if (call.badArguments !== undefined) {
    return answerCall(call, "error", `The arguments of ${call.name} are not valid JSON: ${call.badArguments.slice(0, 300)}`);
  }
  const parsed = checkValue(tool.parameters, call.arguments);
  if (!parsed.success) return answerCall(call, "error", `The arguments of ${call.name} are invalid: ${tellProblems(parsed.problems)}`);
  const run: Prepared = { kind: "run", call, tool, args: parsed.data };
  // An earlier holder started this call, so it was permitted then.
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
  if (verdict.kind === "block") return answerCall(call, "blocked", `A hook blocked this call: ${verdict.reason}`);
  if (verdict.kind === "interrupt") {
    return {
      kind: "answered",
      events: [
        toolEnded(call, "blocked", `A hook stopped the run: ${verdict.reason}`),
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
    return answerCall(call, "denied", `A person said no${question.answer.text ? `: ${question.answer.text}` : "."}`);
  }
  const { permissions, floor } = state.definition;
  const rule = permissionFor(subject, { own: permissions, floor, always: state.always });
  if (rule.permission === "allow") return null;
  if (rule.permission === "deny") return answerCall(call, "denied", `The rule ${JSON.stringify(rule.pattern)} denies ${short(subject)}.`);
  if (state.definition.harness.onAsk === "deny") {
    return answerCall(
      call,
      "denied",
      `The rule ${JSON.stringify(rule.pattern)} requires approval for ${short(subject)}, and no person attends this run.`,
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
  if (!tool.parallel) options.onWriting();
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
        // An earlier holder started this call, and it continued inside without a driver.
        durationMs: resumed && call.startedAt !== null ? Math.max(0, Date.now() - Date.parse(call.startedAt)) : performance.now() - startMs,
      },
    },
    ...(afterwards?.stop ? [{ type: "run.stop_requested", data: { by: afterwards.stop } } as const] : []),
  ]);
}

/** Appends the requests that were denied during the call, because the program may not have reported them. */
function withNetwork(result: ToolResult, network: RunNetwork): ToolResult {
  const denials = network.takeDenials();
  const notice = denials.length === 0 ? "" : `\n\n[network] ${denials.join("\n[network] ")}`;
  return { ...result, text: network.redact(`${result.text}${notice}`) };
}

/**
 * Returns the result for a call that must not run again because it may have taken effect; null if the tool itself can
 * find out.
 */
function unknownOutcome(call: ToolCallState, tool: Tool): ToolResult | null {
  // The ref would name a different process in another sandbox.
  if (call.sandboxLost !== null) return lostWithSandbox(call.sandboxLost);
  if (tool.resumable) return null;
  return {
    outcome: "lost",
    text: "The program that drives this run died during this call. The call may have taken effect, and it was not repeated. Check what it should have changed before you call it again.",
  };
}

function lostWithSandbox(files: "kept" | "gone"): ToolResult {
  const fate =
    files === "kept"
      ? "A new one was started on the same workspace."
      : "Its files could not be saved: all changes since they were last saved (when this run began, or when an earlier sandbox of it died) are lost.";
  return { outcome: "lost", text: `The sandbox died during this call, which may have taken partial effect. ${fate}` };
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
      const appending = journal.append([{ type: "tool.streamed", data: { call, text: options.network.redact(text) } }]);
      void ignore(appending, "only for viewers; appending the call's result fails as well");
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

/**
 * Reports calls that were requested before the run ended without running them: the user who continued the run may not
 * want them.
 */
function abandonCall(call: ToolCallState): Prepared {
  const text =
    call.status === "started"
      ? "The run ended during this call. The call may have taken partial effect, and it was not repeated. Check what it should have changed before you call it again."
      : "The run ended before this call was made, and it has not been made since. Call it again if you still need it.";
  return answerCall(call, "interrupted", text);
}

function answerCall(call: ToolCallState, outcome: AnsweredOutcome, text: string): Prepared {
  return { kind: "answered", events: [toolEnded(call, outcome, text)] };
}

function toolEnded(call: ToolCallState, outcome: AnsweredOutcome, text: string): NewRunEvent {
  return { type: "tool.ended", data: { call: call.call, outcome, text, durationMs: 0 } };
}

type AnsweredOutcome = "error" | "blocked" | "denied" | "interrupted";

const isObject = (value: unknown): value is Record<string, never> => typeof value === "object" && value !== null && !Array.isArray(value);
const short = (text: string) => (text.length > 500 ? `${text.slice(0, 500)}…` : text);
