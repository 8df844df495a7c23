import type { Transform } from "node:stream";
import { CaissonError } from "../../contract/error/error.ts";
import type { Capabilities } from "../../contract/sandbox/sandbox.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import { refuseNetwork } from "../../sandbox/sandbox-config.ts";
import type { SandboxNetwork } from "../../sandbox/sandbox-network.ts";
import { sandboxToken } from "../../sandbox/sandbox-token.ts";
import type { Store } from "../../sandbox/store.ts";
import type { NetworkHost } from "../network-host.ts";
import { STATION_PORT } from "../sandbox-setup/ports.ts";
import { createHeldSecrets } from "./held-secrets.ts";
import { openNetworkRecord } from "./network-record.ts";
import { NetworkService, needsServing } from "./network-service.ts";
import { isMadeTransparent, type NetworkState } from "./network-state.ts";

/** The network of one sandbox as this process holds it, with operations that only the surrounding runtime may use. */
export interface HeldNetwork extends SandboxNetwork {
  readonly state: NetworkState;
  /** Redacts secret values in output, keeping every length. Null if no value is known. */
  outputRedactor(): Transform | null;
  /** Returns the variables for every new command. */
  env(): Promise<Readonly<Record<string, string>>>;
  /** Lets this process serve the network whenever there is something to serve. */
  serve(): Promise<void>;
  /** Ensures that the network is served: by the process that already does, a keeper, or this process. */
  ensureServed(): Promise<void>;
  /**
   * Hands the network over to a keeper if there is something to serve and no other server, and stops serving it. Output
   * and events of the sandbox are redacted until `close`.
   */
  release(): Promise<void>;
  close(): Promise<void>;
}

export interface HoldOptions {
  sandbox: OwnedSandbox;
  store: Store;
  host: NetworkHost;
  capabilities: () => Promise<Capabilities>;
  /** The initial state of a new sandbox. Absent for one that is reopened. */
  first?: NetworkState | null;
}

/** Throws `invalid` for a secret that is not available. */
export async function holdNetwork(options: HoldOptions): Promise<HeldNetwork> {
  const { sandbox, store, host } = options;
  const folder = store.dir(sandbox.id);
  const record = await openNetworkRecord({ sandbox, folder, host, first: options.first });
  const secrets = createHeldSecrets({ sandbox: sandbox.id, state: () => record.state, host });
  const service = new NetworkService({ sandbox, folder, store, host, record, secrets });
  /** All holders of the sandbox take over a change, and its server applies it. */
  const takeOver = (next: () => Promise<NetworkState>) =>
    service.inTurn(async () => {
      record.takeOver(await next());
      await service.apply();
    });
  const watching = record.watch((next) => void takeOver(async () => next).catch((error: unknown) => warnOf(sandbox, error)));
  const stop = () => {
    watching.close();
    return service.stop();
  };
  const env = variables(record, host.settings.registries);
  const held: HeldNetwork = {
    get state() {
      return record.state;
    },
    policy: () => record.state.policy,
    async change(wanted, { by }) {
      const capabilities = await options.capabilities();
      const make = (before: NetworkState["policy"]) => {
        const next = typeof wanted === "function" ? wanted(before) : wanted;
        refuseNetwork({ network: next, secrets: {}, gateway: undefined }, capabilities);
        refuseTransparent(next, sandbox);
        return next;
      };
      const policy = await record.setPolicy(make, { by });
      // We take over the newest state, not the policy that we wrote: another process may have written since, and we may
      // already have taken its change over.
      await takeOver(record.newest);
      await service.ensureServed();
      return policy;
    },
    async revoke(secret, { by }) {
      refuseUnknown(secret, record.state, sandbox);
      await record.revoke(secret, { by });
      await takeOver(record.newest);
    },
    fetch: (request) => service.fetch(request),
    subscribe: record.subscribe,
    settle: () => service.settle(),
    limitGateway: (left) => service.limitGateway(left),
    redact: secrets.redact,
    outputRedactor: secrets.outputRedactor,
    async env() {
      if (!needsServing(record.state)) return {};
      if (Object.keys(record.state.secrets).length > 0) await secrets.book();
      return record.state.stationAccess ? { ...(await env()), ...stationEnv(sandbox.id, folder) } : await env();
    },
    serve: () => service.serve(),
    ensureServed: () => service.ensureServed(),
    async release() {
      await service.handOver();
      await stop();
    },
    async close() {
      await stop();
      secrets.close();
    },
  };
  void sandbox.closed.then(() => held.close());
  return held;
}

/** Created for each command, because a token is valid for one day. */
function stationEnv(sandbox: string, folder: string): Record<string, string> {
  return {
    CAISSON_SANDBOX_URL: `http://127.0.0.1:${STATION_PORT}`,
    CAISSON_SANDBOX_TOKEN: sandboxToken(sandbox, { folder, nowMs: Date.now() }),
  };
}

function refuseTransparent(policy: NetworkState["policy"], sandbox: OwnedSandbox): void {
  if (policy.mode === "none" || !policy.transparent || isMadeTransparent(sandbox)) return;
  throw new CaissonError("unsupported", `sandbox ${sandbox.id} was created without the transparent proxy`, {
    hint: "Create a new one with --network transparent.",
  });
}

function refuseUnknown(secret: string, state: NetworkState, sandbox: OwnedSandbox): void {
  if (Object.hasOwn(state.secrets, secret)) return;
  const names = Object.keys(state.secrets).join(", ");
  throw new CaissonError("not_found", `sandbox ${sandbox.id} has no secret ${secret}`, {
    hint: names === "" ? "It has no secrets." : `Its secrets: ${names}.`,
  });
}

function warnOf(sandbox: OwnedSandbox, error: unknown): void {
  process.emitWarning(`the network of ${sandbox.id} could not be changed: ${error instanceof Error ? error.message : String(error)}`);
}

/** Returns the variables of the current state, built once for each state. */
function variables(
  record: { readonly state: NetworkState },
  upstreams: NetworkHost["settings"]["registries"],
): () => Promise<Readonly<Record<string, string>>> {
  let cache: { of: NetworkState; env: Promise<Readonly<Record<string, string>>> } | null = null;
  return () => {
    if (cache?.of !== record.state) cache = { of: record.state, env: variablesOf(record.state, upstreams) };
    return cache.env;
  };
}

async function variablesOf(
  state: NetworkState,
  upstreams: NetworkHost["settings"]["registries"],
): Promise<Readonly<Record<string, string>>> {
  const [{ insideEnv }, { insideSettings }] = await Promise.all([
    import("../sandbox-setup/inside-env.ts"),
    import("../mirror/inside-settings.ts"),
  ]);
  const { policy, placeholders, secrets, gateway } = state;
  return insideEnv({
    // We name the proxy even if no host is allowed, so that its clients get an error that says how to get access.
    policy: policy.mode === "none" ? { mode: "allow", rules: [], registries: [], transparent: false } : policy,
    placeholders,
    secrets,
    gateway: gateway ?? undefined,
    mirrorEnv: policy.mode === "none" ? {} : insideSettings(policy.registries, upstreams).env,
  });
}
