import { CaissonError } from "../../contract/error.ts";
import type { GatewaySpec } from "../../contract/network.ts";
import type { SandboxInfo } from "../../contract/sandbox.ts";
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
 * The same runtime, whose sandboxes have a network: what their spec allows is served by this process as long as it
 * holds them, and by a keeper once they are released. Runtimes themselves only build walls with nothing behind them but
 * loopback; everything that goes out or comes in does so through here.
 */
export function networked(runtime: Runtime, host: NetworkHost): Runtime {
  const store = createStore({ stateDir: host.stateDir });
  const capabilities = () => runtime.capabilities();
  const fork = async (from: HeldNetwork, inner: OwnedSandbox, asked?: ForkOptions): Promise<OwnedSandbox> => {
    const own = await ownVariables(store, inner);
    const child = await inner.fork(asked);
    // Another authority: what the parent trusts is the parent's own affair.
    return hold(child, { first: { ...from.state, authority: null }, own });
  };
  const hold = async (inner: OwnedSandbox, asked: { first: HoldFirst; own: ReadonlySet<string> }): Promise<OwnedSandbox> => {
    try {
      const network = await holdNetwork({ sandbox: inner, store, host, capabilities, first: asked.first });
      await network.serve();
      return withNetwork(inner, { network, own: asked.own, fork: (how) => fork(network, inner, how) });
    } catch (error) {
      // What was promised cannot be kept, so there is no sandbox.
      await inner.destroy();
      throw error;
    }
  };
  return {
    ...runtime,
    async create(spec, options) {
      checkGatewayKeys(spec.gateway, host);
      const inner = await runtime.create(spec, options);
      // Without a wall, home is the user's own, where nothing is ours to write.
      if (spec.gateway !== undefined && (await capabilities()).isolation > 0) await seedOrDestroy(inner, spec.gateway);
      return hold(inner, { first: firstState(spec), own: new Set(Object.keys(spec.env)) });
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

async function seedOrDestroy(sandbox: OwnedSandbox, gateway: GatewaySpec): Promise<void> {
  const { seedAgents } = await import("./seed-agents.ts");
  try {
    await seedAgents(sandbox, gateway);
  } catch (error) {
    await sandbox.destroy();
    throw error;
  }
}

/** The sandbox lives, whatever stands in the way of its network: what says that it is dead must not be said of it. */
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
  const inNetwork = async (asked: SpawnOptions): Promise<SpawnOptions> => {
    await network.ensureServed();
    const variables = Object.entries(await network.env()).filter(([name]) => !own.has(name));
    return variables.length === 0 ? asked : { ...asked, env: { ...Object.fromEntries(variables), ...asked.env } };
  };
  return {
    ...inner,
    network,
    get info() {
      return { ...inner.info, network: network.policy() };
    },
    async spawn(asked) {
      const process = await inner.spawn(await inNetwork(asked));
      return redactedProcess(process, { outputRedactor: network.outputRedactor, shownArgv: asked.argv.map(network.redact) });
    },
    attach: async (...asked) => {
      // So that the values to be redacted are known.
      await network.env();
      return redactedProcess(await inner.attach(...asked), network);
    },
    fork: options.fork,
    async release() {
      // The wrong order would leave the sandbox without a network in between; and a sandbox that was not made to be
      // kept is refused here.
      if (inner.info.keep) await network.release();
      await inner.release();
      await network.close();
    },
    async detach() {
      // What this handle happens to serve is handed over, as by `release`; a sandbox that is not kept is served by
      // whoever made it.
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
        // Nobody would serve it, and nobody holds it any more.
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

/** What holds now, not what it was made with. */
async function withPolicy(info: SandboxInfo, store: Store): Promise<SandboxInfo> {
  const state = await networkStateFile(store.dir(info.id))
    .read()
    .catch(() => null);
  return state === null ? info : { ...info, network: state.policy };
}
