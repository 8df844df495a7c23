import { readFileSync } from "node:fs";
import { mkdir } from "node:fs/promises";
import { homedir } from "node:os";
import { isAbsolute, join } from "node:path";
import { isatty } from "node:tty";
import type { CliContext } from "./cli/context.ts";
import { type RuntimeChoices, runCli } from "./cli/dispatch.ts";
import { line, messageLines } from "./cli/line.ts";
import { createOutput } from "./cli/output.ts";
import { watchSignals } from "./cli/signals.ts";
import type { SandboxEvent } from "./contract/event.ts";
import type { NetworkHost } from "./network/network-host.ts";
import { redactedEvents } from "./network/redacted-events.ts";
import { packageFiles } from "./package-files.ts";
import type { Runtime } from "./sandbox/runtime.ts";

/** The only place that reads the environment and chooses implementations. */
const { root, guestPath } = packageFiles(import.meta.filename);
// The launcher's own; a program that we start must not fill our cache.
delete process.env.NODE_COMPILE_CACHE;

const COMMAND_LINE_MAX = 100;
/** How this program is started again, to go on in the background. */
const self = [process.execPath, ...process.execArgv, process.argv[1] ?? ""] as const;
const variable = (name: string): string | undefined => process.env[name];
const colours = variable("NO_COLOR") === undefined;
const stdout = createOutput({ fd: 1, terminal: isatty(1) ? process.stdout : null, colours });
const stderr = createOutput({ fd: 2, terminal: isatty(2) ? process.stderr : null, colours });
const interruption = watchSignals();
// Node would write these to the terminal as they are, and what they say may come from inside.
process.removeAllListeners("warning");
process.on("warning", (warning) => {
  // Node 22 says so of SQLite; users can do nothing about it.
  if (warning.name !== "ExperimentalWarning") void stderr.print(messageLines(`caisson: ${warning.message}`));
});
process.on("uncaughtException", (error) => {
  void stderr
    .print(messageLines(`caisson: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`))
    .then(() => process.exit(125));
});
const { version } = JSON.parse(readFileSync(join(root, "package.json"), "utf8")) as { version: string };

async function makeContext(choices: RuntimeChoices): Promise<CliContext> {
  const home = variable("HOME") ?? homedir();
  const path = variable("PATH") ?? "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  const stateDir = variable("CAISSON_HOME") ?? join(absolute(variable("XDG_STATE_HOME")) ?? join(home, ".local", "state"), "caisson");
  const configDir = join(absolute(variable("XDG_CONFIG_HOME")) ?? join(home, ".config"), "caisson");
  const [{ loadConfig }, { createRuntimeSet }, { createResolver }] = await Promise.all([
    import("./cli/config.ts"),
    import("./sandbox/runtime-set.ts"),
    import("./sandbox/resolver.ts"),
    mkdir(stateDir, { recursive: true, mode: 0o700 }),
  ]);
  const { config, file: configFile, sources: configSources } = await loadConfig({ stateDir, configDir, variable });
  const listeners: ((event: SandboxEvent) => void)[] = [];
  const tell = (event: SandboxEvent) => {
    for (const listener of listeners) listener(event);
  };
  const redactors: NetworkHost["redactors"] = new Map();
  const ociRuntime = choices.ociRuntime ?? config.ociRuntime;
  const withNetwork = async (runtime: Runtime) => {
    const [{ networked }, { composeNetwork }] = await Promise.all([
      import("./network/held/networked-runtime.ts"),
      import("./compose-network.ts"),
    ]);
    const { prices } = config.models;
    const host = composeNetwork({
      stateDir,
      program: self,
      env: process.env,
      settings: config.network,
      ownPrices: prices,
      redactors,
      warn: (text) => void stderr.print(line`caisson: ${text}`),
      ...(choices.events ? { onEvent: tell } : {}),
    });
    return networked(runtime, host);
  };
  const runtimes = createRuntimeSet({
    context: { stateDir, guestPath, ...(choices.events ? { onEvent: redactedEvents(tell, redactors) } : {}) },
    factories: {
      oci: async (context) => {
        const { createOciRuntime } = await import("./runtimes/oci/runtime.ts");
        const session = { runtimeDir: variable("XDG_RUNTIME_DIR"), busAddress: variable("DBUS_SESSION_BUS_ADDRESS") };
        const options = { home, path, command: commandLine(process.argv.slice(2)), session: withoutUndefined(session) };
        return withNetwork(createOciRuntime(context, { ...options, ...(ociRuntime === undefined ? {} : { ociRuntime }) }));
      },
      docker: async (context) => {
        const { createDockerRuntime } = await import("./runtimes/docker/runtime.ts");
        const location = { host: variable("DOCKER_HOST"), runtimeDir: variable("XDG_RUNTIME_DIR"), defaultImage: config.dockerImage };
        return withNetwork(createDockerRuntime(context, withoutUndefined(location)));
      },
      host: async (context) => withNetwork((await import("./runtimes/host/runtime.ts")).createHostRuntime(context)),
    },
  });
  const { fallbackRuntime } = config;
  const resolver = createResolver({ runtimes, stateDir, guestPath, path, ...(fallbackRuntime === undefined ? {} : { fallbackRuntime }) });
  return {
    version,
    cwd: process.cwd(),
    home,
    path,
    stateDir,
    configDir,
    guestPath,
    packageDir: root,
    config,
    configFile,
    configSources,
    stdin: process.stdin,
    stdout,
    stderr,
    interruption,
    variable,
    startDetached: async (args) => {
      const { startDetached } = await import("./compose-network.ts");
      await startDetached({ program: self, args, stateDir, env: process.env });
    },
    runtimes,
    resolver,
    onEvent: (listener) => void listeners.push(listener),
  };
}

/** As the XDG specification wants it: a relative path is not valid, and would take the configuration from whatever folder one stands in. */
function absolute(path: string | undefined): string | undefined {
  return path !== undefined && isAbsolute(path) ? path : undefined;
}

/** How this program was called, as it would be typed; what is long is only hinted at. */
function commandLine(args: readonly string[]): string {
  const words = args.map((word) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`));
  const line = ["caisson", ...words].join(" ");
  return line.length <= COMMAND_LINE_MAX ? line : "caisson …";
}

/** An option that is not set must be absent. */
function withoutUndefined<T extends object>(options: T): { [K in keyof T]?: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)) as {
    [K in keyof T]?: Exclude<T[K], undefined>;
  };
}

const exitCode = await runCli({ version, argv: process.argv.slice(2), stdout, stderr, interruption, context: makeContext });
const received = interruption.received();
if (received !== null && (stdout.pending() || stderr.pending())) {
  // A thread is stuck in a write that nobody reads, and an orderly exit would wait for it for ever.
  process.removeAllListeners(received);
  process.kill(process.pid, received);
} else {
  process.exit(exitCode);
}
