import type { NetworkPolicy } from "../contract/network.ts";
import type { DenialReason, NetworkEvent } from "../contract/network-event.ts";

export interface FetchRequest {
  url: string;
  method?: string;
  headers?: Readonly<Record<string, string>>;
  body?: Uint8Array;
  bytesMax: number;
  signal?: AbortSignal;
}
export type FetchResult =
  | { status: number; headers: Record<string, string>; body: Buffer; truncated: boolean; url: string }
  | { denied: { reason: DenialReason; text: string } };

/**
 * The network of one sandbox. What is changed here holds at once in whichever process serves it, also for connections
 * that are open.
 */
export interface SandboxNetwork {
  policy(): NetworkPolicy;
  /**
   * A function is given what holds at that moment, so that several who change it at once all have their way. Resolves
   * with what holds then. Throws `unsupported` for a policy the runtime cannot enforce.
   */
  change(policy: NetworkPolicy | ((before: NetworkPolicy) => NetworkPolicy), options: { by: string }): Promise<NetworkPolicy>;
  /** From now on the secret's value is put in nowhere. Throws `not_found`. */
  revoke(secret: string, options: { by: string }): Promise<void>;
  /**
   * A request on the sandbox's behalf, under its rules. Rejects with `unavailable` when the other side cannot be
   * reached, `cancelled`.
   */
  fetch(request: FetchRequest): Promise<FetchResult>;
  /** What happens in the network while this process serves it. */
  subscribe(listener: (event: NetworkEvent) => void): () => void;
  /** What was counted, to be told of together, is told of now. */
  settle(): void;
  /** A bound on what the gateway spends, besides the sandbox's own: asked for before each call. */
  limitGateway(left: () => { costUsdLeft: number | null; tokensLeft: number | null }): void;
  /** Known values of secrets, and common encodings of them, become their names. */
  redact(text: string): string;
}
