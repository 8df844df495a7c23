import type { CliContext } from "../cli/context.ts";
import type { ContextControl } from "../cli/context-control.ts";
import type { RuntimeChoices } from "../cli/dispatch.ts";
import type { ServerControl } from "../cli/server-control.ts";
import { line } from "../cli/terminal/line.ts";
import type { SandboxEvent } from "../contract/event.ts";
import { defined } from "../lib/defined.ts";
import { readEnvironment, type Variables } from "./environment.ts";
import { lazyVerbs } from "./lazy-verbs.ts";
import { loadConfig } from "./load-config.ts";
import { createPager } from "./pager.ts";
import { composeRuntimes } from "./runtimes.ts";
import type { ServerParts } from "./server.ts";
import { openStateFolder } from "./state-folder.ts";
import { composeStation, sandboxTools } from "./station.ts";

const COMMAND_LINE_MAX = 100;

/**
 * What a command is given, from what the program found about itself. Makes the state folder. Throws `invalid` for a
 * configuration that is wrong.
 */
export async function composeCli(
  options: Pick<CliContext, "version" | "packageDir" | "guestPath" | "cwd" | "stdin" | "stdout" | "stderr" | "interruption"> & {
    variables: Variables;
    argv: readonly string[];
    /** How this program is started again, to go on in the background. */
    program: readonly [string, ...string[]];
    choices: RuntimeChoices;
  },
): Promise<CliContext> {
  const { variables, argv, program, choices, ...face } = options;
  const environment = readEnvironment(variables);
  const { stateDir, configDir, home, path } = environment;
  const variable = (name: string) => variables[name];
  await openStateFolder(stateDir);
  const { config, file: configFile, sources: configSources } = await loadConfig({ stateDir, configDir, variable });
  const say = choices.quiet === true ? () => {} : (text: string) => void options.stderr.print(line`caisson: ${text}`);
  const listeners: ((event: SandboxEvent) => void)[] = [];
  const tell = (event: SandboxEvent) => {
    for (const listener of listeners) listener(event);
  };
  const settings = { ...config, ...defined({ ociRuntime: choices.ociRuntime }) };
  const compose = (ociRuntime: string | undefined) =>
    composeRuntimes({
      environment,
      guestPath: options.guestPath,
      program,
      settings: { ...settings, ...defined({ ociRuntime }) },
      command: commandLine(argv),
      warn: say,
      ...defined({ onEvent: choices.events ? tell : undefined }),
    });
  const { runtimes, resolver } = compose(undefined);
  const others = new Map<string, ReturnType<typeof compose>>();
  const resolverFor = (ociRuntime: string | undefined) => {
    if (ociRuntime === undefined || ociRuntime === settings.ociRuntime) return resolver;
    const known = others.get(ociRuntime) ?? compose(ociRuntime);
    others.set(ociRuntime, known);
    return known.resolver;
  };
  const local = { cwd: options.cwd, home, path, stateDir, configDir, config, configFile, variable };
  const startAgain = async (args: readonly string[]) => {
    const { startDetached } = await import("./network.ts");
    await startDetached({ program, args, stateDir, env: variables });
  };
  const station = composeStation({
    ...local,
    version: options.version,
    guestPath: options.guestPath,
    runtimes,
    resolver,
    resolverFor,
    say,
    startDetached: startAgain,
  });
  return {
    ...face,
    ...local,
    configSources,
    pager: createPager({ stdout: options.stdout, stderr: options.stderr, variables, path }),
    station,
    tools: sandboxTools,
    removeOwnSandboxes: () => station.sandboxes.removeOwn(),
    serveNetwork: (id) => station.networks.serve(id, options.interruption),
    startDetached: startAgain,
    server: lazyServer({ station, stateDir, version: options.version, program, env: variables, say, bounds: config.station }),
    contexts: lazyContexts(configDir),
    async serveMcp(asked) {
      const { serveMcpOverStdio } = await import("../api/mcp/stdio.ts");
      const onDefect = (error: unknown) => say(`a call failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
      await serveMcpOverStdio({ ...asked, station, scope: "admin", by: "mcp", version: options.version, onDefect });
    },
    onEvent: (listener) => void listeners.push(listener),
  };
}

function lazyContexts(configDir: string): ContextControl {
  return lazyVerbs<ContextControl>(
    { list: "answer", save: "answer", use: "answer", show: "answer", remove: "answer", check: "answer", forgetToken: "answer" },
    async () => (await import("./contexts.ts")).createContexts({ configDir }),
  );
}

/** Loaded with its first use: few commands serve or look for a server. */
function lazyServer(parts: ServerParts): ServerControl {
  return lazyVerbs<ServerControl>({ start: "answer", startDetached: "answer", reach: "answer" }, async () => {
    const { composeServer } = await import("./server.ts");
    return composeServer(parts);
  });
}

/** How this program was called, as it would be typed; what is long is only hinted at. */
function commandLine(args: readonly string[]): string {
  const words = args.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`));
  const typed = ["caisson", ...words].join(" ");
  return typed.length <= COMMAND_LINE_MAX ? typed : "caisson …";
}
