import type { FetchRequest, FetchResult } from "../sandbox/sandbox-network.ts";

/** What the tools of a run have of its sandbox's network. */
export interface RunNetwork {
  /** Under the sandbox's rules; see `SandboxNetwork.fetch`. */
  fetch(request: FetchRequest): Promise<FetchResult>;
  /**
   * Lets the sandbox reach one thing more, from now on. Resolves with what it may reach then, in words. Throws
   * `invalid` for a malformed rule.
   */
  allow(rule: string, options: { by: string }): Promise<string>;
  /** What was denied since the last call, each in a sentence; for the result of the tool during which it happened. */
  takeDenials(): readonly string[];
  redact(text: string): string;
  /** Puts down everything that has happened so far. */
  settle(): Promise<void>;
}
