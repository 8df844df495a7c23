import { findAgent } from "../agent/file/find-agents.ts";
import type { AgentDefinition } from "../contract/agent/agent.ts";
import type { StartRun } from "../contract/run/run-verbs.ts";
import { LOCAL_OWNER } from "../contract/token/owner.ts";
import { loadRequestedAgent } from "../station/runs/start-run.ts";
import type { ClientSideOptions } from "./caller.ts";
import { agentSource, secretsOf } from "./local-parts.ts";

/** Returns the full definition of an agent from the caller's files; the station has the built-in ones itself. */
export async function definitionToSend(
  request: StartRun,
  { caller, isElsewhere }: ClientSideOptions,
): Promise<AgentDefinition | undefined> {
  if (typeof request.agent !== "string") return undefined;
  const agents = agentSource(caller);
  const { origin, passedOver } = await findAgent(request.agent, agents.places);
  if (origin === "built-in") {
    // The station cannot see that agent files were skipped, so we notify their owner here.
    if (passedOver.length > 0) await agents.load(request.agent, { input: request.input, secrets: null });
    return undefined;
  }
  const nameable = isElsewhere ? null : await secretsOf(caller, LOCAL_OWNER);
  return loadRequestedAgent(request, { agents, nameable, defaultModel: caller.config.models.default });
}
