import type { SandboxEvent } from "../contract/event.ts";
import type { SandboxId } from "../contract/ids.ts";
import type { GatewayWire, RegistryName } from "../contract/network.ts";
import type { Usage } from "../contract/usage.ts";
import type { Redactor } from "./secrets/redactor.ts";
import type { RunSecretCommand } from "./secrets/secret-book.ts";

/** What the composition root gives to the networks of its sandboxes. */
export interface NetworkHost {
  stateDir: string;
  /** A variable of the user's environment: where secrets and the gateway's keys come from. */
  variable: (name: string) => string | undefined;
  runCommand: RunSecretCommand;
  /**
   * Starts a process that serves this sandbox's network from now on, independent of us; resolves when it was started.
   * Absent: this process serves as long as it holds the sandbox.
   */
  startKeeper?: (sandbox: SandboxId) => Promise<void>;
  /** Told what is worth a word to the user. Never with a value. */
  warn?: (text: string) => void;
  onEvent?: (event: SandboxEvent) => void;
  /**
   * What is known of secrets' values: of each sandbox, what every handle of it knows. For whoever passes events of
   * commands on (redacted-events.ts).
   */
  readonly redactors: Map<SandboxId, Set<Pick<Redactor, "json">>>;
  settings: NetworkSettings;
  /** US dollars; null where the price is not known. */
  prices: (wire: GatewayWire, model: string, usage: Usage & { cacheWriteInputTokens: number }) => number | null;
}

export interface NetworkSettings {
  /** Files with certificates (PEM) that upstreams are trusted by, besides Node's and the system's. */
  caFiles: readonly string[];
  /** Base URLs of registries in place of the public ones. */
  registries: Partial<Record<RegistryName, string>>;
  mirrorBytesMax?: number | undefined;
  /** Base URLs of model providers in place of their own. */
  gateway: Partial<Record<GatewayWire, string>>;
}
