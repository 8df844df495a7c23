import type { NetworkPolicy } from "../contract/network/network.ts";
import type { DenialReason, NetworkEvent } from "../contract/network/network-event.ts";

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
 * The network of one sandbox. Changes take effect immediately in whichever process serves it, including for open
 * connections.
 */
export interface SandboxNetwork {
  policy(): NetworkPolicy;
  /**
   * Changes the policy. A function gets the current policy, so concurrent changes all take effect. Resolves with the
   * resulting policy. Throws `unsupported` for a policy that the runtime cannot enforce.
   */
  change(policy: NetworkPolicy | ((before: NetworkPolicy) => NetworkPolicy), options: { by: string }): Promise<NetworkPolicy>;
  /** Stops inserting the secret's value anywhere. Throws `not_found`. */
  revoke(secret: string, options: { by: string }): Promise<void>;
  /**
   * Sends a request on the sandbox's behalf, under its rules. Rejects with `unavailable` if the destination is
   * unreachable, and with `cancelled`.
   */
  fetch(request: FetchRequest): Promise<FetchResult>;
  /** Reports network events while this process serves the network. */
  subscribe(listener: (event: NetworkEvent) => void): () => void;
  /** Reports counted events immediately, which are otherwise reported in batches. */
  settle(): void;
  /** Limits the gateway's spending, in addition to the sandbox's own limit. Called before each request. */
  limitGateway(left: () => { costUsdLeft: number | null; tokensLeft: number | null }): void;
  /** Replaces known secret values, and common encodings of them, with the secrets' names. */
  redact(text: string): string;
}
