import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { NetworkPolicy } from "../../../contract/network.ts";
import type { SandboxSpec } from "../../../contract/sandbox.ts";
import { nameServiceSwitch } from "../template/etc-files.ts";
import type { PlanRecord } from "./launcher.ts";

/** Whether programs that know nothing of proxies are carried. */
export function isTransparent(network: NetworkPolicy): boolean {
  return network.mode !== "none" && network.transparent;
}

/** Every address is the sandbox's own, so any would do; 127.0.0.1 is local even without the extra route. */
const resolver = "nameserver 127.0.0.1\noptions timeout:2 attempts:2\n";

/**
 * What a launch needs for a transparent network: that its namespace routes every address to itself, and that programs
 * inside ask for names at all. Nothing leaves such a namespace either: it has no interface but loopback.
 */
export function transparentRecords(spec: Pick<SandboxSpec, "network" | "template">, folder: string): PlanRecord[] {
  if (!isTransparent(spec.network)) return [];
  const bind = (name: string, content: string): PlanRecord => {
    writeFileSync(join(folder, name), content, { mode: 0o644 });
    return ["bind", join(folder, name), `/etc/${name}`, "ro,file", "-"];
  };
  return [
    ["network", "transparent"],
    bind("resolv.conf", resolver),
    // An image knows by itself where names come from; the machine's own programs are told otherwise in ordinary
    // sandboxes.
    ...(spec.template.kind === "image" ? [] : [bind("nsswitch.conf", nameServiceSwitch({ hosts: "files dns" }))]),
  ];
}
