import { selectTools } from "../../agent/tools/tool-set.ts";
import type { AgentDefinition, SubAgentDefinition } from "../../contract/agent.ts";
import { CaissonError } from "../../contract/error.ts";
import { withSubAgents } from "../runs/sub-agents.ts";

interface CheckAgentOptions {
  /** Agents by name or path. */
  find: (nameOrPath: string) => Promise<AgentDefinition>;
  /** Throws for a model that cannot be. */
  checkModel: (name: string) => Promise<unknown>;
}

/**
 * The agent with everyone it may hand work to. Throws `invalid` or `not_found` when it, or one of those, names a tool,
 * an MCP server, an agent or a model that there is not; all that is missing, one for each line.
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
    `the agent ${agent.name} asks for the tools of an MCP server ${JSON.stringify(server)}, which it does not name`,
    {
      hint: there === "" ? "Name it under `mcp` in its file." : `There are: ${there}.`,
    },
  );
}
