import type { Duplex, Transform } from "node:stream";
import type { SecureContext } from "node:tls";
import type { SandboxId } from "../../contract/ids.ts";
import type { NetworkPolicy } from "../../contract/network/network.ts";
import type { DenialReason, NetworkEvent } from "../../contract/network/network-event.ts";
import type { InboundConnection } from "../../sandbox/sandbox.ts";
import type { FetchRequest, FetchResult } from "../../sandbox/sandbox-network.ts";
import type { RequestHead, ResponseHead } from "../http/head.ts";
import type { EgressLimits } from "./egress-limits.ts";

export interface EgressOptions {
  sandbox: SandboxId;
  /**
   * Read at each decision. Must return the same object until the policy changes, because derived data is cached by its
   * identity.
   */
  policy: () => NetworkPolicy;
  secrets: EgressSecrets;
  /** Issues certificates for inspected hosts, from the sandbox's own authority. */
  authority: { contextFor(host: string): SecureContext };
  emit: Emit;
  /** Returns a sentence that tells a person or an agent how to get access. */
  howToAsk: (host: string, port: number, reason: DenialReason) => string;
  /** Resolves all addresses of a name. Throws if the name has no address. Default: the host's own resolver. */
  resolve?: (name: string) => Promise<string[]>;
  /** Returns the host's own addresses. Default: those of its interfaces. */
  ownAddresses?: () => string[];
  /** PEM certificates to trust upstream, in addition to Node's and the system's. */
  upstreamCa?: readonly string[];
  /** Answers for package registries, unless a rule names their host. It receives plain HTTP. */
  mirror?: { serves(host: string, port: number): boolean; handle(connection: { stream: Duplex; origin: URL }): void };
  limits?: Partial<EgressLimits>;
}

export interface EgressStats {
  connections: number;
  sentBytes: number;
  receivedBytes: number;
}

/** The outbound network of one sandbox. */
export interface Egress {
  /**
   * Handles a connection to the proxy port (HTTP, CONNECT or SOCKS5, by its first byte), or a transparent connection
   * (with a destination).
   */
  handle(connection: InboundConnection): void;
  /**
   * Answers a DNS question of a sandbox in transparent mode without sending a packet. Returns null for a malformed
   * question or host name.
   */
  answerName(question: Buffer): Buffer | null;
  /**
   * Makes a request on an agent's behalf under the same rules, and checks each redirect again. Throws `invalid` for a
   * malformed request, `unavailable` if the server cannot be reached, `timeout` or `cancelled`.
   */
  fetch(request: FetchRequest): Promise<FetchResult>;
  /**
   * Ends the connections that the current policy does not allow, and those that used a secret that was since revoked.
   * Must be called after every change.
   */
  enforce(): void;
  /** Emits the events for everything counted so far. */
  settle(): void;
  /** Ends every connection. Resolves when all have closed. */
  close(): Promise<void>;
  stats(): EgressStats;
}

/**
 * The part of a sandbox's secrets that egress needs, implemented by the secret book. Egress sees a value only in a head
 * that it is about to send.
 */
export interface EgressSecrets {
  /** Variable → placeholder. If empty, heads are not searched. */
  readonly placeholders: Readonly<Record<string, string>>;
  /** Checks whether TLS to this host and port must be intercepted because of a secret. */
  concerns(host: string, port: number): boolean;
  /**
   * Replaces placeholders where the values may be sent. Any error means that the request must not be sent. The client
   * sees the message of a `CaissonError`.
   */
  inject(
    head: RequestHead,
    to: { host: string; port: number; tls: boolean },
  ): Promise<{ head: RequestHead; used: string[]; withheld: { secret: string; why: string }[] }>;
  /**
   * Returns a redactor that replaces values in an answer with their placeholders, without changing any length. Null if
   * there is nothing to redact.
   */
  answerRedactor(used: readonly string[]): { head: (head: ResponseHead) => ResponseHead; body: () => Transform } | null;
  isRevoked(name: string): boolean;
}

type WithoutSandbox<E> = E extends { type: infer Type; data: infer Data } ? { type: Type; data: Omit<Data, "sandbox"> } : never;

/** A network event of one sandbox. The receiver adds the sandbox and the time. */
export type NetworkEventInput = WithoutSandbox<NetworkEvent>;

/** Must never throw or block: it is called in the middle of a connection. */
export type Emit = (event: NetworkEventInput) => void;
