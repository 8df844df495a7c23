import type { NetworkPolicy } from "../../contract/network.ts";
import type { StartRunInput } from "../../contract/run-verbs.ts";
import type { CreateSandbox } from "../../contract/sandbox-verbs.ts";
import type { Station } from "../../station/station.ts";
import type { HeldThings } from "./held-things.ts";

export type McpStation = Pick<Station, "sandboxes" | "sessions" | "runs" | "networks" | "agents">;

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

export interface McpContext {
  readonly station: McpStation;
  readonly bounds: McpBounds;
  readonly held: HeldThings;
  /** As a log of events shall name the caller. */
  readonly by: string;
}
