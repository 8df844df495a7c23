import { z } from "zod";
import { CaissonError } from "../../contract/error/error.ts";
import type { RunEvent } from "../../contract/run/run-event.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { HookFunction } from "../hooks.ts";
import type { RunNetwork } from "../run-network.ts";
import type { Tool, ToolContext, ToolResult } from "../tool.ts";
import { createSubAgentTool } from "../tools/sub-agent.ts";
import { builtInTools, selectTools } from "../tools/tool-set.ts";
import { STOPPED_BY_HOOK } from "./replay-items.ts";
import type { ReplayTrack } from "./replay-track.ts";

export type RecordedResult = Extract<RunEvent, { type: "tool.ended" }>["data"];

/** Runs a call again for comparison; see `ReplayOptions.runTool`. */
export type RunTool = (tool: Tool, args: unknown, context: ToolContext, recorded: RecordedResult) => Promise<void>;

const BLOCKED_BY_HOOK = "A hook blocked this call: ";
/** MCP servers' tools, by the names that the recording has. */
const mcpToolNames = (events: readonly RunEvent[]) =>
  new Set(events.flatMap((event) => (event.type === "mcp.connected" ? event.data.tools : [])));

/** Returns the run's tools. Each returns its recorded result, in the recorded order. */
export function createReplayTools(
  track: ReplayTrack,
  { events, runTool }: { events: readonly RunEvent[]; runTool: RunTool | null },
): Tool[] {
  const { definition } = track.state;
  const known = definition.tools?.filter((name) => builtInTools.some((tool) => tool.name === name));
  const tools = selectTools(known, { agent: definition.name });
  const agents = definition.agents.map((name) => ({ name, description: definition.subAgents[name]?.description ?? "" }));
  const subAgents = agents.length === 0 ? [] : [createSubAgentTool({ agents, start: () => Promise.reject(notRecorded("agent")) }) as Tool];
  const others = [...mcpToolNames(events)].map(recordedTool);
  return [...tools, ...others, ...subAgents].map((tool) => replayTool(tool, track, runTool));
}

/** A tool that only the recording knows. */
function recordedTool(name: string): Tool {
  return {
    name,
    description: "",
    parameters: z.unknown(),
    parallel: false,
    repeatable: false,
    files: "any",
    subject: () => name,
    run: () => Promise.reject(notRecorded(name)),
  };
}

const notRecorded = (name: string) => new CaissonError("internal", `the tool ${name} has no recorded result`);

function replayTool(tool: Tool, track: ReplayTrack, runTool: RunTool | null): Tool {
  return {
    ...tool,
    async run(args, context): Promise<ToolResult> {
      const recorded = track.cursor.resultOf(context.call)?.data;
      // The recorded driver died or was released during this call; the next one continues from here.
      if (recorded === undefined) return await new Promise<never>(() => {});
      if (runTool !== null) await runTool(tool, args, context, recorded);
      await track.untilResult(context.call);
      for (const { data } of track.cursor.todosOf(context.call)) await context.todo.set(data.todo);
      const { outcome, text, details } = recorded;
      if (outcome === "blocked" || outcome === "denied") return track.differ(`tool.started {"call":"${context.call}"}`);
      const files = track.cursor.filesOf(context.call).map(({ data: { call: _, ...file } }) => file);
      return { outcome, text, ...(details === undefined ? {} : { details }), files };
    },
  };
}

/** Repeats the recorded verdicts of the hooks, which worked in the sandbox. */
export function recordedHooks(track: ReplayTrack): readonly HookFunction[] {
  return [
    ({ call }) => {
      const recorded = track.cursor.resultOf(call)?.data;
      if (recorded?.outcome !== "blocked") return { kind: "continue" };
      if (recorded.text.startsWith(STOPPED_BY_HOOK)) return { kind: "interrupt", reason: recorded.text.slice(STOPPED_BY_HOOK.length) };
      return recorded.text.startsWith(BLOCKED_BY_HOOK)
        ? { kind: "block", reason: recorded.text.slice(BLOCKED_BY_HOOK.length) }
        : { kind: "continue" };
    },
  ];
}

const refused = () => new CaissonError("unsupported", "a replay reaches neither a sandbox nor the network");

/** Fails for every use. */
export function noSandbox(): Sandbox {
  return new Proxy({} as Sandbox, {
    get(_, name) {
      // A promise that resolves with it looks for this method.
      if (name === "then") return undefined;
      throw refused();
    },
  });
}

/** Everything that the network said is in the recorded results. */
export const noNetwork: RunNetwork = {
  fetch: () => Promise.reject(refused()),
  allow: () => Promise.reject(refused()),
  takeDenials: () => [],
  redact: (text) => text,
  settle: async () => undefined,
};
