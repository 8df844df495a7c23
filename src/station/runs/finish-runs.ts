import type { RunState } from "../../agent/run-state.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { noCrash } from "../../lib/crashpoint.ts";
import { holdLease, LEASE_TTL_MS } from "../../log/hold-lease.ts";
import type { Log } from "../../log/log.ts";
import type { RemoveRemains } from "../../sandbox/remove-remains.ts";
import type { Runtime } from "../../sandbox/runtime.ts";
import type { SessionStore } from "../../workspace/sessions.ts";
import type { KnownPlaces } from "../../workspace/wrong-place.ts";
import { leaveSession } from "../sessions/session-cleanup.ts";
import { RUN_LABEL, runStream } from "../vocabulary/station-names.ts";
import { foldRun } from "./owned-journal.ts";
import { createRunSandbox } from "./run-sandbox.ts";

interface FinishOptions {
  log: Log;
  sessions: SessionStore;
  holder: string;
  holderGone: (holder: string) => boolean;
  removeRemains: RemoveRemains;
  places: KnownPlaces;
}

/**
 * Removes the sandboxes of ended runs whose driver died before it could remove them. An active run keeps its sandbox
 * for its next driver.
 */
export async function finishRuns(options: FinishOptions & { runtimes: readonly Runtime[] }): Promise<string[]> {
  const finished: string[] = [];
  for (const runtime of options.runtimes) {
    const infos = await runtime.list();
    const runs = new Set(infos.flatMap((info) => info.labels[RUN_LABEL] ?? []));
    for (const run of runs) if (await finish(run, runtime, options)) finished.push(run);
  }
  return finished;
}

async function finish(run: string, runtime: Runtime, options: FinishOptions): Promise<boolean> {
  const { log } = options;
  const head = await log.head(runStream(run));
  if (head !== null && (head.head as { status?: string }).status !== "ended") return false;
  await using held = await holdLease(log, runStream(run), { holder: options.holder, ttlMs: LEASE_TTL_MS, holderGone: options.holderGone });
  // Its driver is still cleaning up.
  if (!held) return false;
  if (head !== null) {
    const { state } = await foldRun(log, run);
    // A user may have continued it before we had the lease.
    return state.status === "ended" && (await finishRun(state, { ...options, runtime }));
  }
  await removeAll(run, { ...options, runtime });
  return true;
}

/**
 * Finishes an ended run: stores its files, removes its sandbox and leaves its session. Only the lease holder may call
 * this. Idempotent.
 */
export async function finishRun(
  state: RunState,
  options: Pick<FinishOptions, "log" | "sessions" | "removeRemains" | "places"> & { runtime: Runtime },
): Promise<boolean> {
  const { sessions, runtime, removeRemains, places } = options;
  const { run, definition } = state;
  const session = await sessions.get(state.session).catch((error: unknown) => {
    if (error instanceof CaissonError) return null;
    throw error;
  });
  if (session === null) {
    await removeAll(run, options);
    return true;
  }
  const onReady = async () => undefined;
  const previous = () => null;
  await createRunSandbox({
    run,
    runtime,
    definition,
    session,
    sessions,
    removeRemains,
    places,
    crashpoint: noCrash,
    previous,
    onReady,
  }).end();
  await leaveSession(state, { log: options.log, stateDir: places.stateDir, sessions, runtimes: async () => [runtime] });
  return true;
}

async function removeAll(run: string, options: Pick<FinishOptions, "removeRemains"> & { runtime: Runtime }): Promise<void> {
  const { runtime } = options;
  for (const info of (await runtime.list()).filter((each) => each.labels[RUN_LABEL] === run)) await options.removeRemains(runtime, info.id);
}
