import { isTurnOver } from "../../agent/decide-step.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import { ForkRun, RewindRun, type RunView } from "../../contract/run/run-verbs.ts";
import { defined } from "../../lib/defined.ts";
import type { RunVerbs } from "../../verbs/runs.ts";
import { type CreatedForks, forkRun } from "../forks/fork-run.ts";
import { rewindRun } from "../forks/rewind-run.ts";
import { timelineOf } from "../forks/run-timeline.ts";
import type { RunQueue } from "../queue/run-queue.ts";
import type { ReplayVerbOptions } from "../replay/replay-verb.ts";
import type { Runs } from "../runs/runs.ts";
import { headOfRun } from "../vocabulary/head-of-run.ts";
import type { RunVerbsOptions } from "./run-verbs.ts";

interface ForkVerbsOptions extends RunVerbsOptions {
  view: (run: string) => Promise<RunView>;
  resume: RunVerbs["resume"];
}

/** The verbs that show the steps of a run, create forks of it, and take it back. */
export function forkVerbs(options: ForkVerbsOptions): Pick<RunVerbs, "fork" | "rewind" | "timeline"> {
  const { view, resume } = options;
  return {
    timeline: (run) => timelineOf(run, options),
    async fork(run, input, { signal } = {}) {
      const request = parseRequest(ForkRun, input, "a fork");
      const { by, count, detached } = request;
      const { owner } = (await headOfRun(options.log, run)).facts;
      let forks: CreatedForks;
      {
        using _ = admitAll(options.queue(), owner, count);
        forks = await forkRun(run, request, {
          ...options.rewinding,
          claimName: options.claimName,
          model: (name) => options.model(name, {}),
        });
      }
      const start = (fork: string) => (forks.isReady ? resume(fork, { by, detached, ...defined({ signal }) }) : view(fork));
      return await Promise.all(forks.runs.map(start));
    },
    async rewind(run, { by, ...input }) {
      const { to } = parseRequest(RewindRun, input, "to rewind a run");
      const rewound = await rewindRun(run, { to, by }, options.rewinding);
      return { run: await view(run), ...rewound };
    },
  };
}

/** Creates the fork with which a replayed run continues live, in the background. */
export function forkToContinue({ fork }: Pick<RunVerbs, "fork">): ReplayVerbOptions["forkAt"] {
  return async (run, at, { labels }) => {
    const [view] = await fork(run, { at, by: "replay", labels: { ...labels }, detached: true });
    if (view === undefined) throw new Error("a fork of one run has one");
    return view;
  };
}

/** Reserves a place in the queue for each fork. Throws what `RunQueue.admit` throws. */
function admitAll(queue: RunQueue | null, owner: string, count: number): Disposable {
  const admitted: Disposable[] = [];
  const release = () => {
    for (const each of admitted) each[Symbol.dispose]();
  };
  try {
    for (let left = queue === null ? 0 : count; left > 0; left--) if (queue !== null) admitted.push(queue.admit(owner));
  } catch (error) {
    release();
    throw error;
  }
  return { [Symbol.dispose]: release };
}

/** Throws `conflict` for a fork, or a run that was rewound, that can only continue with a message. */
export async function checkHasWork(run: string, runs: Runs): Promise<void> {
  const state = await runs.state(run);
  if (!isTurnOver(state) || state.waiting.some(({ source }) => source === "user")) return;
  throw new CaissonError("conflict", `the run ${run} has finished its turn and waits for a message`, {
    hint: `Send it one: caisson send ${run} "…"`,
  });
}
