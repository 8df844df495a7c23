import { CaissonError } from "../../contract/error.ts";
import type { ListRuns, RunList, RunView } from "../../contract/run-verbs.ts";
import type { RunVerbs } from "../../station/runs/verbs.ts";
import type { Client } from "../connect.ts";

/** How many runs one answer holds at most, and how many a list has unless more are asked for. */
const PAGE_MAX = 1000;
const LIST_DEFAULT = 1000;

/**
 * Runs that the station drives. The signal with which one was started, resumed or continued lets go of it here: whoever
 * waits for it is told, and the run goes on.
 */
export function remoteRuns({ runs, streams }: Pick<Client, "runs" | "streams">): RunVerbs {
  const letGo = new Map<string, AbortSignal>();
  const followed = (view: RunView, signal: AbortSignal | undefined): RunView => {
    if (signal !== undefined) letGo.set(view.run, signal);
    return view;
  };
  return {
    start: async (request, { signal } = {}) => followed(await runs.start(request), signal),
    get: (run) => runs.get(run),
    list: (asked = {}) => listed(runs, asked),
    events: (run, options = {}) => runs.events(run, options),
    allEvents: (options = {}) => runs.allEvents(options),
    async lastPosition() {
      const subscription = await streams.subscribe({ afterPosition: "end" });
      subscription.close();
      return subscription.position();
    },
    async wait(run, { signal } = {}) {
      const signals = [signal, letGo.get(run)].filter((each) => each !== undefined);
      try {
        return await runs.wait(run, signals.length === 0 ? {} : { signal: AbortSignal.any(signals) });
      } catch (error) {
        if (signals.some(({ aborted }) => aborted)) throw new CaissonError("cancelled", `waiting for ${run} was given up`);
        throw error;
      }
    },
    send: (run, { text, mode }) => runs.send(run, { text, ...(mode !== undefined && { mode }) }),
    answer: (run, { by: _, ...answer }) => runs.answer(run, answer),
    pause: (run, { text }) => runs.pause(run, { text }),
    async resume(run, { signal, detached, budgets, reopens }) {
      const body = {
        ...(detached !== undefined && { detached }),
        ...(budgets !== undefined && { budgets }),
        ...(reopens !== undefined && { reopens }),
      };
      return followed(await runs.resume(run, body), signal);
    },
    async continue(run, { by: _, ...request }, { signal } = {}) {
      return followed(await runs.continue(run, request), signal);
    },
    prioritize: (run, { priority }) => runs.prioritize(run, { priority }),
    label: (run, changes) => runs.label(run, changes),
    adopt: (run) => runs.adopt(run),
    queue: () => runs.queue(),
    stop: (run, { signal }) => runs.stop(run, { ...(signal && { signal }) }),
    remove: (run) => runs.remove(run),
    check: () => runs.check(),
  };
}

/** As many as were asked for, however few an answer holds. */
async function listed(runs: Client["runs"], { limit = LIST_DEFAULT, parent, ...rest }: ListRuns): Promise<RunList> {
  const query = { ...rest, ...(parent !== undefined && { parent: parent ?? ("none" as const) }) };
  const found: RunList = await runs.list({ ...query, limit: Math.min(limit, PAGE_MAX) });
  while (found.next !== null && found.runs.length < limit) {
    const page = await runs.list({ ...query, cursor: found.next, limit: Math.min(limit - found.runs.length, PAGE_MAX) });
    found.runs.push(...page.runs);
    found.next = page.next;
  }
  return found;
}
