import { z } from "zod";
import { NameOrId } from "../contract/api/name-or-id.ts";
import { reachOfNetworkChange, reachOfPreview } from "../contract/api/required-scopes.ts";
import { EnvName } from "../contract/ids.ts";
import { NetworkPolicy } from "../contract/network/network.ts";
import { NetworkEvent, PortClosed, PortOpened } from "../contract/network/network-event.ts";
import {
  type ForwardPort,
  type ForwardView,
  KeptPreview,
  ListeningPort,
  NetworkChange,
  NetworkView,
  OpenPreview,
  PreviewId,
  type PreviewView,
  type RevokeSecret,
} from "../contract/network/network-verbs.ts";
import { type VerbsOf, verb, verbOfType } from "./verb.ts";

/** A sandbox port that is reachable from outside until `close` or the end of the sandbox. It holds the sandbox. */
export interface OpenedPort<View> extends AsyncDisposable {
  readonly view: View;
  /** Resolves when the sandbox has ended. Never rejects. */
  readonly closed: Promise<unknown>;
  /** Closes the port, and every connection through it. Idempotent. */
  close(): Promise<void>;
}

export type PortEvent = Extract<NetworkEvent, { type: "port.opened" | "port.closed" }>;

const NumberedNetworkEvent = NetworkEvent.and(z.object({ seq: z.int().positive() }));

/**
 * Sandbox networks. `name` is a sandbox or a run. The verbs throw `not_found`, `conflict` for a run without a sandbox,
 * `unsupported` if the runtime has no network.
 */
export const networks = {
  show: verb({
    path: "GET /v1/sandboxes/{sandbox}/network",
    gives: NetworkView,
    scope: "read",
    owned: "network",
    summary: "Show what a sandbox, or the sandbox of a run, may reach.",
  }),
  /**
   * Changes the policy at once, even for open connections. Concurrent changes all take effect. Resolves with the new
   * policy.
   */
  change: verb({
    path: "POST /v1/sandboxes/{sandbox}/network",
    takes: NetworkChange.omit({ by: true }),
    by: true,
    gives: NetworkPolicy,
    reaches: reachOfNetworkChange,
    scope: "run",
    owned: "network",
    summary: "Allow a sandbox more, deny it some, or replace what it may reach. Applies at once, even to open connections.",
  }),
  /** Stops injecting the secret. Throws `not_found` for a secret the sandbox does not have. */
  revoke: verbOfType<(name: string, request: RevokeSecret) => Promise<void>>()({
    path: "DELETE /v1/sandboxes/{sandbox}/network/secrets/{secret}",
    params: { sandbox: NameOrId, secret: EnvName },
    answer: {},
    scope: "run",
    owned: "network",
    summary: "Stop injecting a secret for a sandbox.",
  }),
  /**
   * Reads the network events from a sequence number on. With `follow`, also yields new ones until the signal aborts or
   * the run ends. A run keeps its log when its sandbox is removed.
   */
  log: verb({
    path: "GET /v1/sandboxes/{sandbox}/network/log",
    gives: NumberedNetworkEvent,
    kind: "log",
    scope: "read",
    owned: "network",
    summary:
      "List the network events of a sandbox: a page as JSON, or all and then new ones as server-sent events, with sequence numbers as ids. The oldest entries of a long log are dropped.",
  }),
  /** Serves an HTTP port at a URL. Throws `conflict` if the local port is taken, `denied`. */
  preview: verbOfType<(name: string, request: OpenPreview) => Promise<OpenedPort<PreviewView>>>()({
    owned: "network",
    withoutRoute: "over HTTP the station keeps it open, by `previews.open`",
  }),
  /**
   * Serves an HTTP port from the station until `closePreview`, or until the sandbox or the station ends. Throws `busy`.
   */
  keepPreview: verb({
    path: "POST /v1/sandboxes/{sandbox}/previews",
    route: "previews.open",
    takes: OpenPreview,
    gives: KeptPreview,
    status: 201,
    reaches: reachOfPreview,
    scope: "run",
    owned: "network",
    summary: "Serve an HTTP port of a sandbox at a URL until it is closed, or the sandbox or the station ends.",
  }),
  /** Lists the previews that the station serves, oldest first. */
  previews: verb({
    path: "GET /v1/previews",
    route: "previews.list",
    gives: z.array(KeptPreview),
    key: "previews",
    scope: "run",
    owned: "by hand",
    summary: "List the previews that the station serves.",
  }),
  /** Throws `not_found`. */
  closePreview: verb({
    path: "DELETE /v1/previews/{preview}",
    route: "previews.close",
    params: { preview: PreviewId },
    scope: "run",
    owned: "by hand",
    summary: "Close a preview.",
  }),
  /**
   * Forwards a local port to a TCP port of the sandbox. Calls `onRefused` if a connection inside fails. Throws
   * `conflict`, `denied`.
   */
  forward: verbOfType<
    (name: string, request: ForwardPort, options?: { onRefused?: (error: unknown) => void }) => Promise<OpenedPort<ForwardView>>
  >()({ owned: "network", withoutRoute: "the caller opens the port, and a WebSocket carries each connection" }),
  /** Lists the ports with listeners inside, sorted by port, without those that the host serves there. */
  ports: verbOfType<(name: string) => Promise<ListeningPort[]>>()({
    path: "GET /v1/sandboxes/{sandbox}/ports",
    route: "ports.list",
    query: z.strictObject({
      /** Includes every further address, and the ports that the host serves there. */
      all: z.boolean().optional(),
    }),
    answer: { json: z.object({ ports: z.array(ListeningPort) }) },
    scope: "read",
    owned: "network",
    summary: "List the ports with listeners in a sandbox.",
  }),
  /**
   * Yields each port that has a listener, then each one opened or closed, until the signal aborts or the sandbox ends.
   */
  watchPorts: verbOfType<(name: string, options?: { signal?: AbortSignal }) => AsyncIterable<PortEvent>>()({
    path: "GET /v1/sandboxes/{sandbox}/ports/events",
    route: "ports.watch",
    answer: { events: z.discriminatedUnion("type", [PortOpened, PortClosed]) },
    kind: "stream",
    scope: "read",
    owned: "network",
    summary: "Follow the ports of a sandbox: each that has a listener, then each one opened or closed.",
  }),
};

export type NetworkVerbs = VerbsOf<typeof networks>;
