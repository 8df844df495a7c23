import { CaissonError } from "../../contract/error/error.ts";
import type { GatewayConfig } from "../../contract/network/network.ts";
import type { SandboxInfo } from "../../contract/sandbox/sandbox.ts";
import { ignore } from "../../lib/failures.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { ForkOptions, OwnedSandbox, SpawnOptions } from "../../sandbox/sandbox.ts";
import { createStore, type Store } from "../../sandbox/store.ts";
import type { NetworkHost } from "../network-host.ts";
import { redactedProcess } from "../redacted-process.ts";
import { checkGatewayKeys } from "./gateway-keys.ts";
import { firstState } from "./network-record.ts";
import { networkStateFile } from "./network-state.ts";
import { type HeldNetwork, holdNetwork } from "./sandbox-network.ts";

/**
 * Returns the same runtime, but its sandboxes have a network. As long as this process holds a sandbox, it serves the
 * network that the configuration allows; after the release, a keeper does. The runtimes themselves isolate sandboxes
 * from everything but loopback. Everything that leaves or enters a sandbox passes through here.
 */
export function addNetworking(runtime: Runtime, host: NetworkHost): Runtime {
  const store = createStore({ stateDir: host.stateDir });
  const capabilities = () => runtime.capabilities();
  const fork = async (from: HeldNetwork, inner: OwnedSandbox, options?: ForkOptions): Promise<OwnedSandbox> => {
    const own = await ownVariables(store, inner);
    const child = await inner.fork(options);
    // A new authority, because only the parent should trust its own.
    return hold(child, { first: { ...from.state, authority: null }, own });
  };
  const hold = async (inner: OwnedSandbox, options: { first: HoldFirst; own: ReadonlySet<string> }): Promise<OwnedSandbox> => {
    try {
      const network = await holdNetwork({ sandbox: inner, store, host, capabilities, first: options.first });
      await network.serve();
      return withNetwork(inner, { network, own: options.own, fork: (how) => fork(network, inner, how) });
    } catch (error) {
      // We cannot provide the promised network, so we create no sandbox.
      await inner.destroy();
      throw error;
    }
  };
  return {
    ...runtime,
    async create(config, options) {
      checkGatewayKeys(config.gateway, host);
      const inner = await runtime.create(config, options);
      // Without isolation, home is the user's own, where we must not write.
      if (config.gateway !== undefined && (await capabilities()).isolation > 0) await seedOrDestroy(inner, config.gateway);
      return hold(inner, { first: firstState(config), own: new Set(Object.keys(config.env)) });
    },
    async open(id, options) {
      const inner = await runtime.open(id);
      try {
        const network = await holdNetwork({ sandbox: inner, store, host, capabilities });
        if (options?.serveNetwork) await network.serve();
        return withNetwork(inner, { network, own: await ownVariables(store, inner), fork: (how) => fork(network, inner, how) });
      } catch (error) {
        await inner.detach();
        throw networkUnavailable(inner.id, error);
      }
    },
    list: async () => Promise.all((await runtime.list()).map((info) => withPolicy(info, store))),
  };
}

async function seedOrDestroy(sandbox: OwnedSandbox, gateway: GatewayConfig): Promise<void> {
  const { seedAgents } = await import("./seed-agents.ts");
  try {
    await seedAgents(sandbox, gateway);
  } catch (error) {
    await sandbox.destroy();
    throw error;
  }
}

/** The sandbox is alive even if its network fails, so the error must not say that it is dead. */
function networkUnavailable(id: string, error: unknown): unknown {
  const deathly = error instanceof CaissonError && (error.code === "not_found" || error.code === "protocol");
  if (!deathly) return error;
  return new CaissonError("unavailable", `the network of sandbox ${id} cannot be used: ${error.message}`, {
    ...(error.hint === undefined ? {} : { hint: error.hint }),
    cause: error,
  });
}

type HoldFirst = ReturnType<typeof firstState>;

function withNetwork(
  inner: OwnedSandbox,
  options: { network: HeldNetwork; own: ReadonlySet<string>; fork: OwnedSandbox["fork"] },
): OwnedSandbox {
  const { network, own } = options;
  const inNetwork = async (spawnOptions: SpawnOptions): Promise<SpawnOptions> => {
    await network.ensureServed();
    const variables = Object.entries(await network.env()).filter(([name]) => !own.has(name));
    return variables.length === 0 ? spawnOptions : { ...spawnOptions, env: { ...Object.fromEntries(variables), ...spawnOptions.env } };
  };
  return {
    ...inner,
    network,
    get info() {
      return { ...inner.info, network: network.policy() };
    },
    async spawn(spawnOptions) {
      const process = await inner.spawn(await inNetwork(spawnOptions));
      return redactedProcess(process, { outputRedactor: network.outputRedactor, shownArgv: spawnOptions.argv.map(network.redact) });
    },
    attach: async (...parameters) => {
      // Loads the values that must be redacted.
      await network.env();
      return redactedProcess(await inner.attach(...parameters), network);
    },
    fork: options.fork,
    async release() {
      // Handed over first, because otherwise the sandbox would have no network in between. A sandbox that was not
      // created to be kept is refused here.
      if (inner.info.keep) await network.release();
      await inner.release();
      await network.close();
    },
    async detach() {
      // Hands over the network if this handle serves it, like `release`. A sandbox that is not kept is served by its
      // creator.
      if (inner.info.keep) await network.release();
      await inner.detach();
      await network.close();
    },
    async destroy() {
      await inner.destroy();
      await network.close();
    },
    async [Symbol.asyncDispose]() {
      try {
        if (inner.info.keep) await network.release();
        await inner[Symbol.asyncDispose]();
      } catch (error) {
        // The sandbox has no holder, and no process would serve its network.
        await inner.destroy();
        throw error;
      } finally {
        await network.close();
      }
    },
  };
}

async function ownVariables(store: Store, sandbox: OwnedSandbox): Promise<ReadonlySet<string>> {
  return new Set(Object.keys((await store.read(sandbox.id)).spec.env));
}

/** Returns the current policy, not the one that the sandbox was created with. */
async function withPolicy(info: SandboxInfo, store: Store): Promise<SandboxInfo> {
  const state = await ignore(networkStateFile(store.dir(info.id)).read(), "a sandbox whose network cannot be read is still listed");
  return state == null ? info : { ...info, network: state.policy };
}
