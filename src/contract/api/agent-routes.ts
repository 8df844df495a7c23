import { z } from "zod";
import { AgentDefinition } from "../agent.ts";
import { AgentFault, AgentTrust, AgentView, TrustedFile } from "../agent-verbs.ts";
import { LongText, recordOf } from "../bounded.ts";
import { reachOfAgent } from "./reach.ts";
import type { Route } from "./route.ts";

/** Of the station's machine, absolute. */
const path = z.string().min(1).max(4096);
/** What the file is called in what is said of it. */
const as = z.string().min(1).max(4096);

export const agentRoutes = {
  "agents.list": { summary: "List agents.", scope: "read", answer: { json: z.object({ agents: z.array(AgentView) }) } },
  "agents.show": {
    summary: "One agent, with its template filled in.",
    scope: "read",
    body: z.strictObject({ name: path, input: recordOf(z.string().max(200), LongText, 1000).optional() }),
    reaches: reachOfAgent,
    answer: { json: AgentDefinition },
  },
  "agents.validate": {
    summary: "What is wrong with an agent's file, or null.",
    scope: "admin",
    body: z.strictObject({ path, as }),
    answer: { json: z.object({ fault: AgentFault.nullable() }) },
  },
  "agents.filesAt": {
    summary: "The agents' files that a path stands for: itself, or those in a folder.",
    scope: "admin",
    body: z.strictObject({ path, as }),
    answer: { json: z.object({ paths: z.array(z.string()) }) },
  },
  "agents.judge": {
    summary: "What an agent's file asks for beyond what any agent may do.",
    scope: "admin",
    body: z.strictObject({ path }),
    answer: { json: AgentTrust },
  },
  "agents.trust": {
    summary: "Agree to what an agent's file asks for, with exactly the content that was judged.",
    scope: "admin",
    body: z.strictObject({ path, digest: z.string().min(1).max(200) }),
    answer: {},
  },
  "agents.trusted": {
    summary: "The agents' files that were agreed to.",
    scope: "admin",
    answer: { json: z.object({ files: z.array(TrustedFile) }) },
  },
  "agents.revoke": {
    summary: "Take back what was agreed to for a file, or for all below a folder.",
    scope: "admin",
    body: z.strictObject({ path }),
    answer: { json: z.object({ paths: z.array(z.string()) }) },
  },
} as const satisfies Record<string, Route>;
