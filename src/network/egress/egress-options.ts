import type { Duplex, Transform } from "node:stream";
import type { SecureContext } from "node:tls";
import type { SandboxId } from "../../contract/ids.ts";
import type { NetworkPolicy } from "../../contract/network.ts";
import type { DenialReason, NetworkEvent } from "../../contract/network-event.ts";
import type { InboundConnection } from "../../sandbox/sandbox.ts";
import type { FetchRequest, FetchResult } from "../../sandbox/sandbox-network.ts";
import type { RequestHead, ResponseHead } from "../http/head.ts";
import type { EgressLimits } from "./egress-limits.ts";

export interface EgressOptions {
  sandbox: SandboxId;
  /**
   * Read at each decision. The same object must come back while nothing changed: what is derived from it is kept by its
   * identity.
   */
  policy: () => NetworkPolicy;
  secrets: EgressSecrets;
  /** Certificates for hosts that are inspected, from the sandbox's own authority. */
  authority: { contextFor(host: string): SecureContext };
  emit: Emit;
  /** A sentence for a denial: how a person or an agent gets this allowed. */
  howToAsk: (host: string, port: number, reason: DenialReason) => string;
  /** All addresses of a name; throws when there are none. Default: the host's own resolver. */
  resolve?: (name: string) => Promise<string[]>;
  /** Addresses of the host itself. Default: those of its interfaces. */
  ownAddresses?: () => string[];
  /** Certificates (PEM) trusted upstream besides Node's and the system's. */
  upstreamCa?: readonly string[];
  /** Answers in the place of package registries, unless a rule names their host. It is given HTTP in clear. */
  mirror?: { serves(host: string, port: number): boolean; handle(connection: { stream: Duplex; origin: URL }): void };
  limits?: Partial<EgressLimits>;
}

export interface EgressStats {
  connections: number;
  sentBytes: number;
  receivedBytes: number;
}

/** The way out of one sandbox. */
export interface Egress {
  /**
   * Takes a connection of the proxy port (HTTP, CONNECT or SOCKS5, by its first byte), or one that was carried
   * transparently (with a destination).
   */
  handle(connection: InboundConnection): void;
  /**
   * Answers a DNS question of a sandbox in transparent mode, without sending a packet. Null for what is no question.
   */
  answerName(question: Buffer): Buffer | null;
  /**
   * A request made by the host on an agent's behalf, under the same decisions; each redirect is decided anew.
   * Throws `invalid` for a malformed request, `unavailable` when the server cannot be reached, `timeout`, `cancelled`.
   */
  fetch(request: FetchRequest): Promise<FetchResult>;
  /**
   * Ends the connections that the current policy does not allow, and those that used a secret revoked since. To be
   * called after every change.
   */
  enforce(): void;
  /** What was counted until now becomes events. */
  settle(): void;
  /** Ends every connection. Resolves when none is left. */
  close(): Promise<void>;
  stats(): EgressStats;
}

/**
 * What egress needs of a sandbox's secrets; the secret book is one. Egress never sees a value but in a head that it is
 * about to send.
 */
export interface EgressSecrets {
  /** Variable → placeholder. With none, heads are not looked at. */
  readonly placeholders: Readonly<Record<string, string>>;
  /** Whether TLS to this host and port must be opened because of a secret. */
  concerns(host: string, port: number): boolean;
  /**
   * Replaces placeholders where the values may go. Any error means that the request may not be sent: a `CaissonError`'s
   * message is shown to the one who asked.
   */
  inject(
    head: RequestHead,
    to: { host: string; port: number; tls: boolean },
  ): Promise<{ head: RequestHead; used: string[]; withheld: { secret: string; why: string }[] }>;
  /**
   * Turns values that come back into their placeholders, without changing any length. Null when there is nothing to
   * look for.
   */
  answerRedactor(used: readonly string[]): { head: (head: ResponseHead) => ResponseHead; body: () => Transform } | null;
  isRevoked(name: string): boolean;
}

type WithoutSandbox<E> = E extends { type: infer Type; data: infer Data } ? { type: Type; data: Omit<Data, "sandbox"> } : never;

/** What happened on a sandbox's network; whoever takes it knows which sandbox, and adds the time. */
export type NetworkEventInput = WithoutSandbox<NetworkEvent>;

/** Never throws and never waits: it is called in the middle of a connection. */
export type Emit = (event: NetworkEventInput) => void;
