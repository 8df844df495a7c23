import { makeEvent, type NewEventOf } from "../../contract/event/event-family.ts";
import type { NetworkPolicy } from "../../contract/network/network.ts";
import { type DenialReason, type NetworkEvent, networkEvents } from "../../contract/network/network-event.ts";
import { insideSocket } from "../../lib/inside-socket.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import type { FetchRequest, FetchResult } from "../../sandbox/sandbox-network.ts";
import { createAuthority } from "../authority/authority.ts";
import { createEgress } from "../egress/egress.ts";
import type { Egress, NetworkEventInput } from "../egress/egress-options.ts";
import { resolveByHost } from "../egress/resolve.ts";
import type { GatewayOptions } from "../gateway/gateway-options.ts";
import type { NetworkHost } from "../network-host.ts";
import { readCertificates } from "../outbound/read-certificates.ts";
import { GATEWAY_PORT, PROXY_PORT, STATION_PORT } from "../sandbox-setup/ports.ts";
import type { SecretBook } from "../secrets/secret-book.ts";
import { createLazyGateway } from "./lazy-gateway.ts";
import { createLazyMirror } from "./lazy-mirror.ts";
import { isMadeTransparent, type NetworkState } from "./network-state.ts";
import { createStationRelay } from "./station-relay.ts";

/** The host's side of one sandbox's network, while this process serves it. */
export interface ServedNetwork {
  /** Applies the current state: opens what has become necessary, and ends what is no longer allowed. */
  apply(state: NetworkState): Promise<void>;
  fetch(request: FetchRequest): Promise<FetchResult>;
  /** Emits the events for everything counted so far. */
  settle(): void;
  close(): Promise<void>;
}

export interface ServeOptions {
  sandbox: OwnedSandbox;
  folder: string;
  state: NetworkState;
  book: SecretBook;
  host: NetworkHost;
  emit: (event: NetworkEvent) => void;
  budget: NonNullable<GatewayOptions["budget"]>;
}

/** The name of the host machine inside. */
const HOST_NAME = "host.caisson";
/** The default ports of ssh and the web. Other ports are those that rules name. */
const USUAL_PORTS = [22, 80, 443];
const PORTS_MAX = 256;

/** Throws `invalid` for certificates that cannot be read, and what `sandbox.serve` throws. */
export async function serveNetwork(options: ServeOptions): Promise<ServedNetwork> {
  const { sandbox, host, folder, book } = options;
  let { state } = options;
  const upstreamCa = host.settings.caFiles.map(readCertificates);
  const redactor = book.redactor();
  const emit = (input: NetworkEventInput) => {
    const data = { ...redactor.json(input.data), sandbox: sandbox.id };
    options.emit(makeEvent(networkEvents, { type: input.type, data } as NewEventOf<NetworkEvent>));
  };
  const mirror = createLazyMirror({ sandbox, folder, host, upstreamCa, emit });
  const egress = createEgress({
    sandbox: sandbox.id,
    policy: () => state.policy,
    secrets: book,
    authority: createAuthority(state.authority ?? undefined),
    emit,
    howToAsk: (name, port, reason) => howToAsk(sandbox, { host: name, port, reason }),
    // Loopback inside belongs to the sandbox. The host's loopback has a name, which only a private rule allows.
    resolve: async (name) => (name === HOST_NAME ? ["127.0.0.1"] : resolveByHost(name)),
    upstreamCa,
    mirror,
  });
  const gateway = createLazyGateway({
    folder,
    config: () => state.gateway,
    host,
    upstreamCa,
    redact: redactor.text,
    emit,
    budget: options.budget,
    hostedTools: () => state.policy.mode === "open",
    howToRaise: "Ask the sandbox's creator to raise it (--gateway-cost, --gateway-tokens).",
  });
  const station = createStationRelay({ sandbox: sandbox.id, socketPath: insideSocket(host.stateDir) });
  const transparent = createTransparentPorts(sandbox, egress);
  const claims = new Map<number, { close(): void }>();
  const claim = async (port: number, handle: Egress["handle"]) => {
    if (!claims.has(port)) claims.set(port, await sandbox.serve(port, handle));
  };
  const apply = async (next: NetworkState) => {
    state = next;
    for (const name of next.revoked) if (!book.isRevoked(name)) book.revoke(name);
    const { policy } = next;
    egress.enforce();
    await mirror.use(policy.mode === "none" ? [] : policy.registries);
    // We serve the proxy even if no host is allowed, so that it denies requests with a reason.
    await claim(PROXY_PORT, egress.handle);
    await transparent.use(policy);
    if (next.gateway !== null) await claim(GATEWAY_PORT, gateway.handle);
    if (next.stationAccess) await claim(STATION_PORT, station.handle);
  };
  const close = async () => {
    for (const each of claims.values()) each.close();
    claims.clear();
    transparent.close();
    await Promise.all([egress.close(), mirror.close(), gateway.close(), station.close()]);
  };
  try {
    await apply(state);
  } catch (error) {
    await close();
    throw error;
  }
  return { apply, close, settle: () => egress.settle(), fetch: (request) => egress.fetch(request) };
}

/**
 * Carries the connections of programs unaware of the proxy, on the ports that the current policy names, under the same
 * rules as everything else.
 */
function createTransparentPorts(sandbox: OwnedSandbox, egress: Egress): { use(policy: NetworkPolicy): Promise<void>; close(): void } {
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
      // Closed last, so that every connection is answered.
      before?.close();
    },
    close: () => claim?.close(),
  };
}

/**
 * Names the run if there is one, because people know its name better than its sandbox's. A run's agent can request
 * access itself, except to private networks, which only a person may allow.
 */
function howToAsk(sandbox: OwnedSandbox, denial: { host: string; port: number; reason: DenialReason }): string {
  const { host, port, reason } = denial;
  const run = sandbox.info.labels.run;
  const target = port === 80 || port === 443 ? host : `${host}:${port}`;
  const isPrivate = reason === "private_address";
  const person = `A person can allow it: caisson net allow ${run ?? sandbox.id} ${isPrivate ? `'private ${target}'` : target}`;
  return run === undefined || isPrivate ? person : `An agent can request it with the tool request_network. ${person}`;
}
