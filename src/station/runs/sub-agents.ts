import { joinedFloor } from "../../agent/permissions.ts";
import type { AgentDefinition, SubAgentDefinition } from "../../contract/agent.ts";
import { CaissonError } from "../../contract/error.ts";

/** An agent that names more, by way of those it names, is a mistake or a trick. */
const SUB_AGENTS_MAX = 100;

/**
 * The definition with everyone it may hand work to, directly or by way of others, as they are now: a run goes on with
 * what it began with, wherever and whenever it is resumed. Those that it has already are left as they are. Throws what
 * `find` throws, and `too_large`.
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

/** Those that it may hand work to itself, each able to do the same, and none of them above its own floor. */
export function subAgentsOf(definition: AgentDefinition): AgentDefinition[] {
  const { subAgents } = definition;
  return definition.agents.flatMap((name) => {
    const found = subAgents[name];
    return found === undefined ? [] : [{ ...found, floor: joinedFloor(found.floor, definition.floor), subAgents }];
  });
}
