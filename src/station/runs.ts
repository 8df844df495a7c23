import { createHash } from "node:crypto";
import { hostname } from "node:os";
import { digestOf } from "../agent/file/define-agent.ts";
import type { HookFunction } from "../agent/hooks.ts";
import { driveRun } from "../agent/loop.ts";
import type { Model } from "../agent/model/model.ts";
import type { RunState } from "../agent/run-state.ts";
import type { Tool, ToolContext } from "../agent/tool.ts";
import { connectMcp, type McpConnection } from "../agent/tools/mcp.ts";
import { createSubAgentTool, type SubRun } from "../agent/tools/sub-agent.ts";
import { selectTools } from "../agent/tools/tool-set.ts";
import type { AgentDefinition } from "../contract/agent.ts";
import { CaissonError } from "../contract/error.ts";
import type { Budgets, MessageMode, MessageSource } from "../contract/run.ts";
import type { Session } from "../contract/session.ts";
import { newId } from "../lib/new-id.ts";
import type { Log } from "../log/log.ts";
import type { Runtime } from "../sandbox/runtime.ts";
import { type OwnedSandbox, restricted } from "../sandbox/sandbox.ts";
import type { SessionStore } from "../workspace/sessions.ts";
import type { Crashpoint } from "./crashpoint.ts";
import { runHistory } from "./history.ts";
import { type ForeignEvent, foldReadable, foldRun, type OwnedJournal, openJournal, runStream } from "./journal.ts";
import { type Identity, isGone, takeOver } from "./ownership.ts";
import { leaveSession } from "./remove-session.ts";
import { loadRules } from "./rules.ts";
import { type AttachedNetwork, createRunNetwork } from "./run-network.ts";
import { createRunSandbox, type RemoveRemains, type RunSandbox } from "./run-sandbox.ts";

export interface RunsOptions {
  log: Log;
  sessions: SessionStore;
  /** The runtime an agent asked for, or the strongest there is. */
  runtime: (name: string | undefined) => Promise<Runtime>;
  model: (name: string) => Promise<Model>;
  /** Sub-agents by name. */
  agent: (name: string) => Promise<AgentDefinition>;
  identity: Identity;
  alive: (owner: { pid: number; startTicks: number; bootId: string }) => boolean;
  crashpoint: Crashpoint;
  hooks?: { before?: readonly HookFunction[]; after?: readonly HookFunction[] };
  removeRemains: RemoveRemains;
  /** Prepares a workspace that is not there yet, such as a git check-out; called once for each new sandbox. */
  prepare?: (session: Session, sandbox: OwnedSandbox) => Promise<void>;
}

export interface NewRun {
  definition: AgentDefinition;
  task: string;
  model: string;
  session: string;
  budgets?: Budgets;
  parent?: { run: string; call: string };
  id?: string;
}

export interface Runs {
  create(request: NewRun): Promise<string>;
  /**
   * Becomes the run's owner and drives it to its end, from wherever it is. Throws `conflict` when another process has it, `cancelled` when the signal let it go
   * (the run stays as it is).
   */
  drive(run: string, options: { signal: AbortSignal }): Promise<RunState>;
  state(run: string): Promise<RunState>;
  /** A run whose log is damaged is listed with what could be read of it. */
  list(options?: { limit?: number }): Promise<{ run: string; state: RunState; damage: string | null; owner: string | null; at: string }[]>;
  /** Resolves with the message's id; its receipt is the run's `model.requested` that names it. */
  send(run: string, message: { text: string; mode: MessageMode; source: MessageSource }): Promise<string>;
  answer(
    run: string,
    answer: { question?: string; answer: "allow" | "always" | "deny"; text?: string; budgets?: Budgets; by: string },
  ): Promise<void>;
  /** Interrupts what it is doing and holds it until `goOn`. */
  pause(run: string, options: { text: string }): Promise<void>;
  goOn(run: string, options: { by: string }): Promise<void>;
  stop(run: string, options: { by: string }): Promise<void>;
}

