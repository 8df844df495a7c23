import type { Duplex } from "node:stream";
import type { NetworkEvent } from "../../contract/network-event.ts";
import type { SandboxInfo } from "../../contract/sandbox.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";

export type { OutputChunk, Process, SpawnOptions } from "../../sandbox/sandbox.ts";

/**
 * One holder's handle of a live sandbox. After `release` it is of no use, and the sandbox's other handles are as they
 * were.
 */
export interface HeldSandbox extends Sandbox, AsyncDisposable {
  /** As of the last change that this process made or saw. */
  readonly info: SandboxInfo;
  /** Resolves when the sandbox is gone, however it came. Never rejects. */
  readonly closed: Promise<{ why: "destroyed" | "lost" }>;
  /** A connection to a port on the sandbox's loopback. Throws `unavailable` when nothing listens there. */
  connect(port: number): Promise<Duplex>;
  listeners(): Promise<{ port: number; address: string }[]>;
  /** What happens in its network while this process serves it; null where there is none. */
  readonly network: { subscribe(listener: (event: NetworkEvent) => void): () => void } | null;
  /**
   * Lets go. The last one to let go of a sandbox made without `keep` removes it; a kept one that cannot be left alone,
   * because nothing would serve its network, is removed by its creator's release, which throws then. Idempotent.
   */
  release(): Promise<void>;
  /** Removes the sandbox, for every holder. Idempotent; resolves when nothing is left on the host. */
  destroy(): Promise<void>;
}
