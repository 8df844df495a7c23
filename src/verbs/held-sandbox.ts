import type { Duplex } from "node:stream";
import type { NetworkEvent } from "../contract/network/network-event.ts";
import type { SandboxInfo } from "../contract/sandbox/sandbox.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";

export type { OutputChunk, Process, SpawnOptions } from "../sandbox/sandbox.ts";

/**
 * One holder's handle of a live sandbox. `release` ends this handle only; other handles of the same sandbox keep
 * working.
 */
export interface HeldSandbox extends Sandbox, AsyncDisposable {
  /** The state after the last change that this process made or saw. */
  readonly info: SandboxInfo;
  /** Resolves when the sandbox no longer exists, for any reason. Never rejects. */
  readonly closed: Promise<{ why: "destroyed" | "lost" }>;
  /** Connects to a port on the sandbox's loopback. Throws `unavailable` if nothing listens there. */
  connect(port: number): Promise<Duplex>;
  listeners(): Promise<{ port: number; address: string }[]>;
  /** Network events while this process serves the sandbox's network; null if it has none. */
  readonly network: { subscribe(listener: (event: NetworkEvent) => void): () => void } | null;
  /**
   * Releases the handle. The last holder's release removes a sandbox that was created without `keep`. A kept sandbox
   * whose network nothing else would serve cannot run unattended: its creator's release removes it and throws.
   * Idempotent.
   */
  release(): Promise<void>;
  /** Removes the sandbox for every holder. Idempotent. Resolves when nothing remains on the host. */
  destroy(): Promise<void>;
}
