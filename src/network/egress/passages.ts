import type { Socket } from "node:net";
import { Duplex } from "node:stream";
import type { NetworkPolicy } from "../../contract/network/network.ts";
import type { NetworkVia } from "../../contract/network/network-event.ts";
import { canonicalAddress } from "../address/addresses.ts";
import type { TargetHost } from "../address/target-host.ts";
import { resetStream } from "../http/reset-stream.ts";
import { decideHost, type EgressDecision, type Grant, mustInspect, narrowToRequest, reaching, ruleOf } from "./decide-egress.ts";
import type { Attempt, Denial, Refusal } from "./denial.ts";
import type { Dialer } from "./dial.ts";
import type { EgressSecrets, Emit } from "./egress-options.ts";
import type { Pinned, Resolver } from "./resolve.ts";

/**
 * A client's connection to one host, from the decision on. Holds the state that decides whether it may continue, and
 * the facts that we report when it has ended.
 */
export interface Passage {
  readonly grant: Grant;
  /** Null until the host is resolved. */
  readonly pinned: Pinned | null;
  readonly ended: boolean;
  pin(pinned: Pinned): void;
  /** Records that we intercept its TLS with the sandbox's own authority. */
  inspect(): void;
  /** Registers a socket to destroy with the passage. With `measured`, its bytes count as the passage's. */
  adopt(socket: Socket, options?: { measured: boolean }): void;
  /** Counts bytes, as seen from the sandbox. */
  count(sent: number, received: number): void;
  request(method: string, path: string): void;
  usedSecret(name: string): void;
  bytes(): { sent: number; received: number };
  /** Ends the passage. Emits the event once, and only if the connection was allowed; idempotent. */
  end(): void;
  /** Ends the passage from our side, together with the client's connection. */
  destroy(): void;
}

/** The client's connection, or a stand-in for it. */
export interface Destroyable {
  destroy(): unknown;
}

export interface Passages {
  open(options: { grant: Grant; via: NetworkVia; client: Destroyable }): Passage;
  /** Destroys the passages that are no longer allowed. */
  enforce(policy: NetworkPolicy, secrets: EgressSecrets): void;
  /** Returns the total of all passages, past and present. */
  bytes(): { sent: number; received: number };
  destroyAll(): void;
}

/** The dependencies for opening a passage. */
export interface PassageContext {
  policy(): NetworkPolicy;
  resolver: Resolver;
  dialer: Dialer;
  passages: Passages;
  /** Turns a refusal into a denial with a text, and reports it as an event. */
  deny(attempt: Attempt, refusal: Refusal): Denial;
}

/**
 * Checks a host against the policy, resolves it and checks its address. `connectPassage` then makes the connection. If
 * `decision` is given, uses it instead of deciding on the host.
 */
export async function openPassage(
  context: PassageContext,
  options: {
    host: TargetHost;
    port: number;
    via: NetworkVia;
    client: Destroyable;
    method?: string;
    path?: string;
    decision?: EgressDecision;
  },
): Promise<Passage | Denial> {
  const { host, port, via, client, method = null, path = null } = options;
  const attempt: Attempt = { host: host.text, port, via, method, path };
  const decision = options.decision ?? decideHost(context.policy(), { host, port });
  if (!decision.allowed) return context.deny(attempt, decision);
  // Registered before the lookup, so that a policy change during the lookup reaches it.
  const passage = context.passages.open({ grant: decision.grant, via, client });
  const pinned = await context.resolver.pin(decision.grant);
  if ("refused" in pinned) {
    passage.end();
    return context.deny(attempt, pinned.refused);
  }
  if (passage.ended) return context.deny(attempt, noLonger);
  passage.pin(pinned);
  return passage;
}

/**
 * Connects to the passage's address, over TLS if requested. Returns a denial if the certificate is not the host's.
 * Throws `unavailable` or `timeout`.
 */
export async function connectPassage(
  context: PassageContext,
  options: { passage: Passage; attempt: Attempt; tls: boolean; measured: boolean },
): Promise<Duplex | Denial> {
  const { passage, attempt, tls, measured } = options;
  const { pinned } = passage;
  if (pinned === null || passage.ended) return context.deny(attempt, noLonger);
  const dialed = {
    pinned,
    adopt: (socket: Socket) => {
      passage.adopt(socket, { measured });
      socket.once("connect", () => {
        // The other addresses of the name are no longer tried: a passage has one destination.
        const address = canonicalAddress(socket.remoteAddress ?? "");
        if (address !== null && pinned.addresses.includes(address)) passage.pin({ ...pinned, addresses: [address] });
      });
    },
  };
  const socket = tls ? await context.dialer.openTls(dialed) : await context.dialer.open(dialed);
  return "refused" in socket ? context.deny(attempt, socket.refused) : socket;
}

const noLonger: Refusal = { reason: "host_not_allowed", why: "it is no longer allowed" };

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
      // A reset, because a normal close could pass for the end of a complete answer.
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
  // We did not see the requests of this tunnel, so it may stay open only if the policy does not require us to inspect
  // them.
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
