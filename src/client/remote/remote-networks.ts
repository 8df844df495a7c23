import type { HeldSandbox } from "../../verbs/held-sandbox.ts";
import type { NetworkVerbs } from "../../verbs/networks.ts";
import type { SandboxVerbs } from "../../verbs/sandboxes.ts";
import type { Client } from "../connect.ts";
import { derivedVerbs } from "./derived-verbs.ts";
import type { OpenPorts } from "./remote-station.ts";

/** The network verbs of a remote station. Ports are opened on the caller's machine. */
export function remoteNetworks(
  { networks }: Pick<Client, "networks">,
  { openPorts, sandboxes }: { openPorts: OpenPorts; sandboxes: Pick<SandboxVerbs, "hold"> },
): NetworkVerbs {
  /** A run's name refers to its sandbox. */
  const hold = async (name: string): Promise<HeldSandbox> => sandboxes.hold((await networks.show(name)).sandbox);
  return {
    ...derivedVerbs("networks", networks),
    revoke: (name, { secret }) => networks.revoke(name, { secret }),
    preview: async (name, request) => openPorts.preview(await hold(name), request),
    forward: async (name, request, options = {}) => openPorts.forward(await hold(name), { ...request, ...options }),
    ports: (name) => networks.ports(name),
    watchPorts: (name, options) => networks.watchPorts(name, options),
  };
}
