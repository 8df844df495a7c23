import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import type { NetworkPolicy } from "../../contract/network.ts";
import type { NetworkVia } from "../../contract/network-event.ts";
import { canonicalAddress } from "../address/addresses.ts";
import type { TargetHost } from "../address/target-host.ts";
import { resetStream } from "../http/reset-stream.ts";
import { type Decision, decideHost, type Grant, mustInspect, narrowToRequest, reaching, ruleOf } from "./decide-egress.ts";
import type { Asked, Denial, Refusal } from "./denial.ts";
import type { Dialer } from "./dial.ts";
import type { EgressSecrets, Emit } from "./egress-options.ts";
import type { Pinned, Resolver } from "./resolve.ts";

/**
 * One connection of a client to one host, from the decision on: what it may be ended for, and what is told when it is
 * over.
 */
export interface Passage {
  readonly grant: Grant;
  /** Null until the host's address is known. */
  readonly pinned: Pinned | null;
  readonly ended: boolean;
  pin(pinned: Pinned): void;
  /** From now on the sandbox's own authority stands between. */
  inspect(): void;
  /** To be destroyed with it. With `measured`, its bytes are the passage's. */
  adopt(socket: Socket, options?: { measured: boolean }): void;
  /** From the sandbox's side. */
  count(sent: number, received: number): void;
  request(method: string, path: string): void;
  usedSecret(name: string): void;
  bytes(): { sent: number; received: number };
  /** It is over. The event comes once, and only if the connection was let through; idempotent. */
  end(): void;
  /** Ends it from our side, with the client's connection. */
  destroy(): void;
}

/** The client's connection, or whatever stands for it. */
export interface Destroyable {
  destroy(): unknown;
}

export interface Passages {
  open(options: { grant: Grant; via: NetworkVia; client: Destroyable }): Passage;
  /** Destroys what would not be let through now. */
  enforce(policy: NetworkPolicy, secrets: EgressSecrets): void;
  /** Of all that there ever were. */
  bytes(): { sent: number; received: number };
  destroyAll(): void;
}

/** What it takes to open one. */
export interface PassageContext {
  policy(): NetworkPolicy;
  resolver: Resolver;
  dialer: Dialer;
  passages: Passages;
  /** Words for a refusal, which is also told as an event. */
  deny(asked: Asked, refusal: Refusal): Denial;
}

/**
 * Decides on a host, finds its address and checks it. The connection itself is made by `connectPassage`. Given a
 * decision, only that is asked for; else the host's.
 */
export async function openPassage(
  context: PassageContext,
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

/**
 * The connection to where a passage leads, by TLS if asked for; a denial for a certificate that is not the host's.
 * Throws `unavailable` or `timeout`.
 */
export async function connectPassage(
  context: PassageContext,
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

interface State {
  grant: Grant;
  pinned: Pinned | null;
  inspected: boolean;
  requests: number;
  lastRequest: { method: string; path: string } | null;
  secrets: Set<string>;
}

export function createPassages({ emit }: { emit: Emit }): Passages {
  const live = new Map<Passage, State>();
  const total = { sent: 0, received: 0 };
  return {
    open({ grant, via, client }) {
      const state: State = { grant, pinned: null, inspected: false, requests: 0, lastRequest: null, secrets: new Set() };
      const passage = createPassage({
        state,
        client,
        ended({ sent, received, durationMs }) {
          live.delete(passage);
          total.sent += sent;
          total.received += received;
          if (state.pinned !== null) emit(closedEvent({ state, via, sent, received, durationMs }));
        },
      });
      live.set(passage, state);
      return passage;
    },
    enforce(policy, secrets) {
      for (const [passage, state] of [...live]) if (!isStillAllowed(state, policy, secrets)) passage.destroy();
    },
    bytes() {
      const sum = { ...total };
      for (const passage of live.keys()) {
        const { sent, received } = passage.bytes();
        sum.sent += sent;
        sum.received += received;
      }
      return sum;
    },
    destroyAll() {
      for (const passage of [...live.keys()]) passage.destroy();
    },
  };
}

function createPassage(options: {
  state: State;
  client: Destroyable;
  ended: (totals: { sent: number; received: number; durationMs: number }) => void;
}): Passage {
  const { state, client } = options;
  const startMs = performance.now();
  const sockets = new Map<Socket, { measured: boolean }>();
  let sent = 0;
  let received = 0;
  let ended = false;
  const bytes = () => {
    let [out, back] = [sent, received];
    for (const [socket, { measured }] of sockets) {
      if (!measured) continue;
      out += socket.bytesWritten;
      back += socket.bytesRead;
    }
    return { sent: out, received: back };
  };
  const end = () => {
    if (ended) return;
    ended = true;
    options.ended({ ...bytes(), durationMs: Math.round(performance.now() - startMs) });
    for (const socket of sockets.keys()) socket.destroy();
  };
  return {
    get grant() {
      return state.pinned?.grant ?? state.grant;
    },
    get pinned() {
      return state.pinned;
    },
    get ended() {
      return ended;
    },
    bytes,
    pin(pinned) {
      state.pinned = pinned;
    },
    inspect() {
      state.inspected = true;
    },
    adopt(socket, { measured } = { measured: false }) {
      if (ended) return void socket.destroy();
      sockets.set(socket, { measured });
      socket.once("close", () => {
        if (sockets.delete(socket) && measured) {
          sent += socket.bytesWritten;
          received += socket.bytesRead;
        }
      });
    },
    count(more, back) {
      sent += more;
      received += back;
    },
    request(method, path) {
      state.requests += 1;
      state.lastRequest = { method, path };
    },
    usedSecret(name) {
      state.secrets.add(name);
    },
    end,
    destroy() {
      end();
      // Not an end that could be taken for that of a whole answer.
      if (client instanceof Duplex) resetStream(client);
      else client.destroy();
    },
  };
}

function isStillAllowed(state: State, policy: NetworkPolicy, secrets: EgressSecrets): boolean {
  const { host, port } = state.grant;
  for (const name of state.secrets) if (secrets.isRevoked(name)) return false;
  const decision = decideHost(policy, { host, port });
  if (!decision.allowed) return false;
  const grant = state.pinned === null ? decision.grant : reaching(decision.grant, state.pinned.reach);
  if (grant === null) return false;
  // Requests of a tunnel were not seen, so it may stay only if none has to be.
  if (state.lastRequest === null) return state.inspected || state.pinned === null || !mustInspect(grant);
  return narrowToRequest(grant, state.lastRequest).allowed;
}

function closedEvent(options: { state: State; via: NetworkVia; sent: number; received: number; durationMs: number }): Parameters<Emit>[0] {
  const { state, via, sent, received, durationMs } = options;
  const grant = state.pinned?.grant ?? state.grant;
  return {
    type: "network.closed",
    data: {
      host: grant.host.text,
      port: grant.port,
      via,
      address: state.pinned?.addresses[0] ?? "",
      rule: ruleOf(grant),
      inspected: state.inspected,
      requests: state.requests,
      sentBytes: sent,
      receivedBytes: received,
      durationMs,
    },
  };
}
