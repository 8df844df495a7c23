import type { NetworkVerbs } from "../../station/networks/verbs.ts";
import type { HeldSandbox } from "../../station/sandboxes/held-sandbox.ts";
import type { SandboxVerbs } from "../../station/sandboxes/verbs.ts";
import type { Client } from "../connect.ts";
import type { OpenPorts } from "./remote-station.ts";

/** Ports that are opened are ports of the caller's machine. */
export function remoteNetworks(
  { networks }: Pick<Client, "networks">,
  { openPorts, sandboxes }: { openPorts: OpenPorts; sandboxes: Pick<SandboxVerbs, "hold"> },
): NetworkVerbs {
  /** A run stands for its sandbox. */
  const held = async (name: string): Promise<HeldSandbox> => sandboxes.hold((await networks.show(name)).sandbox);
  return {
    show: (name) => networks.show(name),
    change: (name, { how, policy }) => networks.change(name, { how, policy }),
    revoke: (name, { secret }) => networks.revoke(name, { secret }),
    log: (name, options) => networks.log(name, options),
    preview: async (name, request) => openPorts.preview(await held(name), request),
    keepPreview: (name, request) => networks.keepPreview(name, request),
    previews: () => networks.previews(),
    closePreview: (id) => networks.closePreview(id),
    forward: async (name, request, options = {}) => openPorts.forward(await held(name), { ...request, ...options }),
    ports: (name) => networks.ports(name),
    watchPorts: (name, options) => networks.watchPorts(name, options),
  };
}
