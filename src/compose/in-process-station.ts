import type { RequestSpans } from "../api/observe/observer.ts";
import type { CliContext } from "../cli/context.ts";
import type { RuntimeChoices } from "../cli/dispatch.ts";
import type { SandboxEvent } from "../contract/sandbox/sandbox-event.ts";
import { defined } from "../lib/defined.ts";
import { Resources } from "../lib/resources.ts";
import type { AppendListener } from "../log/observed-log.ts";
import type { Environment } from "./environment.ts";
import type { LocalParts } from "./local-parts.ts";
import { composeRuntimes } from "./runtimes.ts";
import { composeStation, type LocalVerbs } from "./station.ts";
import { traceEndpoint } from "./trace-endpoint.ts";

const COMMAND_LINE_MAX = 100;

export interface InProcessOptions
  extends Pick<CliContext, "version" | "guestPath">,
    Pick<LocalParts, "cwd" | "home" | "path" | "stateDir" | "configDir" | "config" | "configFile" | "variable" | "say"> {
  environment: Environment;
  argv: readonly string[];
  /** The command line that starts this program again, to continue in the background. */
  program: readonly [string, ...string[]];
  choices: RuntimeChoices;
  onEvent: (event: SandboxEvent) => void;
}

/** A station within this process, with operations that only such a station has. */
export interface InProcessStation {
  readonly station: LocalVerbs;
  /** Starts this program again with these arguments, in the background and independent of this process. */
  startDetached(args: readonly string[]): Promise<void>;
  /** Starts to keep sandboxes ready, if configured. */
  warm(): Promise<void>;
  /** Calls the listener with every event that this process appends. */
  onAppended(listener: AppendListener): void;
  /** Spans for requests to a server in this process; null without tracing. */
  readonly spans: RequestSpans | null;
}

export async function composeInProcess(options: InProcessOptions): Promise<InProcessStation> {
  const { environment, program, choices, config, say } = options;
  const settings = { ...config, ...defined({ ociRuntime: choices.ociRuntime }) };
  const compose = (ociRuntime?: string) =>
    composeRuntimes({
      environment,
      guestPath: options.guestPath,
      program,
      settings: { ...settings, ...defined({ ociRuntime }) },
      command: commandLine(options.argv),
      warn: say,
      ...defined({
        onEvent: choices.events ? options.onEvent : undefined,
        // The pool keeps only sandboxes of the usual OCI runtime: few requests name another.
        pool: choices.ready === undefined || ociRuntime !== undefined ? undefined : { sandboxes: choices.ready, networkNamespaces: 0 },
      }),
    });
  const { runtimes, resolver } = compose();
  const others = new Map<string, ReturnType<typeof compose>>();
  const resolverFor = (ociRuntime: string | undefined) => {
    if (ociRuntime === undefined || ociRuntime === settings.ociRuntime) return resolver;
    const known = others.get(ociRuntime) ?? compose(ociRuntime);
    others.set(ociRuntime, known);
    return known.resolver;
  };
  const startDetached = async (args: readonly string[]) => {
    const network = await import("./network.ts");
    await network.startDetached({ program, args, stateDir: options.stateDir, env: environment.variables });
  };
  const endpoint = traceEndpoint(environment.variables, config.telemetry.endpoint);
  const tracing = endpoint === undefined ? null : { endpoint, version: options.version };
  const telemetry = tracing && (await import("./telemetry.ts")).composeTelemetry(tracing);
  const appended: AppendListener[] = telemetry === null ? [] : [telemetry.appended];
  const onAppended: AppendListener = (...each) => {
    for (const listener of appended) listener(...each);
  };
  const startAttackedStation = async () =>
    (await import("./attacked-station.ts")).startAttackedStation({ program, env: environment.variables });
  const own = { runtimes, resolver, resolverFor, startDetached, startAttackedStation, onAppended };
  const station = composeStation({ ...options, ...own });
  const end = async () => {
    await using ending = new Resources();
    // Telemetry ends last, so it includes the station's final actions.
    if (telemetry !== null) ending.use(telemetry);
    for (const other of others.values()) ending.use(other);
    ending.use(station);
  };
  return {
    station: { ...station, [Symbol.asyncDispose]: end },
    onAppended: (listener) => void appended.push(listener),
    spans: telemetry,
    startDetached,
    async warm() {
      if (choices.ready !== undefined) await resolver.resolve(config.runtime);
    },
  };
}

/** Returns the command line as the user would type it, shortened to `caisson …` if it is long. */
function commandLine(args: readonly string[]): string {
  const words = args.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`));
  const typed = ["caisson", ...words].join(" ");
  return typed.length <= COMMAND_LINE_MAX ? typed : "caisson …";
}
