import { z } from "zod";
import { NameOrId } from "../../../contract/api/name-or-id.ts";
import { ChosenName, RunId, SessionId } from "../../../contract/ids.ts";
import { Budgets, MessageMode, QuestionId } from "../../../contract/run/run.ts";
import type { StartRunInput } from "../../../contract/run/run-verbs.ts";
import { defined } from "../../../lib/defined.ts";
import { describeRun, followRun, RunSummary, summaryOfRun } from "../follow-run.ts";
import type { McpContext } from "../mcp-context.ts";
import { defineTool, type McpTool } from "../mcp-tool.ts";
import { checkChoice, checkModelsRun, narrowedNetwork } from "../narrow-request.ts";
import { networkWords } from "./sandbox-tools.ts";

const WAIT_SECONDS = 600;
const WAIT_SECONDS_MAX = 86_400;

const run = NameOrId.describe("The run's id or name.");

const RunInput = z.strictObject({
  task: z.string().trim().min(1).max(100_000).describe("The task for the agent."),
  agent: z.string().min(1).max(200).default("coder").describe("See list_agents."),
  model: z.string().min(1).max(200).optional().describe("Default: the person's default model."),
  name: ChosenName.optional(),
  session: SessionId.optional().describe("The session of an earlier run, to work on its files."),
  repository: z.url().optional().describe("An https URL to clone instead, if the person allows the choice."),
  network: networkWords.optional(),
  budgets: Budgets.optional(),
  waitSeconds: z
    .int()
    .min(0)
    .max(WAIT_SECONDS_MAX)
    .default(WAIT_SECONDS)
    .describe("How long to wait for the run to end. After that, use get_run."),
  detached: z.boolean().default(false).describe("Whether it continues if this client disconnects."),
  whenCancelled: z.enum(["stop", "leave"]).default("stop").describe("What to do with the run if this call is cancelled."),
});

export function startTool(context: McpContext): McpTool {
  const { station, held, by } = context;
  return defineTool({
    name: "run_agent",
    title: "Run an agent",
    description:
      "Lets an agent work on a task in a separate sandbox, and waits for it. Its changes stay in its workspace: see them with `diff`. If a run asks a question, answer it with answer_question.",
    scope: "run",
    effect: "adds",
    openWorld: true,
    input: RunInput,
    output: RunSummary,
    async run({ waitSeconds, whenCancelled, ...input }, call) {
      const { run } = await station.runs.start(startInput(input, context));
      held.takeRun(run);
      const summary = await followRun({ station, run, waitSeconds, call });
      if (call.signal.aborted && whenCancelled === "stop") await station.runs.stop(run, { by });
      return { structured: summary, text: describeRun(summary) };
    },
  });
}

function startInput(input: Omit<z.output<typeof RunInput>, "waitSeconds" | "whenCancelled">, { bounds }: McpContext): StartRunInput {
  const { task, agent, model, name, session, repository, budgets, detached } = input;
  checkChoice("the repository", repository, bounds);
  const network = input.network === undefined ? undefined : narrowedNetwork(input.network, bounds);
  const source = repository === undefined ? undefined : { kind: "git" as const, url: repository };
  const wishes = defined({ agent, model, name, source, budgets, session: session === undefined ? undefined : { id: session } });
  checkModelsRun({ task, ...wishes, settings: defined({ network }) });
  return {
    ...bounds.run,
    ...wishes,
    task,
    settings: { ...bounds.run.settings, ...defined({ network }) },
    detached,
    attended: true,
  };
}