export function createRuns(options: RunsOptions): Runs {
  const { log } = options;
  const owner = JSON.stringify(options.identity);

  const foreign = async (run: string, event: ForeignEvent) => {
    const { state } = await foldRun(log, run);
    if (state.status === "ended") throw new CaissonError("conflict", `The run ${run} has ended (${state.ended?.reason}).`);
    await log.append(runStream(run), [{ type: event.type, version: 1, data: event.data as never }]);
  };

  const runs: Runs = {
    async create(request) {
      const run = request.id ?? newId("run");
      const { definition } = request;
      options.crashpoint("run.created:before");
      await log.append(
        runStream(run),
        [
          {
            type: "run.created",
            version: 1,
            data: {
              run,
              parent: request.parent ?? null,
              session: request.session,
              agent: { name: definition.name, digest: digestOf(definition), definition: definition as never },
              task: request.task,
              model: request.model,
              budgets: (request.budgets ?? {}) as never,
            },
          },
        ],
        { expectedSeq: 0 },
      );
      options.crashpoint("run.created:after");
      return run;
    },
    drive: (run, { signal }) => driveOwned(run, { ...options, owner, runs, signal }),
    state: async (run) => (await foldRun(log, run)).state,
    async list({ limit = 100 } = {}) {
      const streams = await log.streams({ prefix: "run/", limit });
      return await Promise.all(
        streams.map(async ({ stream, at }) => {
          const run = stream.slice("run/".length);
          const holder = await log.holder(stream);
          const held = holder && !isGone(options, holder.owner) ? holder.owner : null;
          return { run, ...(await foldReadable(log, run)), owner: held, at };
        }),
      );
    },
    async send(run, message) {
      const id = newId("msg");
      await foreign(run, { type: "message.received", data: { message: id, ...message } });
      return id;
    },
    async answer(run, answer) {
      const { state } = await foldRun(log, run);
      const open = [...state.questions.values()].filter((question) => question.answer === null);
      const question = answer.question === undefined ? open[0] : open.find((each) => each.question === answer.question);
      if (!question)
        throw new CaissonError("not_found", `The run ${run} has no such open question.`, {
          hint: `\`caisson logs ${run}\` shows what was asked.`,
        });
      const { question: _, ...rest } = answer;
      await foreign(run, { type: "permission.answered", data: { question: question.question, ...rest } });
    },
    pause: (run, { text }) => foreign(run, { type: "run.paused", data: { why: "user", text } }),
    goOn: (run, { by }) => foreign(run, { type: "run.continued", data: { by } }),
    async stop(run, { by }) {
      await foreign(run, { type: "run.stop_requested", data: { by } });
      // Nobody drives it: then nobody else will end it.
      const holder = await log.holder(runStream(run));
      if (!holder || isGone(options, holder.owner)) await runs.drive(run, { signal: new AbortController().signal });
    },
  };
  return runs;
}

/** Where a run works. */
interface Place {
  sandbox: RunSandbox;
  session: Session;
  network: AttachedNetwork;
}

interface Driving extends RunsOptions {
  owner: string;
  runs: Runs;
  signal: AbortSignal;
  /** A sub-run works in its parent's sandbox. */
  shared?: Place;
}

async function driveOwned(run: string, options: Driving): Promise<RunState> {
  const { state } = await foldRun(options.log, run);
  if (state.status === "ended") return state;
  await using ownership = await takeOver(run, options);
  const signal = AbortSignal.any([options.signal, ownership.fencedOut]);
  await using journal = await openJournal({ log: options.log, run, lease: ownership.lease, crashpoint: options.crashpoint, signal });
  await journal.append([
    { type: "run.claimed", data: { owner: options.owner, epoch: ownership.lease().epoch, pid: options.identity.pid, host: hostname() } },
  ]);
  if (options.shared) {
    await driveIn(journal, options.shared, { ...options, signal });
    return journal.state;
  }
  await driveInSession(journal, { ...options, signal });
  return journal.state;
}

