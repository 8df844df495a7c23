import { networked } from "../../src/network/held/networked-runtime.ts";
import type { NetworkHost } from "../../src/network/network-host.ts";
import type { Runtime } from "../../src/sandbox/runtime.ts";

/** A runtime whose sandboxes have a network that this process serves, with nothing of the user's environment. */
export function networkedForTest(runtime: Runtime, options: { stateDir: string } & Partial<NetworkHost>): Runtime {
  return networked(runtime, {
    variable: () => undefined,
    runCommand: async () => "",
    redactors: new Map(),
    settings: { caFiles: [], registries: {}, gateway: {} },
    prices: () => null,
    ...options,
  });
}
