import { type Duplex, duplexPair } from "node:stream";
import type { NetworkVia } from "../../contract/network/network-event.ts";
import { authorityText, type TargetHost } from "../address/target-host.ts";
import type { RequestHead } from "../http/head.ts";
import type { RelayVerdict } from "../http/relay-options.ts";
import { decideHost } from "./decide-egress.ts";
import type { Refusal } from "./denial.ts";
import type { EgressContext } from "./egress-context.ts";
import { endTls, endWithAlert } from "./end-tls.ts";
import { nextBytes, readBeginning } from "./first-bytes.ts";
import { toOrigin } from "./forward-request.ts";

/** A host and port that the package mirror may serve. */
export interface Mirrored {
  host: TargetHost;
  port: number;
}

/**
 * Checks whether the mirror answers for a host. A rule that names the host takes precedence, because its author wants
 * the host itself.
 */
export function isMirrored(context: EgressContext, { host, port }: Mirrored): boolean {
  const policy = context.policy();
  if (policy.mode === "none" || context.mirror?.serves(host.text, port) !== true) return false;
  const decision = decideHost(policy, { host, port });
  return !decision.allowed || decision.grant.rules.length === 0;
}

/**
 * Carries a tunnel to the mirror. TLS ends here, with a certificate from the sandbox's own authority, and nothing is
 * sent to the host itself. Resolves when the tunnel has closed; never rejects.
 */
export async function carryToMirror(
  context: EgressContext,
  options: Mirrored & { client: Duplex; first: Buffer; via: NetworkVia },
): Promise<void> {
  const { client, host, port, via } = options;
  const { limits } = context;
  const refuse = (refusal: Refusal) => {
    context.deny({ host: host.text, port, via, method: null, path: null }, refusal);
    endWithAlert(client, refusal);
  };
  const { beginning, bytes } = await readBeginning({
    first: options.first,
    bytesMax: limits.helloBytesMax,
    wait: () => nextBytes(client, { timeoutMs: limits.firstBytesMs }),
  });
  if (beginning.kind === "hello") {
    const { serverName } = beginning;
    if (serverName !== null && host.kind === "name" && serverName !== host.text) return refuse({ reason: "name_mismatch" });
    const tls = endTls(context, { client, first: bytes, host });
    return tls === null ? undefined : await handOver(context, { ...options, stream: tls, scheme: "https" });
  }
  if (beginning.kind !== "http") {
    refuse({ reason: "bad_request", why: `the package mirror serves ${host.text} over HTTP and HTTPS only` });
    return void client.destroy();
  }
  // `readBeginning` paused it.
  client.unshift(bytes);
  client.resume();
  await handOver(context, { ...options, stream: client, scheme: "http" });
}

/** Returns the relay's verdict for a request in plain HTTP. */
export function forwardToMirror(
  context: EgressContext,
  { host, port, head, path }: Mirrored & { head: RequestHead; path: string },
): RelayVerdict {
  const authority = authorityText(host, port, 80);
  return {
    kind: "forward",
    key: `mirror ${authority}`,
    request: toOrigin(head, { path, authority }),
    async connect() {
      const [near, far] = duplexPair();
      near.on("error", () => {});
      void handOver(context, { host, port, stream: far, scheme: "http" });
      return near;
    },
  };
}

async function handOver(context: EgressContext, options: Mirrored & { stream: Duplex; scheme: "http" | "https" }): Promise<void> {
  const { host, port, stream, scheme } = options;
  const closed = new Promise((resolve) => stream.once("close", resolve));
  const origin = new URL(`${scheme}://${authorityText(host, port, scheme === "https" ? 443 : 80)}/`);
  if (context.mirror === undefined) return void stream.destroy();
  context.mirror.handle({ stream, origin });
  await closed;
}