/** The tools that show runs and agents. */
export function lookTools({ station, held }: McpContext): McpTool[] {
  return [
    defineTool({
      name: "get_run",
      title: "Show a run",
      description: "Shows the progress or result of a run. With waitSeconds, waits until it ends or asks a question.",
      scope: "read",
      effect: "reads",
      input: z.strictObject({ run, waitSeconds: z.int().min(0).max(WAIT_SECONDS_MAX).default(0) }),
      output: RunSummary,
      async run({ run: name, waitSeconds }, call) {
        const id = await held.run(name);
        const summary = await followRun({ station, run: id, waitSeconds, call });
        return { structured: summary, text: describeRun(summary) };
      },
    }),
    defineTool({
      name: "list_runs",
      title: "List runs",
      description: "Lists the runs that this client may see, last changed first.",
      scope: "read",
      effect: "reads",
      input: z.strictObject({ state: z.enum(["open", "ended"]).optional(), limit: z.int().min(1).max(200).default(50) }),
      output: z.object({ runs: z.array(RunSummary) }),
      async run({ state, limit }) {
        const { runs } = await station.runs.list({ limit: 1000, ...defined({ state }) });
        const page = runs.filter((each) => held.isReached(each.run)).slice(0, limit);
        const summaries = page.map((view) => summaryOfRun(view, null));
        return { structured: { runs: summaries }, text: summaries.map(describeRun).join("\n") || "There are no runs." };
      },
    }),
    defineTool({
      name: "list_agents",
      title: "List agents",
      description: "Lists the agents that run_agent can start.",
      scope: "read",
      effect: "reads",
      input: z.strictObject({}),
      output: z.object({ agents: z.array(z.object({ name: z.string(), description: z.string() })) }),
      async run() {
        const usable = (await station.agents.list()).filter(({ hidden, fault }) => !hidden && fault === null);
        const agents = usable.map(({ name, description }) => ({ name, description }));
        return { structured: { agents }, text: agents.map(({ name, description }) => `${name}: ${description}`).join("\n") };
      },
    }),
  ];
}

/** The tools that act on existing runs. */
export function steerTools({ station, held, by }: McpContext): McpTool[] {
  return [
    defineTool({
      name: "send_message",
      title: "Send a message to a run",
      description: "Sends a message to an agent, while it works or as the next turn of a finished run.",
      scope: "run",
      effect: "adds",
      openWorld: true,
      input: z.strictObject({ run, text: z.string().trim().min(1).max(100_000), mode: MessageMode.default("steer") }),
      output: z.object({ run: RunId, message: z.string().nullable() }),
      async run({ run: name, text, mode }) {
        const id = await held.run(name);
        const { status } = await station.runs.get(id);
        if (status === "ended") {
          await station.runs.continue(id, { text, by, attended: true });
          return { structured: { run: id, message: null }, text: `The run ${id} continues with the message; see get_run.` };
        }
        const { message } = await station.runs.send(id, { text, mode });
        return { structured: { run: id, message }, text: `Sent the message to ${id}.` };
      },
    }),
    defineTool({
      name: "answer_question",
      title: "Answer a run's question",
      description:
        "Answers the question that a run asks before it does something. Allow only what the person would: ask them when in doubt. `always` applies to the rest of the run.",
      scope: "run",
      effect: "destroys",
      input: z.strictObject({
        run,
        question: QuestionId.optional().describe("Default: the oldest one."),
        answer: z.enum(["allow", "always", "deny"]),
        text: z.string().max(10_000).optional(),
      }),
      output: z.object({ run: RunId }),
      async run({ run: name, ...answer }) {
        const id = await held.run(name);
        await station.runs.answer(id, { by, ...defined(answer) });
        return { structured: { run: id }, text: `Answered ${answer.answer}.` };
      },
    }),
    defineTool({
      name: "stop_run",
      title: "Stop a run",
      description: "Stops a run; its changes stay.",
      scope: "run",
      effect: "destroys",
      input: z.strictObject({ run }),
      output: z.object({ run: RunId }),
      async run({ run: name }, { signal }) {
        const id = await held.run(name);
        await station.runs.stop(id, { by, signal });
        return { structured: { run: id }, text: `Stopped ${id}.` };
      },
    }),
  ];
}
