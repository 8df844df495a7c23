import { createHash } from "node:crypto";
import { endRun } from "../../agent/end-run.ts";
import { isLogFailure } from "../../agent/journal.ts";
import { budgetsFromLeft } from "../../agent/run-budgets.ts";
import type { RunState } from "../../agent/run-state.ts";
import type { Tool, ToolContext } from "../../agent/tool.ts";
import { createSubAgentTool, type SubRun } from "../../agent/tools/sub-agent.ts";
import { selectTools } from "../../agent/tools/tool-set.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { MCP_NAME_CHARACTERS_MAX, MCP_TOOLS_MAX, type NewRunEvent, RULES_CHARACTERS_MAX } from "../../contract/run/run-event.ts";
import { defined } from "../../lib/defined.ts";
import { ignore } from "../../lib/failures.ts";
import { idFrom } from "../../lib/new-id.ts";
import type { Resources } from "../../lib/resources.ts";
import { traceparentBelow } from "../../lib/trace-ids.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { subAgentsOf, withSubAgents } from "../agents/sub-agents.ts";
import { runStream } from "../vocabulary/station-names.ts";
import type { DriveOptions, Workplace } from "./drive.ts";
import type { OwnedJournal } from "./owned-journal.ts";
import { loadRules } from "./rules.ts";

interface PreparedWorkplace extends Workplace {
  inside: () => Promise<Sandbox>;
  resources: Resources;
  /** Drives a sub-run to its end in the same sandbox. */
  driveSubRun: (run: string) => Promise<RunState>;
}

/**
 * Sets up everything that a run needs before its first step. If that fails, the run ends with the reason and the result
 * is null: a run that never started and has no driver would look as if it could recover by itself. Resuming it tries
 * again. If the driver retries by itself, transient errors are thrown instead.
 */
export async function setUp(journal: OwnedJournal, place: PreparedWorkplace, options: DriveOptions): Promise<Tool[] | null> {
  const { state } = journal;
  // A run that was stopped before it started needs no sandbox to end.
  if (state.stopRequested !== null) return [];
  try {
    return await inLiveSandbox(place, () => toolsFor(journal, place, options));
  } catch (error) {
    if (!(error instanceof CaissonError) || state.step > 0 || isLogFailure(error) || options.signal.aborted) throw error;
    if (options.isRetried === true && mayPass(error)) throw error;
    await endRun({ journal, network: place.network }, { reason: "error", text: error.sentences });
    return null;
  }
}

/**
 * Returns whether a later attempt may succeed. The queue retries even after a full disk, which a single call does not.
 */
const mayPass = (error: CaissonError) => error.retryable || error.code === "no_space";

/** Runs the setup, and replaces a sandbox that dies during it once: nothing of value has happened inside yet. */
async function inLiveSandbox<Result>(place: PreparedWorkplace, work: () => Promise<Result>): Promise<Result> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof CaissonError) || (error.code !== "lost" && error.code !== "protocol")) throw error;
    await place.sandbox.lost();
    return await work();
  }
}

async function toolsFor(journal: OwnedJournal, place: PreparedWorkplace, options: DriveOptions): Promise<Tool[]> {
  const { state } = journal;
  const { definition } = state;
  await takeRules(await loadRules(await place.inside(), definition), journal);
  const tools = [...selectTools(definition.tools, { agent: definition.name }), ...(await mcpTools(journal, place))];
  if (definition.agents.length > 0) tools.push((await subAgents(journal, place, options)) as Tool);
  return tools;
}

/** Records the rules, since a replay needs everything that the model gets. */
async function takeRules(text: string, { state: { conversation }, append }: Pick<OwnedJournal, "state" | "append">): Promise<void> {
  if (text === conversation.rules()) return;
  if (text.length <= RULES_CHARACTERS_MAX) await append([{ type: "rules.loaded", data: { text } }]);
  else conversation.setRules(text);
}

async function mcpTools(journal: OwnedJournal, place: PreparedWorkplace): Promise<Tool[]> {
  const { definition, run } = journal.state;
  const wanted = Object.entries(definition.mcp).filter(
    ([name]) => definition.tools === undefined || definition.tools.includes(`mcp:${name}`),
  );
  if (wanted.length === 0) return [];
  const { connectMcp, endEarlierServers } = await import("../../agent/tools/mcp.ts");
  const { epoch } = journal.lease();
  await endEarlierServers(await place.inside(), { run, epoch });
  const tools: Tool[] = [];
  for (const [name, server] of wanted) {
    const startMs = performance.now();
    const connection = place.resources.use(await connectMcp({ name, server, sandbox: place.inside, run, epoch }));
    tools.push(...connection.tools);
    journal.note([mcpConnected(name, connection.tools, performance.now() - startMs)]);
  }
  return tools;
}

function mcpConnected(server: string, tools: readonly Tool[], durationMs: number): NewRunEvent {
  const cut = (name: string) => name.slice(0, MCP_NAME_CHARACTERS_MAX);
  const data = { server: cut(server), tools: tools.slice(0, MCP_TOOLS_MAX).map(({ name }) => cut(name)), durationMs };
  return { type: "mcp.connected", data };
}

async function subAgents(
  journal: OwnedJournal,
  place: PreparedWorkplace,
  options: DriveOptions,
): Promise<Tool<{ agent: string; task: string }>> {
  const { state } = journal;
  // The log of an older run contains no sub-agents, so we look them up here.
  const definitions = subAgentsOf(await withSubAgents(state.definition, (name) => options.agent(name, state.owner)));
  const start = async (request: { agent: string; task: string; context: ToolContext }): Promise<SubRun> => {
    const definition = definitions.find((each) => each.name === request.agent);
    if (!definition) throw new CaissonError("not_found", `there is no agent ${request.agent}`);
    // The call determines the id, so after a crash the same sub-run continues and no second one starts.
    const run = childRunId(state, request.context.call);
    const exists = (await options.log.lastSeq(runStream(run))) > 0;
    if (!exists) {
      await options.runs.create({
        id: run,
        definition: { ...definition, harness: { ...definition.harness, onBudget: "stop" } },
        task: request.task,
        model: definition.model ?? state.model,
        session: state.session,
        owner: state.owner,
        labels: state.labels,
        // Bounded by what its parent has left.
        budgets: budgetsFromLeft(state),
        parent: { run: state.run, call: request.context.call },
        ...defined({ traceparent: traceparentBelow(state, `tool ${request.context.call}`) }),
      });
    }
    const abort = () => void ignore(options.runs.stop(run, { by: "parent" }), "the run has ended");
    request.context.signal.addEventListener("abort", abort, { once: true });
    const ended = await place.driveSubRun(run);
    request.context.signal.removeEventListener("abort", abort);
    return { run, reason: ended.ended?.reason ?? "error", text: ended.ended?.text ?? "", usage: ended.usage, costUsd: ended.costUsd };
  };
  return createSubAgentTool({ agents: definitions, start });
}

/** The calls of a rewound run begin again with the same names, and must not find the sub-runs of the earlier ones. */
function childRunId({ run: parent, rewinds }: Pick<RunState, "run" | "rewinds">, call: string): string {
  const attempt = rewinds === 0 ? "" : ` after rewind ${rewinds}`;
  return idFrom("run", createHash("sha256").update(`${parent} ${call}${attempt}`).digest());
}
