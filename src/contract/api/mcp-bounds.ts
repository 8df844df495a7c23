import type { NetworkPolicy } from "../network/network.ts";
import type { StartRunInput } from "../run/run-verbs.ts";
import type { CreateSandbox } from "../sandbox/sandbox-verbs.ts";

/**
 * The limits that a person set when connecting a model to the station. The model's requests are checked like those of a
 * `run` token, even if the person is an admin, and can only narrow `most`.
 */
export interface McpBounds {
  /** Defaults for the sandboxes that the model creates. */
  sandbox: CreateSandbox;
  /** Defaults for the runs that the model starts. */
  run: Pick<StartRunInput, "source" | "sourceNamed" | "settings" | "model">;
  /** The widest network policy allowed; null: whatever the token allows. */
  most: NetworkPolicy | null;
  /** Whether the model may name an image, a snapshot or a repository. */
  choosesTemplate: boolean;
  /** Whether sandboxes outlive the client by default. */
  keeps: boolean;
  /** Whether the model can access everything that the station shows, or only what it created itself. */
  reaches: "all" | "own";
}
