import type { FetchRequest, FetchResult } from "../sandbox/sandbox-network.ts";

/** Access to the sandbox's network for a run's tools. */
export interface RunNetwork {
  /** Fetches under the sandbox's rules; see `SandboxNetwork.fetch`. */
  fetch(request: FetchRequest): Promise<FetchResult>;
  /**
   * Adds one rule to the sandbox's network policy. Resolves with a description of the new policy. Throws `invalid` for
   * a malformed rule.
   */
  allow(rule: string, options: { by: string }): Promise<string>;
  /** Returns a sentence for each request denied since the last call, for the result of the tool that was running. */
  takeDenials(): readonly string[];
  redact(text: string): string;
  /** Writes all pending network events to the log. */
  settle(): Promise<void>;
}
