import { dirname, join, resolve } from "node:path";
import { type AgentPlaces, foldersOfAgents } from "../agent/file/agent-places.ts";
import { type ModelOptions, modelOfOnlyKey, providerVariables, resolveModel } from "../agent/model/resolve-model.ts";
import { type AgentSource, createAgentSource } from "../agent/rights/agent-source.ts";
import { createTrustStore } from "../agent/rights/trust-store.ts";
import type { Config } from "../contract/config/config.ts";
import { type SecretConfig, secretsForOwner } from "../contract/network/network.ts";
import { LOCAL_OWNER } from "../contract/token/owner.ts";
import { defined } from "../lib/defined.ts";
import { once } from "../lib/once.ts";
import type { AppendListener } from "../log/observed-log.ts";
import type { DiskSharesOptions } from "../sandbox/disk-shares.ts";
import type { Resolver } from "../sandbox/resolver.ts";
import type { RuntimeSet } from "../sandbox/runtime-set.ts";
import { createLocalStation, type LocalStation } from "../station/local-station.ts";
import { createLocalSecrets } from "../station/secrets/local-secrets.ts";
import { crashpointFrom } from "./crash-points.ts";

/** What runs and sessions of this machine are built from. */
export interface LocalParts {
  cwd: string;
  home: string;
  path: string;
  stateDir: string;
  configDir: string;
  config: Config;
  /** The configuration file that was read, or null. */
  configFile: string | null;
  variable(name: string): string | undefined;
  resolver: Resolver;
  /** Returns the resolver for this OCI runtime instead of the configured one, for a run that began with it. */
  resolverFor(ociRuntime: string | undefined): Resolver;
  runtimes: RuntimeSet;
  /** Ends a sandbox and removes it, even if its holder is still using it. */
  removeSandbox(id: string): Promise<void>;
  /** Starts this program again with these arguments, in the background and independent of this process. */
  startDetached(args: readonly string[]): Promise<void>;
  /** Shows a message to the user. */
  say(text: string): void;
  /** Called with every event that this process appends. */
  onAppended?: AppendListener;
}

/** Opens everything that runs and sessions need, on top of one state folder's log. */
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
    crashpoint: crashpointFrom((name) => parts.variable(name)),
    onProgress: (text) => parts.say(text),
    onLogBusy: (text) => parts.say(text),
    ...defined({ onAppended: parts.onAppended }),
  });
}

/** Returns the disk settings of the configuration. */
function diskOptions({ station }: Pick<LocalParts["config"], "station">): Omit<DiskSharesOptions, "stateDir"> {
  return { reserveBytes: station.diskReserveBytes, bytesPerOwnerMax: station.diskBytesPerOwnerMax };
}

/** Returns a function that fetches repositories for owners. The code loads with the first fetch. */
export function fetchingFor(parts: Pick<LocalParts, "config" | "stateDir">) {
  const load = once(async () => {
    const [{ openGitAccess, checkGitAddress }, { cloneCredential }, { fetchPolicyOf, caFileOf }] = await Promise.all([
      import("../network/outbound/git-access.ts"),
      import("../station/secrets/clone-credential.ts"),
      import("./fetching.ts"),
    ]);
    const policy = fetchPolicyOf(parts.config.network);
    const credentialFor = async (url: URL, owner: string) => cloneCredential(url, { owner, secrets: await secretsOf(parts, owner) });
    return { openGitAccess, checkGitAddress, options: { policy, credentialFor, caFile: () => caFileOf(policy, parts) } };
  });
  return {
    async open(url: string, owner: string) {
      const { openGitAccess, options } = await load();
      return await openGitAccess(url, owner, options);
    },
    async check(url: string, owner: string) {
      const { checkGitAddress, options } = await load();
      await checkGitAddress(url, owner, options.policy);
    },
  };
}

/** Returns the secrets that an owner can name: its own, then those of the configuration that it may use. */
export async function secretsOf(parts: Pick<LocalParts, "config" | "stateDir">, owner: string): Promise<Record<string, SecretConfig>> {
  return { ...secretsForOwner(parts.config.secrets, owner), ...(await createLocalSecrets(parts).configs(owner)) };
}

export function agentSource(parts: Pick<LocalParts, "cwd" | "configDir" | "configFile" | "config" | "stateDir" | "say">): AgentSource {
  return createAgentSource({
    places: agentPlaces(parts),
    trust: createTrustStore({ stateDir: parts.stateDir }),
    secrets: secretsForOwner(parts.config.secrets, LOCAL_OWNER),
    limits: parts.config.limits,
    defaults: parts.config.agent,
    onNotice: (text) => parts.say(text),
  });
}

export function agentPlaces(parts: Pick<LocalParts, "cwd" | "configDir" | "configFile" | "config">): AgentPlaces {
  const { cwd, configDir, configFile, config } = parts;
  return {
    cwd,
    ownFolder: join(configDir, "agents"),
    // Relative to the configuration file: a setting must not depend on the current folder.
    namedFolders: config.agentFolders.map((folder) => resolve(configFile === null ? configDir : dirname(configFile), folder)),
    folders: foldersOfAgents(cwd),
  };
}

export function modelOptions({ config, variable }: Pick<LocalParts, "config" | "variable">): ModelOptions {
  const { baseUrl, prices, stallMs } = config.models;
  const env = Object.fromEntries(providerVariables.map((name) => [name, variable(name)]));
  return { env, prices, ...defined({ baseUrl, stallMs }) };
}
