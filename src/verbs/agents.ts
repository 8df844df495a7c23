import { z } from "zod";
import { AgentDefinition } from "../contract/agent/agent.ts";
import { AgentFault, AgentTrust, AgentView, TrustedFile } from "../contract/agent/agent-verbs.ts";
import { reachOfAgent } from "../contract/api/required-scopes.ts";
import { LongText, recordOf } from "../contract/bounded.ts";
import { type VerbsOf, verb } from "./verb.ts";

/** An absolute path on the station's machine. */
const path = z.string().min(1).max(4096);
/** The name for the file in messages. */
const as = z.string().min(1).max(4096);

/** Agent files and their trust. */
export const agents = {
  /** Lists every agent. If several share a name, the one in effect comes first. */
  list: verb({
    path: "GET /v1/agents",
    gives: z.array(AgentView),
    key: "agents",
    scope: "read",
    owned: "everyone",
    summary: "List agents.",
  }),
  /** Gets an agent by name or path, with its template filled in. Throws `not_found`, `invalid`. */
  show: verb({
    path: "POST /v1/agents/show",
    takes: z.strictObject({ name: path, input: recordOf(z.string().max(200), LongText, 1000).optional() }),
    lead: "name",
    gives: AgentDefinition,
    scope: "read",
    owned: "everyone",
    reaches: reachOfAgent,
    summary: "Get one agent, with its template filled in.",
  }),
  /** Returns what is wrong with a file or with what it names (tools, agents, models), with the line, or null. */
  validate: verb({
    path: "POST /v1/agents/validate",
    takes: z.strictObject({ path, as }),
    lead: "path",
    gives: AgentFault.nullable(),
    key: "fault",
    scope: "admin",
    owned: "everyone",
    summary: "Check an agent file. The answer is null if nothing is wrong.",
  }),
  /** Resolves a path to agent files: the file itself, or the files in the folder. Throws `not_found`. */
  filesAt: verb({
    path: "POST /v1/agents/files",
    takes: z.strictObject({ path, as }),
    lead: "path",
    gives: z.array(z.string()),
    key: "paths",
    scope: "admin",
    owned: "everyone",
    summary: "List the agent files at a path: the file itself, or the files in the folder.",
  }),
  /** Returns what a file requests. */
  judge: verb({
    path: "POST /v1/agents/judge",
    takes: z.strictObject({ path }),
    lead: "path",
    gives: AgentTrust,
    scope: "admin",
    owned: "everyone",
    summary: "Show what an agent file requests beyond the rights of every agent.",
  }),
  /**
   * Grants what a file requests, for exactly the content that was judged. Throws `conflict` for other content, `denied`
   * for what cannot be granted.
   */
  trust: verb({
    path: "POST /v1/agents/trust",
    takes: z.strictObject({ path, digest: z.string().min(1).max(200) }),
    lead: "path",
    scope: "admin",
    owned: "admin",
    summary: "Grant what an agent file requests, for exactly the content that was judged.",
  }),
  trusted: verb({
    path: "GET /v1/agents/trusted",
    gives: z.array(TrustedFile),
    key: "files",
    scope: "admin",
    owned: "everyone",
    summary: "List the trusted agent files.",
  }),
  /** Withdraws trust in a file, or in all files below a folder. Resolves with their paths. */
  revoke: verb({
    path: "POST /v1/agents/revoke",
    takes: z.strictObject({ path }),
    lead: "path",
    gives: z.array(z.string()),
    key: "paths",
    scope: "admin",
    owned: "admin",
    summary: "Withdraw trust in a file, or in all files below a folder.",
  }),
};

export type AgentVerbs = VerbsOf<typeof agents>;
