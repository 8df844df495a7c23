import type { NetworkHost } from "../../src/network/network-host.ts";
import { addNetworking } from "../../src/network/sandbox-network/networked-runtime.ts";
import type { Runtime } from "../../src/sandbox/runtime.ts";

/** Returns a runtime whose sandbox networks this process serves, without the user's environment. */
export function networkedForTest(runtime: Runtime, options: { stateDir: string } & Partial<NetworkHost>): Runtime {
  return addNetworking(runtime, {
    variable: () => undefined,
    runCommand: async () => "",
    redactors: new Map(),
    settings: { caFiles: [], registries: {}, gateway: {} },
    prices: () => null,
    ...options,
  });
}
