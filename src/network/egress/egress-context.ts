import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import type { NetworkPolicy } from "../../contract/network.ts";
import type { NetworkVia } from "../../contract/network-event.ts";
import { canonicalAddress } from "../address/addresses.ts";
import type { Resolver } from "../address/resolve.ts";
import type { TargetHost } from "../address/target-host.ts";
import { type Decision, decideHost, type Grant } from "./decide-egress.ts";
import type { Asked, Denial, Refusal } from "./denial.ts";
import type { Dialer } from "./dial.ts";
import type { EgressLimits } from "./egress-limits.ts";
import type { EgressOptions } from "./egress-options.ts";
import type { EgressSecrets } from "./egress-secrets.ts";
import type { Emit } from "./emit.ts";
import type { OncePerWindow } from "./once-per-window.ts";
import type { Destroyable, Passage, Passages } from "./passages.ts";

/** What the parts of one sandbox's egress share. */
export interface EgressContext {
  policy(): NetworkPolicy;
  secrets: EgressSecrets;
  authority: EgressOptions["authority"];
  mirror: EgressOptions["mirror"];
  limits: EgressLimits;
  resolver: Resolver;
  dialer: Dialer;
  passages: Passages;
  emit: Emit;
  /** Words for a refusal, which is also told as an event. */
  deny(asked: Asked, refusal: Refusal): Denial;
  /** For uses of secrets: a program that makes a thousand requests a second has used the secret, not a thousand things. */
  toldInWindow: OncePerWindow;
  /** Secrets that were ever sent: later answers of the hosts that may get secrets may hold them, too. */
  sentSecrets: Set<string>;
}

export function isDenial(value: object): value is Denial {
  return "reason" in value && "asked" in value;
}

/**
 * Decides on a host, finds its address and checks it. The connection itself is made by `connectPassage`. Given a decision, only that is asked for; else the host's.
 */
export async function openPassage(
  context: EgressContext,
  options: { host: TargetHost; port: number; via: NetworkVia; client: Destroyable; method?: string; path?: string; decision?: Decision },
): Promise<Passage | Denial> {
  const { host, port, via, client, method = null, path = null } = options;
  const asked: Asked = { host: host.text, port, via, method, path };
  const decision = options.decision ?? decideHost(context.policy(), { host, port });
  if (!decision.allowed) return context.deny(asked, decision);
  // Known from now on, so that a change of the policy reaches it while the name is looked up.
  const passage = context.passages.open({ grant: decision.grant, via, client });
  const pinned = await context.resolver.pin(decision.grant);
  if ("refused" in pinned) {
    passage.end();
    return context.deny(asked, pinned.refused);
  }
  if (passage.ended) return context.deny(asked, noLonger);
  passage.pin(pinned);
  return passage;
}

/** The connection to where a passage leads, by TLS if asked for; a denial for a certificate that is not the host's. Throws `unavailable` or `timeout`. */
export async function connectPassage(
  context: EgressContext,
  options: { passage: Passage; asked: Asked; tls: boolean; measured: boolean },
): Promise<Duplex | Denial> {
  const { passage, asked, tls, measured } = options;
  const { pinned } = passage;
  if (pinned === null || passage.ended) return context.deny(asked, noLonger);
  const dialed = {
    pinned,
    adopt: (socket: Socket) => {
      passage.adopt(socket, { measured });
      socket.once("connect", () => {
        // The others of the name are not tried any more: a passage leads to one place.
        const address = canonicalAddress(socket.remoteAddress ?? "");
        if (address !== null && pinned.addresses.includes(address)) passage.pin({ ...pinned, addresses: [address] });
      });
    },
  };
  const socket = tls ? await context.dialer.openTls(dialed) : await context.dialer.open(dialed);
  return "refused" in socket ? context.deny(asked, socket.refused) : socket;
}

const noLonger: Refusal = { reason: "host_not_allowed", why: "it was allowed until a moment ago" };

export function askedOf(grant: Grant, via: NetworkVia, request?: { method: string; target: string }): Asked {
  return { host: grant.host.text, port: grant.port, via, method: request?.method ?? null, path: request?.target ?? null };
}
