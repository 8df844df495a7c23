import { foundOrNull } from "../../contract/error/found-or-null.ts";
import type { FedEvent } from "../../contract/feed/fed-event.ts";
import { refuseStationLabels } from "../../contract/label/change-labels.ts";
import type { ListRuns, RunList, StartRunInput } from "../../contract/run/run-verbs.ts";
import { LOCAL_OWNER } from "../../contract/token/owner.ts";
import type { RunVerbs } from "../../verbs/runs.ts";
import type { Station } from "../../verbs/station.ts";
import { isSessionId, sessionIdOf } from "../names/session-id.ts";
import { isOthers, type OwnView, ownedGroup } from "./owned-group.ts";

/** The size of the cache of owners, which never change. Beyond it, we drop the oldest entry. */
const REMEMBERED_MAX = 10_000;

export function ownedRuns(station: Pick<Station, "runs">, view: OwnView): RunVerbs {
  const { runs } = station;
  const { owner, sees } = view;
  return ownedGroup("runs", station, view, {
    start: async (request, options = {}) => await runs.start(await resolveOwnReferences(request, view), { ...options, owner }),
    list: async (options = {}) => await (sees === "own" ? listOwn(runs, options, owner) : runs.list(options)),
    async *allEvents(options) {
      const isOwn = ownEvents(runs, owner);
      for await (const fed of runs.allEvents(options)) if (sees === "everything" || (await isOwn(fed))) yield fed;
    },
    async queue() {
      const queue = await runs.queue();
      if (sees === "everything") return queue;
      const waiting = queue.runs.filter((each) => each.owner === owner);
      return { ...queue, runs: waiting, total: waiting.length };
    },
  });
}

async function resolveOwnReferences(request: StartRunInput, { sees, own }: OwnView): Promise<StartRunInput> {
  const { session, settings, labels = {} } = request;
  if (sees === "own") refuseStationLabels("run", labels);
  // A name refers to one of the owner's sessions, and an unknown name creates a session. An id must exist.
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

function ownEvents(runs: RunVerbs, owner: string): (fed: FedEvent) => Promise<boolean> {
  const known = new Map<string, boolean>();
  return async (fed) => {
    if (!("run" in fed)) return fed.owner === owner;
    const { run, event } = fed;
    const found = known.get(run);
    if (found !== undefined) return found;
    const isFirst = event?.type === "run.created" || event?.type === "run.forked";
    const isOwn = isFirst ? (event.data.owner ?? LOCAL_OWNER) === owner : await isOwnRun(run, { runs, owner });
    if (known.size >= REMEMBERED_MAX) known.delete(known.keys().next().value ?? "");
    known.set(run, isOwn);
    return isOwn;
  };
}

async function isOwnRun(run: string, { runs, owner }: { runs: RunVerbs; owner: string }): Promise<boolean> {
  return (await foundOrNull(runs.get(run)))?.owner === owner;
}
