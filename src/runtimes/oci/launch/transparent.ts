import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { NetworkPolicy } from "../../../contract/network/network.ts";
import type { SandboxConfig } from "../../../contract/sandbox/sandbox.ts";
import { nameServiceSwitch } from "../template/etc-files.ts";
import type { PlanRecord } from "./launcher.ts";

/** Whether the network also carries programs without proxy support. */
export function isTransparent(network: NetworkPolicy): boolean {
  return network.mode !== "none" && network.transparent;
}

/** The sandbox owns every address, so any would do; 127.0.0.1 is local even without the extra route. */
const resolver = "nameserver 127.0.0.1\noptions timeout:2 attempts:2\n";

/**
 * Returns the records for a transparent network: the namespace routes every address to itself, and programs inside have
 * a resolver to ask. Packets still cannot leave the namespace, since its only interface is loopback.
 */
export function transparentRecords(config: Pick<SandboxConfig, "network" | "template">, folder: string): PlanRecord[] {
  if (!isTransparent(config.network)) return [];
  const bind = (name: string, content: string): PlanRecord => {
    writeFileSync(join(folder, name), content, { mode: 0o644 });
    return ["bind", join(folder, name), `/etc/${name}`, "ro,file", "-"];
  };
  return [
    ["network", "transparent"],
    bind("resolv.conf", resolver),
    // An image brings its own configuration. Without a transparent network, the machine's programs get one without DNS.
    ...(config.template.kind === "image" ? [] : [bind("nsswitch.conf", nameServiceSwitch({ hosts: "files dns" }))]),
  ];
}
