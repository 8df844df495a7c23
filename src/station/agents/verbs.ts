import type { AgentDefinition } from "../../contract/agent.ts";
import type { AgentFault, AgentTrust, AgentView, TrustedFile } from "../../contract/agent-verbs.ts";

/** What can be done with agents' files, and with the trust in them. */
export interface AgentVerbs {
  /** Every one, those that win by name first. */
  list(): Promise<AgentView[]>;
  /** By name or path, with its template filled in. Throws `not_found`, `invalid`. */
  show(name: string, options?: { input?: Readonly<Record<string, string>> }): Promise<AgentDefinition>;
  /**
   * What is wrong with a file, with its line, or with what it names (tools, agents, models), or null. `as` is what the
   * file is called in it.
   */
  validate(path: string, options: { as: string }): Promise<AgentFault | null>;
  /**
   * The files that a path stands for: itself, or those that a folder keeps. Throws `not_found`; `as` is what the path
   * is called in it.
   */
  filesAt(path: string, options: { as: string }): Promise<string[]>;
  /** What a file asks for. */
  judge(path: string): Promise<AgentTrust>;
  /**
   * Agrees to what a file asks for, with exactly the content that was judged. Throws `conflict` for another one,
   * `denied` for what cannot be granted.
   */
  trust(path: string, options: { digest: string }): Promise<void>;
  trusted(): Promise<TrustedFile[]>;
  /** Takes back what was agreed to for a file, or for all below a folder; resolves with their paths. */
  revoke(path: string): Promise<string[]>;
}
