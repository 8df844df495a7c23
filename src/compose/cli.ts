import { existsSync } from "node:fs";
import type { CliContext } from "../cli/context.ts";
import type { ContextControl } from "../cli/context-control.ts";
import type { RuntimeChoices } from "../cli/dispatch.ts";
import type { ServerControl } from "../cli/server-control.ts";
import type { StationTarget } from "../cli/station-target.ts";
import { askYes, canAsk } from "../cli/terminal/ask-yes.ts";
import { line } from "../cli/terminal/line.ts";
import type { RemoteStation } from "../client/remote/remote-station.ts";
import type { SandboxEvent } from "../contract/sandbox/sandbox-event.ts";
import { defined } from "../lib/defined.ts";
import type { Station } from "../verbs/station.ts";
import type { ClientSideOptions } from "./caller.ts";
import type { AskYes } from "./client-side-folders.ts";
import { contextsFile, readEnvironment, type Variables } from "./environment.ts";
import { lazyVerbs } from "./lazy-verbs.ts";
import { loadConfig } from "./load-config.ts";
import { openVolumeOf } from "./open-volume.ts";
import { createPager } from "./pager.ts";
import type { StationAccess } from "./remote.ts";
import type { ServerParts } from "./server.ts";
import { openStateFolder } from "./state-folder.ts";
import { findOwnStation, settingsText } from "./target.ts";
import { sandboxTools } from "./tools.ts";

/**
 * Builds the context of a command from what the program knows about itself. Creates the state folder. Throws `invalid`
 * for an invalid configuration.
 */
