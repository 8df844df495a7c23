import type { Readable, Writable } from "node:stream";
import type { McpBounds } from "../contract/api/mcp-bounds.ts";
import type { Config } from "../contract/config/config.ts";
import type { ConfigSources } from "../contract/config/config-sources.ts";
import type { SandboxEvent } from "../contract/sandbox/sandbox-event.ts";
import type { SandboxTools } from "../verbs/sandbox-tools.ts";
import type { Station } from "../verbs/station.ts";
import type { ContextControl } from "./context-control.ts";
import type { ServerControl } from "./server-control.ts";
import type { StationTarget } from "./station-target.ts";
import type { Output } from "./terminal/output.ts";
import type { Interruption } from "./terminal/signals.ts";

/** Everything that a command works with. Only main.ts knows where it comes from. */
export interface CliContext {
  readonly version: string;
  readonly cwd: string;
  /** The home folder that the user's environment names. */
  readonly home: string;
  readonly path: string;
  readonly stateDir: string;
  /** The folder of the user's configuration. */
  readonly configDir: string;
  readonly guestPath: string;
  /** Caisson's installation folder. */
  readonly packageDir: string;
  readonly config: Config;
  /** The configuration file that was read, or null without such a file. */
  readonly configFile: string | null;
  readonly configSources: ConfigSources;
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: Output;
  readonly stderr: Output;
  readonly interruption: Interruption;
  /** Standard output for long texts, through the user's pager on a terminal. */
  readonly pager: { open(): Promise<Output>; close(): Promise<void> };
  /** Returns a variable of the user's environment, for `--env NAME`. */
  variable(name: string): string | undefined;
  /** Starts this program with these arguments in the background, independent of this process. */
  startDetached(args: readonly string[]): Promise<void>;
  /** Which station `station` is. */
  readonly target: StationTarget;
  readonly station: Station;
  readonly tools: SandboxTools;
  /** Throws `invalid` if the user most likely did not mean to use this current folder. */
  refuseWrongPlace(folder: string, option: string): Promise<void>;
  readonly server: ServerControl;
  /** Serves an MCP client over these streams until it disconnects or `signal` aborts. */
  serveMcp(options: { bounds: McpBounds; input: Readable; output: Writable; signal: AbortSignal }): Promise<void>;
  readonly contexts: ContextControl;
  /** Removes the sandboxes that this process created without keeping them, even if they are held. */
  removeOwnSandboxes(): Promise<void>;
  /**
   * Serves the network of a kept sandbox, as its only server, until a signal ends this process or the sandbox is
   * removed.
   */
  serveNetwork(id: string): Promise<{ why: "interrupted" | "gone" } | { why: "served"; by: number | null }>;
  /** Calls the listener with every event of every sandbox that this process holds. */
  onEvent(listener: (event: SandboxEvent) => void): void;
}
