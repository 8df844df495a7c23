import type { SnapshotId } from "../contract/ids.ts";
import type { SandboxStats } from "../contract/sandbox.ts";
import type { GuestCondition } from "./guest/waits.ts";
import type { ForkOptions, OwnedSandbox } from "./sandbox.ts";

/**
 * What differs between the self-hosted runtimes once a guest is up: the wall around it. Everything else (processes,
 * files, ports) is the guest's work and is written once, in `guest/`.
 */
export interface Wall {
  /**
   * The host's own accounting; the guest's word is not asked. `processes` counts what the host sees. Null where the
   * host cannot know.
   */
  stats(): Promise<SandboxStats>;
  /** What the host sees of the guest by its own means, without asking it; `unknown` where it cannot. */
  condition(): Promise<GuestCondition>;
  /** Throws `unsupported`. Idempotent. */
  pause(): Promise<void>;
  /** Also of a sandbox that nobody paused but something holds still. */
  resume(): Promise<void>;
  snapshot(options: { name?: string }): Promise<SnapshotId>;
  fork(options: ForkOptions): Promise<OwnedSandbox>;
  /** Marks the sandbox as nobody's, so that it outlives this process. */
  release(): Promise<void>;
  /** Kills and removes everything on the host. Idempotent; resolves when nothing is left. */
  destroy(): Promise<void>;
}
