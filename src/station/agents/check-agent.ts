import { selectTools } from "../../agent/tools/tool-set.ts";
import type { AgentDefinition, SubAgentDefinition } from "../../contract/agent/agent.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { withSubAgents } from "./sub-agents.ts";

interface CheckAgentOptions {
  /** Finds an agent by name or path. */
  find: (nameOrPath: string) => Promise<AgentDefinition>;
  /** Throws if the agent cannot use this model. */
  checkModel: (name: string) => Promise<unknown>;
}

/**
 * Returns the agent with every agent that it may hand work to. Throws `invalid` or `not_found` if one of them names a
 * tool, an MCP server, an agent or a model that does not exist; the message has a line for each.
 */
export async function checkAgent(definition: AgentDefinition, options: CheckAgentOptions): Promise<AgentDefinition> {
  const faults: CaissonError[] = [];
  const noting = async <Result>(work: () => Promise<Result>): Promise<Result | undefined> => {
    try {
      return await work();
    } catch (error) {
      if (!(error instanceof CaissonError)) throw error;
      faults.push(error);
      return undefined;
    }
  };
  const complete = await noting(() => withSubAgents(definition, options.find));
  for (const agent of [definition, ...Object.values(complete?.subAgents ?? {})]) {
    for (const tool of agent.tools ?? []) await noting(async () => checkTool(tool, agent));
    const { model } = agent;
    if (model !== undefined) await noting(() => options.checkModel(model));
  }
  const [first] = faults;
  if (complete !== undefined && first === undefined) return complete;
  if (faults.length === 1) throw first;
  throw new CaissonError("invalid", faults.map(({ message, hint }) => (hint === undefined ? message : `${message} (${hint})`)).join("\n"));
}

function checkTool(tool: string, agent: SubAgentDefinition): void {
  selectTools([tool], { agent: agent.name });
  const server = /^mcp:(.*)$/.exec(tool)?.[1];
  if (server === undefined || Object.hasOwn(agent.mcp, server)) return;
  const there = Object.keys(agent.mcp).join(", ");
  throw new CaissonError(
    "invalid",
    `the agent ${agent.name} requests the tools of the MCP server ${JSON.stringify(server)}, which its file does not define`,
    {
      hint: there === "" ? "Define it under `mcp` in the agent file." : `Defined servers: ${there}.`,
    },
  );
}