/** Holds the session's lock while the run works there; whoever takes it away ends the work. */
async function driveInSession(journal: OwnedJournal, options: Driving): Promise<void> {
  const { sessions } = options;
  const { run, session: id } = journal.state;
  const runtime = await runtimeOf(await sessions.get(id), journal.state.definition, options);
  {
    await using lock = await sessions.lock(id, run);
    const session = await sessions.get(id);
    await sessions.record(id, { type: "session.run_started", data: { run } }, { once: true });
    await using network = createRunNetwork({ append: (events) => journal.append(events), state: () => journal.state });
    const sandbox = sandboxFor(journal, { session, runtime, network }, options);
    try {
      await driveIn(journal, { sandbox, session, network }, { ...options, signal: AbortSignal.any([options.signal, lock.lost]) });
    } finally {
      if (journal.state.status === "ended") await sandbox.end();
      else await sandbox.release();
    }
  }
  await leaveSession(journal.state, { sessions, runtimes: [runtime] });
}

/** A session's files are where its first sandbox was. Throws `conflict` when the agent asks for another place by name. */
async function runtimeOf(session: Session, definition: AgentDefinition, options: Driving): Promise<Runtime> {
  const asked = definition.sandbox.runtime;
  if (session.runtime === null) return await options.runtime(asked);
  if (asked !== undefined && asked !== "auto" && asked !== session.runtime) {
    throw new CaissonError("conflict", `The files of the session ${session.id} are in the runtime ${session.runtime}, not in ${asked}.`, {
      hint: "Choose another session, or leave the runtime out.",
    });
  }
  return await options.runtime(session.runtime);
}

function sandboxFor(
  journal: OwnedJournal,
  { session, runtime, network }: { session: Session; runtime: Runtime; network: AttachedNetwork },
  options: Driving,
): RunSandbox {
  const { definition, run } = journal.state;
  return createRunSandbox({
    run,
    runtime,
    definition,
    session,
    sessions: options.sessions,
    crashpoint: options.crashpoint,
    removeRemains: options.removeRemains,
    async onReady(sandbox, why) {
      network.attach(sandbox);
      if (journal.state.sandbox?.id !== sandbox.id) {
        await journal.append([{ type: "run.sandboxed", data: { sandbox: sandbox.id, runtime: runtime.name, why } }]);
      }
      if (session.runtime === null) await options.sessions.update(session.id, { runtime: runtime.name });
      await options.prepare?.(session, sandbox);
    },
  });
}

async function driveIn(journal: OwnedJournal, place: Place, options: Driving): Promise<void> {
  const model = await options.model(journal.state.model);
  await using resources = new AsyncDisposableStack();
  const sandbox = async () => restricted(await place.sandbox.get());
  const tools = await setUp(journal, { ...place, inside: sandbox, resources }, options);
  if (tools === null) return;
  await driveRun({
    journal,
    model,
    tools,
    sandbox,
    onLost: () => place.sandbox.lost(),
    hooks: { before: options.hooks?.before ?? [], after: options.hooks?.after ?? [] },
    history: runHistory(options.log, journal.state.run),
    network: place.network,
    signal: options.signal,
    crashpoint: options.crashpoint,
  });
}

/** Codes of what will not become better by trying again: a run that cannot even begin ends with them. */
const hopeless: ReadonlySet<string> = new Set(["invalid", "not_found", "unsupported", "unsafe", "too_large", "exists"]);