export async function composeCli(
  options: Pick<CliContext, "version" | "packageDir" | "guestPath" | "cwd" | "stdin" | "stdout" | "stderr" | "interruption"> & {
    consoleDir: string;
    variables: Variables;
    argv: readonly string[];
    /** The command line that starts this program again, to continue in the background. */
    program: readonly [string, ...string[]];
    choices: RuntimeChoices;
  },
): Promise<CliContext> {
  const { variables, argv, program, choices, consoleDir, ...face } = options;
  const environment = readEnvironment(variables);
  const { stateDir, configDir, home, path } = environment;
  const variable = (name: string) => variables[name];
  openStateFolder(stateDir);
  const { config, file: configFile, sources: configSources } = await loadConfig({ stateDir, configDir, variable });
  await openVolumeOf({ stateDir, guestPath: options.guestPath, path, bytes: config.volumeBytes });
  const say = choices.quiet === true ? () => {} : (text: string) => void options.stderr.print(line`caisson: ${text}`);
  const listeners: ((event: SandboxEvent) => void)[] = [];
  const onEvent = (event: SandboxEvent) => {
    for (const listener of listeners) listener(event);
  };
  const local = { cwd: options.cwd, home, path, stateDir, configDir, config, configFile, variable };
  const settings = settingsText(config, { environment, program });
  const chosen = await chooseTarget(choices, {
    ...{ stateDir, configDir, variables, settings },
    version: options.version,
    leaving: options.interruption.signal,
  });
  const here = once(async () => {
    const { composeInProcess } = await import("./in-process-station.ts");
    return composeInProcess({ ...options, ...local, environment, say, onEvent });
  });
  const working = await workingStation(chosen, {
    here,
    caller: { ...local, say },
    leaving: options.interruption.signal,
    ask: canAsk(options)
      ? (folder) => askYes(options, line`This work belongs to ${folder}, which is not your current folder. Write there?`)
      : null,
    onEvent: choices.events ? onEvent : undefined,
    ociRuntime: choices.ociRuntime,
  });
  const serverSettings = {
    ...{ stateDir, consoleDir, version: options.version, settings, program, env: variables, bounds: config.station },
    metricsWithoutToken: config.telemetry.metricsWithoutToken,
  };
  return {
    ...face,
    ...local,
    configSources,
    target: chosen.target,
    pager: createPager({ stdout: options.stdout, stderr: options.stderr, variables, path }),
    station: working.station,
    tools: sandboxTools,
    async refuseWrongPlace(folder, option) {
      (await import("../workspace/wrong-place.ts")).refuseWrongPlace(folder, { places: { home, stateDir }, option });
    },
    removeOwnSandboxes: working.removeOwn,
    serveNetwork: async (id) => (await here()).station.networks.serve(id, options.interruption),
    startDetached: async (args) => (await here()).startDetached(args),
    server: lazyServer(async () => ({
      ...(await here()),
      ...serverSettings,
      ...(chosen.target.kind === "elsewhere" && { chosen: { url: chosen.target.url, access: chosen.access ?? {} } }),
    })),
    contexts: lazyContexts(configDir),
    async serveMcp(mcpOptions) {
      const { serveMcpOverStdio } = await import("../api/mcp/stdio.ts");
      const onDefect = (error: unknown) => say(`a call failed: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
      await serveMcpOverStdio({ ...mcpOptions, station: working.station, scope: "admin", by: "mcp", version: options.version, onDefect });
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

interface Chosen {
  target: StationTarget;
  /** The credentials for a remote station. */
  access?: StationAccess;
}

async function chooseTarget(
  choices: RuntimeChoices,
  options: { stateDir: string; configDir: string; variables: Variables; version: string; settings: string; leaving: AbortSignal },
): Promise<Chosen> {
  const { variables, configDir } = options;
  const here: Chosen = { target: { kind: "here" } };
  if (choices.place === "here") return here;
  // Most users have configured no other station, so they should not wait for this module.
  const isChosen = choices.context ?? variables.CAISSON_URL ?? variables.CAISSON_CONTEXT ?? existsSync(contextsFile(configDir));
  if (isChosen !== false) {
    const { chooseStation } = await import("./contexts.ts");
    const chosen = await chooseStation({ configDir, variables, ...defined({ context: choices.context }) });
    if (chosen.kind === "none") return here;
    const { token, ca } = chosen.kind === "address" ? chosen : {};
    if (chosen.kind === "address")
      return { target: { kind: "elsewhere", url: chosen.url, context: chosen.context }, access: { token, ca, leaving: options.leaving } };
  }
  // Runtime options apply to this process only; a running station would not receive them.
  if (choices.place === "machine" || choices.ociRuntime !== undefined) return here;
  return { target: await findOwnStation(options) };
}

/** Returns the chosen station as the caller sees it. */
async function workingStation(
  { target, access = {} }: Chosen,
  options: Omit<ClientSideOptions, "isElsewhere"> & {
    onEvent: ((event: SandboxEvent) => void) | undefined;
    ask: AskYes | null;
    leaving: AbortSignal;
  },
): Promise<{ station: Station; removeOwn(): Promise<void> }> {
  if (target.kind === "here") {
    const { station } = await options.here();
    return { station, removeOwn: () => station.sandboxes.removeOwn() };
  }
  const [{ stationAt, stationAtSocket }, { clientSideStation }] = await Promise.all([
    import("./remote.ts"),
    import("./client-side-station.ts"),
  ]);
  if (target.kind === "socket") {
    return clientSideStation(await withEvents(stationAtSocket(target.socketPath, target.pid, options.leaving), options.onEvent), {
      ...options,
      isElsewhere: false,
    });
  }
  const { clientSideFolders } = await import("./client-side-folders.ts");
  const remote = clientSideFolders(await stationAt(target, access), { ...options, url: target.url });
  return clientSideStation(await withEvents(remote, options.onEvent), { ...options, isElsewhere: true });
}

async function withEvents(remote: RemoteStation, onEvent: ((event: SandboxEvent) => void) | undefined): Promise<RemoteStation> {
  if (onEvent === undefined) return remote;
  const { observedSandboxes } = await import("./observed-sandboxes.ts");
  return { ...remote, sandboxes: observedSandboxes(remote.sandboxes, onEvent) };
}

/** Loaded on first use: few commands start or look for a server. */
function lazyServer(parts: () => Promise<ServerParts>): ServerControl {
  return lazyVerbs<ServerControl>(
    { start: "answer", startDetached: "answer", reach: "answer", reachChosen: "answer", createCode: "answer" },
    async () => {
      const { composeServer } = await import("./server.ts");
      return composeServer(await parts());
    },
  );
}

function once<Made>(make: () => Promise<Made>): () => Promise<Made> {
  let making: Promise<Made> | undefined;
  return () => (making ??= make());
}
