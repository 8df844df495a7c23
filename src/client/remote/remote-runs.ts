import type { ListRuns, RunList, RunView } from "../../contract/run/run-verbs.ts";
import type { RunVerbs } from "../../verbs/runs.ts";
import type { Client } from "../connect.ts";
import { derivedVerbs } from "./derived-verbs.ts";

/** Maximum number of runs per answer, and the default length of a list. */
const PAGE_MAX = 1000;
const LIST_DEFAULT = 1000;

/**
 * The runs of a remote station. The signal passed to start, resume, continue or fork only detaches from the run: `wait`
 * throws, and the run continues.
 */
export function remoteRuns({ runs, streams }: Pick<Client, "runs" | "streams">): RunVerbs {
  const derived = derivedVerbs("runs", runs);
  const detachedBy = new Map<string, AbortSignal>();
  const remember = (view: RunView, signal: AbortSignal | undefined): RunView => {
    if (signal !== undefined) detachedBy.set(view.run, signal);
    return view;
  };
  return {
    ...derived,
    start: async (request, { signal } = {}) => remember(await runs.start(request), signal),
    list: (options = {}) => listRuns(runs, options),
    allEvents: (options = {}) => runs.allEvents(options),
    async lastPosition() {
      const subscription = await streams.subscribe({ afterPosition: "end" });
      subscription.close();
      return subscription.position();
    },
    async wait(run, { signal } = {}) {
      const signals = [signal, detachedBy.get(run)].filter((each) => each !== undefined);
      return await derived.wait(run, signals.length === 0 ? {} : { signal: AbortSignal.any(signals) });
    },
    send: (run, { text, mode }) => runs.send(run, { text, ...(mode !== undefined && { mode }) }),
    async resume(run, { by: _by, signal, ...body }) {
      return remember(await runs.resume(run, body), signal);
    },
    async continue(run, { by: _by, ...request }, { signal } = {}) {
      return remember(await runs.continue(run, request), signal);
    },
    async fork(run, { by: _by, ...request }, { signal } = {}) {
      return (await runs.fork(run, request)).map((view) => remember(view, signal));
    },
  };
}

/** Lists as many runs as requested, with several requests if necessary. */
async function listRuns(runs: Client["runs"], { limit = LIST_DEFAULT, parent, ...rest }: ListRuns): Promise<RunList> {
  const query = { ...rest, ...(parent !== undefined && { parent: parent ?? ("none" as const) }) };
  const list: RunList = await runs.list({ ...query, limit: Math.min(limit, PAGE_MAX) });
  while (list.next !== null && list.runs.length < limit) {
    const page = await runs.list({ ...query, cursor: list.next, limit: Math.min(limit - list.runs.length, PAGE_MAX) });
    list.runs.push(...page.runs);
    list.next = page.next;
  }
  return list;
}
