import { z } from "zod";
import type { Usage } from "../../contract/usage.ts";
import type { Tool, ToolContext } from "../tool.ts";

export interface SubRun {
  run: string;
  reason: string;
  text: string;
  usage: Usage;
  costUsd: number | null;
}

/** Gives a piece of the work to another agent, in the same sandbox and workspace, within the budgets that are left. */
export function createSubAgentTool(options: {
  agents: readonly { name: string; description: string }[];
  start: (request: { agent: string; task: string; context: ToolContext }) => Promise<SubRun>;
}): Tool<{ agent: string; task: string }> {
  const list = options.agents.map((agent) => `${agent.name}: ${agent.description || "(no description)"}`).join("; ");
  const names = options.agents.map((agent) => agent.name);
  return {
    name: "agent",
    description: `Hands a task to another agent, which works in the same workspace and answers with its result. It knows nothing of this conversation: the task must say everything. Agents: ${list}.`,
    parameters: z.strictObject({ agent: z.enum(names as [string, ...string[]]), task: z.string().min(1).max(50_000) }),
    parallel: false,
    repeatable: false,
    resumable: true,
    subject: (args) => `agent:${args.agent}`,
    async run(args, context) {
      const sub = await options.start({ ...args, context });
      const details = { run: sub.run, reason: sub.reason, usage: sub.usage, costUsd: sub.costUsd };
      if (sub.reason === "done") return { outcome: "ok", text: sub.text, details };
      return {
        outcome: sub.reason === "cancelled" ? "interrupted" : "error",
        text: `${args.agent} ended with ${sub.reason}: ${sub.text}`,
        details,
      };
    },
  };
}
