import type { NewBestEvent } from "../../contract/best/best-event.ts";
import { type BestView, StartBest } from "../../contract/best/best-verbs.ts";
import type { JobView } from "../../contract/durable/durable-job.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import { LOCAL_OWNER } from "../../contract/token/owner.ts";
import { asJson } from "../../lib/as-json.ts";
import type { BestVerbs } from "../../verbs/bests.ts";
import type { Station } from "../../verbs/station.ts";
import type { Jobs } from "../durable/durable-verbs.ts";
import type { BestState } from "./best-state.ts";
import { rankOf } from "./decide-best.ts";

const TASK_CHARACTERS_MAX = 10_000;

export interface LocalBestsOptions {
  jobs: Jobs<BestState, NewBestEvent>;
  station: Pick<Station, "runs">;
  /** Throws for a model that cannot be used. */
  checkModel: (name: string) => Promise<unknown>;
}

export function createLocalBests({ jobs, station, checkModel }: LocalBestsOptions): BestVerbs {
  const viewAfter = async (job: Promise<JobView>) => await toBestView((await job).id, jobs);
  return {
    list: jobs.list,
    events: jobs.events as BestVerbs["events"],
    remove: jobs.remove,
    get: async (word) => await toBestView(word, jobs),
    wait: (word, waitOptions) => viewAfter(jobs.wait(word, waitOptions)),
    cancel: (word, request) => viewAfter(jobs.cancel(word, request)),
    pause: (word, request) => viewAfter(jobs.pause(word, request)),
    resume: (word, request) => viewAfter(jobs.resume(word, request)),
    async start(input, { owner = LOCAL_OWNER } = {}) {
      const { start, run, attempts, models, grade, judge, ...bounds } = parseRequest(StartBest, input, "a best-of");
      // Fails here, before anything is paid for, if a model cannot be used.
      for (const name of new Set([...models, ...(judge === undefined ? [] : [judge])])) await checkModel(name);
      const view = run === undefined ? null : await station.runs.get(run.run);
      const source =
        view === null
          ? { kind: "task" as const, start: asJson(start) }
          : { kind: "run" as const, run: view.run, step: run?.step ?? null, send: run?.send ?? null };
      const task = (start?.task ?? view?.title ?? "").slice(0, TASK_CHARACTERS_MAX);
      const definition = { source, task, attempts, models, grade: grade ?? null, judge: judge ?? null, ...bounds };
      const id = await jobs.start({ title: task, owner, events: [{ type: "best.begun", data: definition }] });
      return await toBestView(id, jobs);
    },
  };
}

async function toBestView(word: string, jobs: LocalBestsOptions["jobs"]): Promise<BestView> {
  const view: JobView = await jobs.get(word);
  const { state } = await jobs.fold(view.id);
  const isRanked = view.finish !== null || state.promoting !== null;
  const ranks = new Map(rankOf(state).map((rank) => [rank.attempt, rank]));
  const attempts = state.attempts.map(({ budgets: _, tokens: __, ...attempt }) => {
    const rank = isRanked ? ranks.get(attempt.attempt) : undefined;
    return { ...attempt, place: rank?.place ?? null, why: rank?.why ?? "" };
  });
  const last = attempts.length + 1;
  attempts.sort((one, other) => (one.place ?? last) - (other.place ?? last) || one.attempt - other.attempt);
  const costs = [...state.attempts.map(({ costUsd }) => costUsd), state.judgeCostUsd];
  const costUsd = costs.reduce((sum, cost) => (sum === null || cost === null ? null : sum + cost), 0 as number | null);
  const { task, grade, judge, concurrency, budgets, winner } = state;
  return { ...view, task, attempts, grade, judge, concurrency, budgets, costUsd, winner };
}
