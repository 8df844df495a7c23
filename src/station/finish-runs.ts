import { CaissonError } from "../contract/error.ts";
import type { Log } from "../log/log.ts";
import type { Runtime } from "../sandbox/runtime.ts";
import type { SessionStore } from "../workspace/sessions.ts";
import { noCrash } from "./crashpoint.ts";
import { foldRun, runStream } from "./journal.ts";
import { leaveSession } from "./remove-session.ts";
import { createRunSandbox, type RemoveRemains, RUN_LABEL } from "./run-sandbox.ts";

const LEASE_TTL_MS = 15_000;

/**
 * Removes the sandboxes of runs that have ended: their owner died between the end of the run and the end of its sandbox. A run that is not over keeps its sandbox,
 * whoever drives it next finds it there.
 */
export async function finishRuns(options: {
  log: Log;
  sessions: SessionStore;
  runtimes: readonly Runtime[];
  owner: string;
  ownerGone: (owner: string) => boolean;
  removeRemains: RemoveRemains;
}): Promise<string[]> {
  const finished: string[] = [];
  for (const runtime of options.runtimes) {
    const infos = await runtime.list();
    const runs = new Set(infos.flatMap((info) => info.labels[RUN_LABEL] ?? []));
    for (const run of runs) if (await finish(run, runtime, options)) finished.push(run);
  }
  return finished;
}

async function finish(
  run: string,
  runtime: Runtime,
  options: Pick<Parameters<typeof finishRuns>[0], "log" | "sessions" | "owner" | "ownerGone" | "removeRemains">,
): Promise<boolean> {
  const { log, sessions } = options;
  const state = await foldRun(log, run).then(
    (folded) => folded.state,
    (error: unknown) => {
      if (error instanceof CaissonError && error.code === "not_found") return null;
      throw error;
    },
  );
  if (state !== null && state.status !== "ended") return false;
  const lease = await log.acquire(runStream(run), { owner: options.owner, ttlMs: LEASE_TTL_MS, ownerGone: options.ownerGone });
  // Its owner is at it.
  if (!lease) return false;
  try {
    const session = state === null ? null : await sessions.get(state.session).catch(() => null);
    if (state !== null && session !== null) {
      const onReady = async () => undefined;
      const { removeRemains } = options;
      const { definition } = state;
      await createRunSandbox({ run, runtime, definition, session, sessions, removeRemains, crashpoint: noCrash, onReady }).end();
      await leaveSession(state, { sessions, runtimes: [runtime] });
      return true;
    }
    for (const info of (await runtime.list()).filter((each) => each.labels[RUN_LABEL] === run)) {
      await options.removeRemains(runtime, info.id);
    }
    return true;
  } finally {
    await log.release(lease).catch(() => undefined);
  }
}
