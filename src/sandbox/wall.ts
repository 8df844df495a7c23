import type { SnapshotId } from "../contract/ids.ts";
import type { SandboxStats } from "../contract/sandbox/sandbox.ts";
import type { GuestCondition } from "./guest/waits.ts";
import type { ForkOptions, OwnedSandbox, PauseOptions, SnapshotOptions } from "./sandbox.ts";

/**
 * The part in which the self-hosted runtimes differ once a guest is running: the wall around it. Everything else
 * (processes, files, ports) is the guest's job and implemented once, in `guest/`.
 */
export interface Wall {
  /**
   * Returns the host's own accounting, without asking the guest. `processes` counts what the host sees. Null for values
   * that the host cannot know.
   */
  stats(): Promise<SandboxStats>;
  /** Returns the guest's condition as the host sees it, without asking the guest; `unknown` if the host cannot tell. */
  condition(): Promise<GuestCondition>;
  /** Throws `unsupported`. Idempotent. */
  pause(options?: PauseOptions): Promise<void>;
  /** Resumes a sandbox, even one that was frozen without being paused. */
  resume(): Promise<void>;
  snapshot(options: SnapshotOptions): Promise<SnapshotId>;
  fork(options: ForkOptions): Promise<OwnedSandbox>;
  /** Records that no process holds the sandbox, so it outlives this process. */
  release(): Promise<void>;
  /** Kills and removes everything on the host. Idempotent; resolves when nothing remains. */
  destroy(): Promise<void>;
}
