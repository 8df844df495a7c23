import type { Duplex } from "node:stream";
import type { NetworkVia } from "../../contract/network-event.ts";
import type { TargetHost } from "../address/target-host.ts";
import type { Verdict } from "../http/verdict.ts";
import { type Denial, denialAnswer } from "./denial.ts";
import { askedOf, connectPassage, type EgressContext, isDenial, openPassage } from "./egress-context.ts";
import type { Passage } from "./passages.ts";
import { carryTunnel, needsInspection } from "./tunnel.ts";

/** A tunnel that may be used: decided, resolved, and connected unless it is inspected. */
export interface ReadyTunnel {
  passage: Passage;
  upstream: Duplex | null;
}

/** Throws `unavailable` or `timeout` when the host cannot be reached; nothing of the passage is left then. */
export async function openTunnel(
  context: EgressContext,
  options: { host: TargetHost; port: number; via: NetworkVia; client: Duplex },
): Promise<ReadyTunnel | Denial> {
  const passage = await openPassage(context, options);
  if (isDenial(passage)) return passage;
  if (needsInspection(context, passage)) return { passage, upstream: null };
  try {
    const asked = askedOf(passage.grant, options.via);
    const upstream = await connectPassage(context, { passage, asked, tls: false, measured: false });
    return isDenial(upstream) ? upstream : { passage, upstream };
  } catch (error) {
    passage.end();
    throw error;
  }
}

/** Work that goes on after a relay has let go of its client. */
export interface Taken {
  /** Resolves when it is over. */
  done: Promise<void>;
}

/** Answers a CONNECT. What was opened for it ends with the client, whether or not the client is still there to be answered. */
export async function decideConnect(
  context: EgressContext,
  options: { host: TargetHost; port: number; client: Duplex; onTaken: (taken: Taken) => void },
): Promise<Verdict> {
  const { onTaken } = options;
  const tunnel = await openTunnel(context, { ...options, via: "connect" });
  if (isDenial(tunnel)) return { ...denialAnswer(tunnel), close: true };
  return {
    kind: "take",
    // Called even if the client is gone by now; then the tunnel ends at once.
    take(taken, first) {
      onTaken({ done: carryTunnel(context, { ...tunnel, client: taken, first, via: "connect" }) });
    },
  };
}