/** Everything a run needs before its first step. Null when that cannot be had, and the run has ended with the reason. */
async function setUp(
  journal: OwnedJournal,
  place: Place & {
    inside: () => Promise<ReturnType<typeof restricted>>;
    resources: AsyncDisposableStack;
  },
  options: Driving,
): Promise<Tool[] | null> {
  const { state } = journal;
  const { definition } = state;
  // A run that was stopped before it began needs no sandbox to end.
  if (state.stopRequested !== null) return [];
  try {
    state.conversation.setRules(await loadRules(await place.inside(), definition));
    const tools = [
      ...selectTools(definition.tools, { agent: definition.name }),
      ...(await mcpTools(journal, place.inside, place.resources)),
    ];
    if (definition.agents.length > 0) tools.push((await subAgents(journal, place, options)) as Tool);
    return tools;
  } catch (error) {
    if (!(error instanceof CaissonError) || state.step > 0 || !hopeless.has(error.code)) throw error;
    const text = error.hint ? `${error.message} ${error.hint}` : error.message;
    const { usage, costUsd } = state;
    await journal.append([{ type: "run.ended", data: { reason: "error", text, steps: 0, usage, costUsd } }]);
    return null;
  }
}

async function mcpTools(
  journal: OwnedJournal,
  sandbox: () => Promise<ReturnType<typeof restricted>>,
  resources: AsyncDisposableStack,
): Promise<Tool[]> {
  const { definition, run } = journal.state;
  const wanted = Object.entries(definition.mcp).filter(
    ([name]) => definition.tools === undefined || definition.tools.includes(`mcp:${name}`),
  );
  const tools: Tool[] = [];
  for (const [name, server] of wanted) {
    // Another owner's connection cannot be continued: each owner starts the server anew.
    const ref = `${run}:mcp:${name}:${journal.lease().epoch}`;
    const connection: McpConnection = resources.use(await connectMcp({ name, server, sandbox, ref }));
    tools.push(...connection.tools);
  }
  return tools;
}

async function subAgents(journal: OwnedJournal, place: Place, options: Driving): Promise<Tool<{ agent: string; task: string }>> {
  const { state } = journal;
  const definitions = await Promise.all(state.definition.agents.map((name) => options.agent(name)));
  const start = async (request: { agent: string; task: string; context: ToolContext }): Promise<SubRun> => {
    const definition = definitions.find((each) => each.name === request.agent);
    if (!definition) throw new CaissonError("not_found", `There is no agent ${request.agent}.`);
    // The same call leads to the same sub-run: after a crash it is continued, not begun again.
    const run = childRunId(state.run, request.context.call);
    const exists = (await options.log.lastSeq(runStream(run))) > 0;
    if (!exists) {
      await options.runs.create({
        id: run,
        definition: { ...definition, harness: { ...definition.harness, onBudget: "stop" } },
        task: request.task,
        model: definition.model ?? state.model,
        session: state.session,
        budgets: budgetsLeft(state),
        parent: { run: state.run, call: request.context.call },
      });
    }
    const abort = () => void options.runs.stop(run, { by: "parent" }).catch(() => undefined);
    request.context.signal.addEventListener("abort", abort, { once: true });
    const ended = await driveOwned(run, { ...options, shared: place });
    request.context.signal.removeEventListener("abort", abort);
    return { run, reason: ended.ended?.reason ?? "error", text: ended.ended?.text ?? "", usage: ended.usage, costUsd: ended.costUsd };
  };
  return createSubAgentTool({ agents: definitions, start });
}

function childRunId(parent: string, call: string): string {
  const alphabet = "abcdefghijklmnopqrstuvwxyz234567";
  const bytes = createHash("sha256").update(`${parent} ${call}`).digest().subarray(0, 12);
  return `run_${[...bytes].map((byte) => alphabet[byte & 31]).join("")}`;
}

/** What the parent may still spend bounds what the sub-run may. */
function budgetsLeft(state: RunState): Budgets {
  const { budgets } = state;
  const tokens = state.usage.inputTokens + state.usage.outputTokens;
  return {
    ...(budgets.costUsd === undefined || state.costUsd === null ? {} : { costUsd: Math.max(0.000001, budgets.costUsd - state.costUsd) }),
    ...(budgets.tokens === undefined ? {} : { tokens: Math.max(1, budgets.tokens - tokens) }),
    timeMs: Math.max(1, (budgets.timeMs ?? state.definition.harness.timeoutMs) - state.workedMs),
  };
}
