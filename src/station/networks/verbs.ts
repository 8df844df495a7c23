import type { NetworkPolicy } from "../../contract/network.ts";
import type { NetworkEvent } from "../../contract/network-event.ts";
import type { ListeningPort, NetworkChange, NetworkView, OpenPreview, PreviewView, RevokeSecret } from "../../contract/network-verbs.ts";

/** A preview that is being served, until `close` or the sandbox's end. */
export interface Preview extends AsyncDisposable {
  readonly view: PreviewView;
  /** From now on the URL leads nowhere. Idempotent. */
  close(): Promise<void>;
}

/**
 * What can be done with the networks of sandboxes. `name` is a sandbox's id or that of a run; throws `not_found`, `conflict` for a run without a sandbox, `unsupported` where
 * the runtime has no network.
 */
export interface NetworkVerbs {
  show(name: string): Promise<NetworkView>;
  /** Holds at once, also for connections that are open; several who change at once all have their way. Resolves with the new policy. */
  change(name: string, change: NetworkChange): Promise<NetworkPolicy>;
  /** From now on the secret is injected nowhere. Throws `not_found` for a secret the sandbox does not have. */
  revoke(name: string, request: RevokeSecret): Promise<void>;
  /** What happened in it; with `follow`, also what is to come, until the signal. A run that has ended still has its log. */
  log(name: string, options?: { follow?: boolean; signal?: AbortSignal }): AsyncIterable<NetworkEvent>;
  /** Throws `conflict` when the port of this machine is taken. */
  preview(name: string, request: OpenPreview): Promise<Preview>;
  ports(name: string): Promise<ListeningPort[]>;
}
