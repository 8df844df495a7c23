import { z } from "zod";
import type { Usage } from "../../contract/model/usage.ts";
import type { Tool, ToolContext } from "../tool.ts";

export interface SubRun {
  run: string;
  reason: string;
  text: string;
  usage: Usage;
  costUsd: number | null;
}

/** Delegates a task to another agent in the same sandbox and workspace, within the remaining budgets. */
export function createSubAgentTool(options: {
  agents: readonly { name: string; description: string }[];
  start: (request: { agent: string; task: string; context: ToolContext }) => Promise<SubRun>;
}): Tool<{ agent: string; task: string }> {
  const list = options.agents.map((agent) => `${agent.name}: ${agent.description || "(no description)"}`).join("; ");
  const names = options.agents.map((agent) => agent.name);
  return {
    name: "agent",
    description: `Delegates a task to another agent, which works in the same workspace and returns its result. It knows nothing of this conversation, so the task must contain everything it needs. Agents: ${list}.`,
    parameters: z.strictObject({ agent: z.enum(names as [string, ...string[]]), task: z.string().min(1).max(50_000) }),
    parallel: false,
    repeatable: false,
    files: "any",
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
