import { setTimeout as delay } from "node:timers/promises";
import type { RunState } from "../../agent/run-state.ts";
import { CaissonError } from "../../contract/error/error.ts";
import type { HeldLease } from "../../log/hold-lease.ts";
import { isHolderGone } from "../../sandbox/process-identity.ts";
import { ifUnusable } from "../../workspace/sessions.ts";
import type { RunsOptions } from "./drive.ts";
import { finishRun } from "./finish-runs.ts";
import { acquireRun } from "./ownership.ts";

/** How long the last driver of a run may take to store its files and release it. */
const RELEASE_MS_MAX = 60_000;
const RELEASE_POLL_MS = 50;

export interface ReleaseOptions
  extends Pick<RunsOptions, "log" | "sessions" | "runtime" | "places" | "removeRemains" | "identity" | "alive"> {
  holder: string;
  holderGone: (holder: string) => boolean;
}

/**
 * Acquires the run's lease once its last driver has stored the run's files. Throws `conflict` if that takes too long.
 */
export async function acquireWhenReleased(run: string, options: Omit<ReleaseOptions, "holderGone">): Promise<HeldLease> {
  const holderGone = (other: string) => isHolderGone(options, other);
  for (const startMs = performance.now(); ; await delay(RELEASE_POLL_MS)) {
    try {
      return await acquireRun(run, { ...options, holderGone });
    } catch (error) {
      const isHeld = error instanceof CaissonError && error.code === "conflict";
      if (!isHeld || performance.now() - startMs > RELEASE_MS_MAX) throw error;
    }
  }
}

/** Stores the files of a run's last sandbox and removes it, if its driver died before it could do so. */
export async function releaseSandbox(state: RunState, options: Omit<ReleaseOptions, "holderGone">): Promise<void> {
  const session = await options.sessions.get(state.session).catch(ifUnusable);
  const name = session?.runtime ?? state.sandbox?.runtime;
  // No sandbox was ever created for it.
  if (name === undefined || name === null) return;
  await finishRun(state, { ...options, runtime: await options.runtime(name) });
}
