import { refuseStationLabels } from "../../contract/change-labels.ts";
import { CaissonError } from "../../contract/error.ts";
import { LOCAL_OWNER, type OwnerView } from "../../contract/owner.ts";
import type { FedEvent, ListRuns, RunList, StartRunInput } from "../../contract/run-verbs.ts";
import { isSessionId, sessionIdOf } from "../names/session-id.ts";
import type { RunVerbs } from "../runs/verbs.ts";
import type { Station } from "../station.ts";
import { decide } from "./decide.ts";
import type { OwnThings } from "./own-things.ts";

/** Whose a run is does not change, so it is remembered; of a run that was forgotten, it is looked up again. */
const REMEMBERED_MAX = 10_000;

export function ownedRuns({ runs }: Pick<Station, "runs">, view: OwnerView & { own: OwnThings }): RunVerbs {
  const { owner, sees, own } = view;
  return decide(runs, {
    start: async (request, options = {}) => await runs.start(await withOwnParts(request, view), { ...options, owner }),
    get: async (run) => await runs.get(await own.run(run)),
    list: async (options = {}) => await (sees === "own" ? listOwn(runs, options, owner) : runs.list(options)),
    async *events(run, options) {
      yield* runs.events(await own.run(run), options);
    },
    async *allEvents(options) {
      const isOwn = ownEvents(runs, owner);
      for await (const fed of runs.allEvents(options)) if (sees === "everything" || (await isOwn(fed))) yield fed;
    },
    // A number, which says only that somebody did something.
    lastPosition: "shared",
    wait: async (run, options) => await runs.wait(await own.run(run), options),
    send: async (run, message) => await runs.send(await own.run(run), message),
    answer: async (run, answer) => await runs.answer(await own.run(run), answer),
    pause: async (run, options) => await runs.pause(await own.run(run), options),
    resume: async (run, options) => await runs.resume(await own.run(run), options),
    continue: async (run, request, options) => await runs.continue(await own.run(run), request, options),
    prioritize: async (run, options) => await runs.prioritize(await own.run(run), options),
    label: async (run, changes, options) => await runs.label(await own.run(run), changes, options),
    adopt: async (run, options) => await runs.adopt(await own.run(run), options),
    async queue() {
      const queue = await runs.queue();
      if (sees === "everything") return queue;
      const waiting = queue.runs.filter((each) => each.owner === owner);
      return { ...queue, runs: waiting, total: waiting.length };
    },
    stop: async (run, options) => await runs.stop(await own.run(run), options),
    remove: async (run) => await runs.remove(await own.run(run)),
    check: sees === "own" ? "refused" : "shared",
  });
}

async function withOwnParts(request: StartRunInput, { sees, own }: OwnerView & { own: OwnThings }): Promise<StartRunInput> {
  const { session, settings, labels = {} } = request;
  if (sees === "own") refuseStationLabels("run", labels);
  // A name is looked for among the owner's, and becomes a new session where there is none; an id must be there.
  if (sees === "own" && session !== undefined && isSessionId(session.id)) await own.session(session.id);
  const from = request.from && { ...request.from, session: await own.session(request.from.session) };
  const whole = { ...request, ...(from && { from }) };
  if (settings?.snapshot === undefined) return whole;
  return { ...whole, settings: { ...settings, snapshot: await own.snapshot(settings.snapshot) } };
}

async function listOwn(runs: RunVerbs, options: ListRuns, owner: string): Promise<RunList> {
  if (isOthers(options, owner)) return { runs: [], total: 0, totalIsMinimum: false, next: null };
  const { session } = options;
  return await runs.list({ ...options, owner, ...(session !== undefined && { session: sessionIdOf(session, owner) }) });
}

/** Whether things of somebody else are asked for, of which there are none to see. */
export function isOthers(options: { owner?: string | undefined }, owner: string): boolean {
  return options.owner !== undefined && options.owner !== owner;
}

function ownEvents(runs: RunVerbs, owner: string): (fed: FedEvent) => Promise<boolean> {
  const known = new Map<string, boolean>();
  return async (fed) => {
    if (!("run" in fed)) return fed.owner === owner;
    const { run, event } = fed;
    const found = known.get(run);
    if (found !== undefined) return found;
    const isOwn = event?.type === "run.created" ? (event.data.owner ?? LOCAL_OWNER) === owner : await isOwnRun(run, { runs, owner });
    if (known.size >= REMEMBERED_MAX) known.delete(known.keys().next().value ?? "");
    known.set(run, isOwn);
    return isOwn;
  };
}

async function isOwnRun(run: string, { runs, owner }: { runs: RunVerbs; owner: string }): Promise<boolean> {
  try {
    return (await runs.get(run)).owner === owner;
  } catch (error) {
    if (error instanceof CaissonError && error.code === "not_found") return false;
    throw error;
  }
}
