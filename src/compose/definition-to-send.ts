import { findAgent } from "../agent/file/find-agents.ts";
import type { AgentDefinition } from "../contract/agent.ts";
import { LOCAL_OWNER } from "../contract/owner.ts";
import type { StartRun } from "../contract/run-verbs.ts";
import { agentAsked } from "../station/runs/start-run.ts";
import type { CallersOptions } from "./caller.ts";
import { agentSource, secretsOf } from "./local-station.ts";

/** The whole definition of an agent that is the caller's file; what is built in, a station has itself. */
export async function definitionToSend(request: StartRun, { caller, isElsewhere }: CallersOptions): Promise<AgentDefinition | undefined> {
  if (typeof request.agent !== "string") return undefined;
  const agents = agentSource(caller);
  const { origin, passedOver } = await findAgent(request.agent, agents.places);
  if (origin === "built-in") {
    // The station does not see the files that this one was not found in; their owner is told.
    if (passedOver.length > 0) await agents.load(request.agent, { input: request.input, secrets: null });
    return undefined;
  }
  const nameable = isElsewhere ? null : await secretsOf(caller, LOCAL_OWNER);
  return agentAsked(request, { agents, nameable, defaultModel: caller.config.models.default });
}
