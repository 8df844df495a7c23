import type { Transform } from "node:stream";
import { CaissonError } from "../../contract/error.ts";
import type { Capabilities } from "../../contract/sandbox.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import type { SandboxNetwork } from "../../sandbox/sandbox-network.ts";
import { sandboxToken } from "../../sandbox/sandbox-token.ts";
import { refuseNetwork } from "../../sandbox/spec.ts";
import type { Store } from "../../sandbox/store.ts";
import { STATION_PORT } from "../inside/ports.ts";
import type { NetworkHost } from "../network-host.ts";
import { createHeldSecrets } from "./held-secrets.ts";
import { openNetworkRecord } from "./network-record.ts";
import { NetworkService, needsServing } from "./network-service.ts";
import { isMadeTransparent, type NetworkState } from "./network-state.ts";

/** The network of one sandbox as this process holds it, with what only the runtime around it may do. */
export interface HeldNetwork extends SandboxNetwork {
  readonly state: NetworkState;
  /** Redacts values of secrets in output, keeping every length; null while none is known. */
  outputRedactor(): Transform | null;
  /** For every command that is started from now on. */
  env(): Promise<Readonly<Record<string, string>>>;
  /** From now on this process serves it, whenever there is something to serve. */
  serve(): Promise<void>;
  /** Sees to it that somebody serves it: who does so already, a keeper, or this process. */
  ensureServed(): Promise<void>;
  /**
   * Hands it over to a keeper when there is something to serve and nobody else does, and serves it no more. What is
   * still heard of the sandbox is redacted until `close`.
   */
  release(): Promise<void>;
  close(): Promise<void>;
}

export interface HoldOptions {
  sandbox: OwnedSandbox;
  store: Store;
  host: NetworkHost;
  capabilities: () => Promise<Capabilities>;
  /** What a new sandbox begins with; absent for one that is found again. */
  first?: NetworkState | null;
}

/** Throws `invalid` for a secret that cannot be had. */
export async function holdNetwork(options: HoldOptions): Promise<HeldNetwork> {
  const { sandbox, store, host } = options;
  const folder = store.dir(sandbox.id);
  const record = await openNetworkRecord({ sandbox, folder, host, first: options.first });
  const secrets = createHeldSecrets({ sandbox: sandbox.id, state: () => record.state, host });
  const service = new NetworkService({ sandbox, folder, store, host, record, secrets });
  /** Everybody who holds the sandbox is told of a change; whoever serves it acts on it. */
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
      // Not what we wrote ourselves: somebody else may have written since, and that was taken over already.
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

/** Made with each command: a token is good for a day. */
function stationEnv(sandbox: string, folder: string): Record<string, string> {
  return {
    CAISSON_SANDBOX_URL: `http://127.0.0.1:${STATION_PORT}`,
    CAISSON_SANDBOX_TOKEN: sandboxToken(sandbox, { folder, nowMs: Date.now() }),
  };
}

function refuseTransparent(policy: NetworkState["policy"], sandbox: OwnedSandbox): void {
  if (policy.mode === "none" || !policy.transparent || isMadeTransparent(sandbox)) return;
  throw new CaissonError("unsupported", `sandbox ${sandbox.id} was not made to carry programs that know nothing of proxies`, {
    hint: "Make a new one with --network transparent.",
  });
}

function refuseUnknown(secret: string, state: NetworkState, sandbox: OwnedSandbox): void {
  if (state.secrets[secret] !== undefined) return;
  const names = Object.keys(state.secrets).join(", ");
  throw new CaissonError("not_found", `sandbox ${sandbox.id} has no secret ${secret}`, {
    hint: names === "" ? "It has none at all." : `It has: ${names}.`,
  });
}

function warnOf(sandbox: OwnedSandbox, error: unknown): void {
  process.emitWarning(`the network of ${sandbox.id} could not be changed: ${error instanceof Error ? error.message : String(error)}`);
}

/** The variables of the current state, made once for each. */
function variables(
  record: { readonly state: NetworkState },
  upstreams: NetworkHost["settings"]["registries"],
): () => Promise<Readonly<Record<string, string>>> {
  let made: { of: NetworkState; env: Promise<Readonly<Record<string, string>>> } | null = null;
  return () => {
    if (made?.of !== record.state) made = { of: record.state, env: variablesOf(record.state, upstreams) };
    return made.env;
  };
}

async function variablesOf(
  state: NetworkState,
  upstreams: NetworkHost["settings"]["registries"],
): Promise<Readonly<Record<string, string>>> {
  const [{ insideEnv }, { insideSettings }] = await Promise.all([
    import("../inside/inside-env.ts"),
    import("../mirror/inside-settings.ts"),
  ]);
  const { policy, placeholders, secrets, gateway } = state;
  return insideEnv({
    // Also where nothing may be reached any more: who asks the proxy is told so, and how to ask.
    policy: policy.mode === "none" ? { mode: "allow", rules: [], registries: [], transparent: false } : policy,
    placeholders,
    secrets,
    gateway: gateway ?? undefined,
    mirrorEnv: policy.mode === "none" ? {} : insideSettings(policy.registries, upstreams).env,
  });
}
