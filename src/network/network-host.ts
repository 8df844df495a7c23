import type { SandboxId } from "../contract/ids.ts";
import type { Usage } from "../contract/model/usage.ts";
import type { GatewayWire, RegistryName } from "../contract/network/network.ts";
import type { SandboxEvent } from "../contract/sandbox/sandbox-event.ts";
import type { Redactor } from "./secrets/redactor.ts";
import type { RunSecretCommand } from "./secrets/secret-book.ts";

/** The dependencies that the composition root gives to the networks of its sandboxes. */
export interface NetworkHost {
  stateDir: string;
  /** Reads a variable of the user's environment, where secrets and gateway keys come from. */
  variable: (name: string) => string | undefined;
  runCommand: RunSecretCommand;
  /**
   * Starts an independent process that serves this sandbox's network from now on. Resolves when it has started. Absent:
   * this process serves the network as long as it holds the sandbox.
   */
  startKeeper?: (sandbox: SandboxId) => Promise<void>;
  /** Receives warnings for the user. They never contain a value. */
  warn?: (text: string) => void;
  onEvent?: (event: SandboxEvent) => void;
  /**
   * Redactors for the known secret values: for each sandbox, those of all its handles. For code that forwards command
   * events (redacted-events.ts).
   */
  readonly redactors: Map<SandboxId, Set<Pick<Redactor, "json">>>;
  settings: NetworkSettings;
  /** Returns US dollars, or null if the price is not known. */
  prices: (wire: GatewayWire, model: string, usage: Usage & { cacheWriteInputTokens: number }) => number | null;
}

export interface NetworkSettings {
  /** PEM files with certificates to trust for upstreams, in addition to Node's and the system's. */
  caFiles: readonly string[];
  /** Base URLs of registries that replace the public ones. */
  registries: Partial<Record<RegistryName, string>>;
  mirrorBytesMax?: number | undefined;
  /** Base URLs of model providers instead of the defaults. */
  gateway: Partial<Record<GatewayWire, string>>;
}
