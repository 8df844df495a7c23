import type { NetworkPolicy } from "./network.ts";
import type { StartRunInput } from "./run-verbs.ts";
import type { CreateSandbox } from "./sandbox-verbs.ts";

/**
 * What a person decided when they connected a model to the station. The model's own wishes are judged as those of a
 * token that may `run`, whoever the caller is, and where there is a `most`, they can only narrow it.
 */
export interface McpBounds {
  /** What a sandbox is made from where the model says nothing. */
  sandbox: CreateSandbox;
  /** The same for a run. */
  run: Pick<StartRunInput, "source" | "sourceNamed" | "settings" | "model">;
  /** The network that nothing may go beyond; null: whatever a token may ask for. */
  most: NetworkPolicy | null;
  /** Whether the model may name an image, a snapshot or a repository. */
  choosesTemplate: boolean;
  /** Whether sandboxes outlive the client unless the model says otherwise. */
  keeps: boolean;
  /** Whether the model reaches everything that the station shows, or only what it made itself. */
  reaches: "all" | "own";
}
