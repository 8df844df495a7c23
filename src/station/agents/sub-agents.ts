import { joinedFloor } from "../../agent/permissions.ts";
import type { AgentDefinition, SubAgentDefinition } from "../../contract/agent/agent.ts";
import { CaissonError } from "../../contract/error/error.ts";

/** An agent that leads to more agents than this is a mistake or an attack. */
const SUB_AGENTS_MAX = 100;

/**
 * Returns the definition with the current definition of every agent that it may hand work to, directly or through other
 * agents. A resumed run keeps the definitions that it started with. Agents that the definition already contains stay
 * unchanged. Throws what `find` throws, and `too_large`.
 */
export async function withSubAgents(
  definition: AgentDefinition,
  find: (nameOrPath: string) => Promise<AgentDefinition>,
): Promise<AgentDefinition> {
  const known = new Map<string, SubAgentDefinition>(Object.entries(definition.subAgents));
  const wanted = [...definition.agents, ...[...known.values()].flatMap(({ agents }) => agents)];
  for (const name of wanted) {
    if (known.has(name)) continue;
    if (known.size >= SUB_AGENTS_MAX)
      throw new CaissonError("too_large", `the agent ${definition.name} leads to more than ${SUB_AGENTS_MAX} others`);
    const { subAgents: _, ...found } = await find(name);
    known.set(name, found);
    wanted.push(...found.agents);
  }
  return known.size === 0 ? definition : { ...definition, subAgents: Object.fromEntries(known) };
}

/**
 * Returns the agents that this one may hand work to directly. They get the same set of agents, and a floor that is at
 * least as strict as this agent's.
 */
export function subAgentsOf(definition: AgentDefinition): AgentDefinition[] {
  const { subAgents } = definition;
  return definition.agents.flatMap((name) => {
    const found = subAgents[name];
    return found === undefined ? [] : [{ ...found, floor: joinedFloor(found.floor, definition.floor), subAgents }];
  });
}
