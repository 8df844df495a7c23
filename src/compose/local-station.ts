import { appendFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { type AgentPlaces, foldersOfAgents } from "../agent/file/agent-places.ts";
import { type ModelOptions, modelOfOnlyKey, providerVariables, resolveModel } from "../agent/model/resolve-model.ts";
import { type AgentSource, createAgentSource } from "../agent/rights/agent-source.ts";
import { createTrustStore } from "../agent/rights/trust-store.ts";
import type { Config } from "../contract/config.ts";
import { type SecretSpec, secretsForOwner } from "../contract/network.ts";
import { LOCAL_OWNER } from "../contract/owner.ts";
import { defined } from "../lib/defined.ts";
import type { AppendListener } from "../log/observed-log.ts";
import type { DiskSharesOptions } from "../sandbox/disk-shares.ts";
import type { Resolver } from "../sandbox/resolver.ts";
import type { RuntimeSet } from "../sandbox/runtime-set.ts";
import { type Crashpoint, createCrashpoint } from "../station/crashpoint.ts";
import { createLocalStation, type LocalStation } from "../station/local-station.ts";
import { createLocalSecrets } from "../station/secrets/local-secrets.ts";

/** What runs and sessions of this machine are made from. */
export interface LocalParts {
  cwd: string;
  home: string;
  path: string;
  stateDir: string;
  configDir: string;
  config: Config;
  /** The file that was read, if there is one. */
  configFile: string | null;
  variable(name: string): string | undefined;
  resolver: Resolver;
  /** With this OCI runtime instead of the configuration's, for a run that began with it. */
  resolverFor(ociRuntime: string | undefined): Resolver;
  runtimes: RuntimeSet;
  /** Ends a sandbox and removes it, whatever its holder does. */
  removeSandbox(id: string): Promise<void>;
  /** Starts this program again with these arguments, in the background and independent of us. */
  startDetached(args: readonly string[]): Promise<void>;
  /** Told what is worth a word to the user. */
  say(text: string): void;
  /** Told of every event that this process appends. */
  onAppended?: AppendListener;
}

/** Everything that runs and sessions need, over the log of one state folder. */
export function openLocalStation(parts: LocalParts): LocalStation {
  const { config, cwd, runtimes } = parts;
  return createLocalStation({
    stateDir: parts.stateDir,
    agents: agentSource(parts),
    runtime: (name, ociRuntime) => parts.resolverFor(ociRuntime).resolve(name ?? parts.config.runtime),
    runtimes: () => Promise.all(runtimes.names.filter((name) => name !== "host").map((name) => runtimes.get(name))),
    removeSandbox: (id) => parts.removeSandbox(id),
    driveDetached: (run) => parts.startDetached(["resume", run, "--unless-ended", "--no-station"]),
    settings: {
      defaultModel: config.models.default,
      keyedModel: () => modelOfOnlyKey(modelOptions(parts)),
      limits: config.limits,
      secretsOf: (owner) => secretsOf(parts, owner),
      author: config.author,
      cwd,
    },
    model: (name, tape) => resolveModel(name, { ...modelOptions(parts), ...tape }),
    git: { path: parts.path, home: parts.home },
    disk: diskOptions(parts.config),
    fetching: fetchingFor(parts),
    crashpoint: crashpointFrom(parts),
    onProgress: (text) => parts.say(text),
    onLogBusy: (text) => parts.say(text),
    ...defined({ onAppended: parts.onAppended }),
  });
}

/** What the configuration says of the disk. */
function diskOptions({ station }: Pick<LocalParts["config"], "station">): Omit<DiskSharesOptions, "stateDir"> {
  return { reserveBytes: station.diskReserveBytes, bytesPerOwnerMax: station.diskBytesPerOwnerMax };
}

/** How repositories are fetched for owners. Loaded when the first one is. */
export function fetchingFor(parts: Pick<LocalParts, "config" | "stateDir">) {
  const load = async () => {
    const [{ openGitAccess, checkGitAddress }, { cloneCredential }, { fetchPolicyOf, caFileOf }] = await Promise.all([
      import("../network/outbound/git-access.ts"),
      import("../station/secrets/clone-credential.ts"),
      import("./fetching.ts"),
    ]);
    const policy = fetchPolicyOf(parts.config.network);
    const credentialFor = async (url: URL, owner: string) => cloneCredential(url, { owner, secrets: await secretsOf(parts, owner) });
    return { openGitAccess, checkGitAddress, options: { policy, credentialFor, caFile: () => caFileOf(policy, parts) } };
  };
  let loaded: ReturnType<typeof load> | undefined;
  const once = () => (loaded ??= load());
  return {
    async open(url: string, owner: string) {
      const { openGitAccess, options } = await once();
      return await openGitAccess(url, owner, options);
    },
    async check(url: string, owner: string) {
      const { checkGitAddress, options } = await once();
      await checkGitAddress(url, owner, options.policy);
    },
  };
}

/** The secrets that an owner can name: its own first, then those of the configuration that it may use. */
export async function secretsOf(parts: Pick<LocalParts, "config" | "stateDir">, owner: string): Promise<Record<string, SecretSpec>> {
  return { ...secretsForOwner(parts.config.secrets, owner), ...(await createLocalSecrets(parts).specs(owner)) };
}

/** For the tests of recovery: where to die, and a file that gets the name of each place where one could. */
function crashpointFrom({ variable }: Pick<LocalParts, "variable">): Crashpoint {
  const list = variable("CAISSON_CRASH_LIST");
  const onPoint = list === undefined ? undefined : (name: string) => appendFileSync(list, `${name}\n`);
  return createCrashpoint(defined({ at: variable("CAISSON_CRASH_AT"), onPoint }));
}

export function agentSource(parts: Pick<LocalParts, "cwd" | "configDir" | "configFile" | "config" | "stateDir" | "say">): AgentSource {
  return createAgentSource({
    places: agentPlaces(parts),
    trust: createTrustStore({ stateDir: parts.stateDir }),
    secrets: secretsForOwner(parts.config.secrets, LOCAL_OWNER),
    usual: { limits: parts.config.limits },
    onNotice: (text) => parts.say(text),
  });
}

export function agentPlaces(parts: Pick<LocalParts, "cwd" | "configDir" | "configFile" | "config">): AgentPlaces {
  const { cwd, configDir, configFile, config } = parts;
  return {
    cwd,
    ownFolder: join(configDir, "agents"),
    // Relative to the file that names them: what a setting means must not depend on where one stands.
    namedFolders: config.agentFolders.map((folder) => resolve(configFile === null ? configDir : dirname(configFile), folder)),
    folders: foldersOfAgents(cwd),
  };
}

export function modelOptions({ config, variable }: Pick<LocalParts, "config" | "variable">): ModelOptions {
  const { baseUrl, prices, stallMs } = config.models;
  const env = Object.fromEntries(providerVariables.map((name) => [name, variable(name)]));
  return { env, prices, ...defined({ baseUrl, stallMs }) };
}
