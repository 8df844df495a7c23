import type { NetworkPolicy } from "../../contract/network.ts";
import type { NetworkEvent, NumberedNetworkEvent } from "../../contract/network-event.ts";
import type {
  ForwardPort,
  ForwardView,
  KeptPreview,
  ListeningPort,
  NetworkChange,
  NetworkView,
  OpenPreview,
  PreviewView,
  RevokeSecret,
} from "../../contract/network-verbs.ts";

/**
 * A port of a sandbox that can be reached from outside, until `close` or the sandbox's end. The sandbox is held that
 * long.
 */
export interface OpenedPort<View> extends AsyncDisposable {
  readonly view: View;
  /** Resolves when the sandbox is gone. Never rejects. */
  readonly closed: Promise<unknown>;
  /** From now on it leads nowhere, and connections that are open end. Idempotent. */
  close(): Promise<void>;
}

export type PortEvent = Extract<NetworkEvent, { type: "port.opened" | "port.closed" }>;

/**
 * What can be done with the networks of sandboxes. `name` stands for a sandbox or a run; throws `not_found`,
 * `conflict` for a run without a sandbox, `unsupported` where the runtime has no network.
 */
export interface NetworkVerbs {
  show(name: string): Promise<NetworkView>;
  /**
   * Holds at once, also for connections that are open; several who change at once all have their way. Resolves with the
   * new policy.
   */
  change(name: string, change: NetworkChange): Promise<NetworkPolicy>;
  /** From now on the secret is injected nowhere. Throws `not_found` for a secret the sandbox does not have. */
  revoke(name: string, request: RevokeSecret): Promise<void>;
  /**
   * What happened in it, from a number on; with `follow`, also what is to come, until the signal or the run's end. A
   * run has its own log of it, also when its sandbox is gone.
   */
  log(name: string, options?: { fromSeq?: number; follow?: boolean; signal?: AbortSignal }): AsyncIterable<NumberedNetworkEvent>;
  /** Shows an HTTP port to whoever has the URL. Throws `conflict` when the port of this machine is taken, `denied`. */
  preview(name: string, request: OpenPreview): Promise<OpenedPort<PreviewView>>;
  /**
   * The same, kept open by the station until `closePreview`, the sandbox's end, or its own. Throws `busy` past the
   * limit.
   */
  keepPreview(name: string, request: OpenPreview): Promise<KeptPreview>;
  /** Those that the station keeps open, the oldest first. */
  previews(): Promise<KeptPreview[]>;
  /** Throws `not_found`. */
  closePreview(id: string): Promise<void>;
  /**
   * Makes a TCP port of the sandbox a port of this machine. `onRefused` hears why a connection could not be made
   * inside. Throws `conflict`, `denied`.
   */
  forward(name: string, request: ForwardPort, options?: { onRefused?: (error: unknown) => void }): Promise<OpenedPort<ForwardView>>;
  /** What listens inside, in the order of the ports; those that the host itself serves there are left out. */
  ports(name: string): Promise<ListeningPort[]>;
  /**
   * Each port that begins to listen, those that listen already first, and each that stops; until the signal or the
   * sandbox's end.
   */
  watchPorts(name: string, options?: { signal?: AbortSignal }): AsyncIterable<PortEvent>;
}
