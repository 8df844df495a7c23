import type { Readable, Writable } from "node:stream";
import type { Config } from "../contract/config.ts";
import type { ConfigSources } from "../contract/config-sources.ts";
import type { SandboxEvent } from "../contract/event.ts";
import type { McpBounds } from "../contract/mcp-bounds.ts";
import type { SandboxTools } from "../station/sandboxes/tools.ts";
import type { Station } from "../station/station.ts";
import type { ContextControl } from "./context-control.ts";
import type { ServerControl } from "./server-control.ts";
import type { StationTarget } from "./station-target.ts";
import type { Output } from "./terminal/output.ts";
import type { Interruption } from "./terminal/signals.ts";

/** What a command is given. Only main.ts knows where it comes from. */
export interface CliContext {
  readonly version: string;
  readonly cwd: string;
  /** Where things lie that the user's environment names. */
  readonly home: string;
  readonly path: string;
  readonly stateDir: string;
  /** Of the user's own configuration. */
  readonly configDir: string;
  readonly guestPath: string;
  /** Where Caisson itself is. */
  readonly packageDir: string;
  readonly config: Config;
  /** The file that was read, if there is one. */
  readonly configFile: string | null;
  readonly configSources: ConfigSources;
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly interruption: Interruption;
  /** Standard output for what may be long: through the user's pager on a terminal. */
  readonly pager: { open(): Promise<Output>; close(): Promise<void> };
  /** A variable of the user's environment, for `--env NAME`. */
  variable(name: string): string | undefined;
  /** Starts this program again with these arguments, in the background and independent of us. */
  startDetached(args: readonly string[]): Promise<void>;
  /** Which station `station` is. */
  readonly target: StationTarget;
  readonly station: Station;
  readonly tools: SandboxTools;
  /** Throws `invalid` for a current folder in which somebody most likely stands by mistake. */
  refuseWrongPlace(folder: string, option: string): Promise<void>;
  readonly server: ServerControl;
  /** Serves an MCP client over these streams, until it goes away or the signal. */
  serveMcp(options: { bounds: McpBounds; input: Readable; output: Writable; signal: AbortSignal }): Promise<void>;
  readonly contexts: ContextControl;
  /** Removes the sandboxes that this process made and does not mean to keep, whoever holds them. */
  removeOwnSandboxes(): Promise<void>;
  /** Serves the network of a kept sandbox, as its one keeper, until we are told to end or the sandbox is gone. */
  serveNetwork(id: string): Promise<{ why: "interrupted" | "gone" } | { why: "served"; by: number | null }>;
  /** Told of every event of every sandbox that this process holds. */
  onEvent(listener: (event: SandboxEvent) => void): void;
}
