import type { NetworkPolicy } from "../../contract/network.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import type { Egress } from "../egress/egress-options.ts";

/** What programs use without being told a port: ssh, the web. Others are those that rules name. */
const USUAL_PORTS = [22, 80, 443];
const PORTS_MAX = 256;

/** Whether a sandbox was made so that programs that know nothing of proxies can be carried; that cannot be changed later. */
export function isMadeTransparent(sandbox: OwnedSandbox): boolean {
  const { network } = sandbox.info;
  return network.mode !== "none" && network.transparent;
}

/** Carries what such programs send to the ports that the current policy names, under the same rules as everything else. */
export function createTransparentPorts(
  sandbox: OwnedSandbox,
  egress: Egress,
): { use(policy: NetworkPolicy): Promise<void>; close(): void } {
  let claim: { ports: string; close(): void } | null = null;
  return {
    async use(policy) {
      if (!isMadeTransparent(sandbox)) return;
      const named = policy.mode === "none" ? [] : policy.rules.flatMap((rule) => rule.ports);
      const ports = [...new Set([...USUAL_PORTS, ...named])].slice(0, PORTS_MAX).toSorted((a, b) => a - b);
      if (claim?.ports === ports.join()) return;
      const before = claim;
      const { close } = await sandbox.serveTransparent({ ports, onConnection: egress.handle, onDatagram: egress.answerName });
      claim = { ports: ports.join(), close };
      // Only now, so that there is no moment in which nobody answers.
      before?.close();
    },
    close: () => claim?.close(),
  };
}
