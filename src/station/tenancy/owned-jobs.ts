import { type ListJobs, noJob } from "../../contract/durable/durable-job.ts";
import { CaissonError } from "../../contract/error/error.ts";
import type { OwnerView } from "../../contract/token/owner.ts";
import type { Station } from "../../verbs/station.ts";
import { bestKindFacts } from "../best/best-kind-facts.ts";
import { noSuchJob } from "../durable/durable-log.ts";
import type { Kind } from "../durable/kind.ts";
import { mergeKindFacts } from "../merges/merge-kind-facts.ts";
import { CANDIDATES_MAX, isIdPrefix, oneOf } from "../names/one-of.ts";
import { shipNames } from "../pull-requests/ship-names.ts";
import { workflowKind } from "../workflows/workflow-names.ts";
import { isOthers, type OwnLookups, type OwnView, ownedGroup } from "./owned-group.ts";

/** Resolves ids and id prefixes of the durable jobs that the caller sees, and names of specs. */
export function jobLookups(station: Station, view: OwnerView): Pick<OwnLookups, "spec" | "ship" | "merge" | "best" | "workflow"> {
  const { owner, sees } = view;
  return {
    merge: jobLookup(station.merges, view, mergeKindFacts),
    best: jobLookup(station.bests, view, bestKindFacts),
    workflow: jobLookup(station.workflows, view, workflowKind),
    ship: jobLookup(station.ships, view, shipNames),
    /** For a caller who sees everything, their own spec takes precedence if several have the name. */
    async spec(word) {
      const isPrefix = isIdPrefix("spec", word);
      const whose = sees === "own" ? { owner } : {};
      const { items } = await station.specs.list({ ...whose, ...(isPrefix && { id: word }) });
      const all = items.map((each) => ({ id: each.spec, name: each.name, owner: each.owner }));
      const found = isPrefix ? all.filter(({ id }) => id.startsWith(word)) : all.filter(({ name }) => name === word);
      const own = found.filter((each) => each.owner === owner);
      return oneOf(word, own.length > 0 ? own : found, { what: "spec", listedBy: "caisson spec ls" });
    },
  };
}

interface ListedJobs {
  get(word: string): Promise<{ id: string; owner: string }>;
  list(options?: Pick<ListJobs, "id" | "owner" | "limit">): Promise<{ items: readonly { id: string }[] }>;
}

/** Resolves the id of a job that the caller sees. Another owner's job fails like one that does not exist. */
export function jobLookup(verbs: ListedJobs, { owner, sees }: OwnerView, kind: Pick<Kind, "name" | "listedBy">) {
  return async (word: string): Promise<string> => {
    if (sees === "everything" || /_[a-z2-7]{12}$/.test(word) || !/^[a-z]+_[a-z2-7]{1,11}$/.test(word)) {
      const found = await verbs.get(word);
      if (sees === "own" && found.owner !== owner) throw noSuchJob(kind, word);
      return found.id;
    }
    // We search only the caller's own jobs, so as not to reveal how many others there are.
    const { items } = await verbs.list({ id: word, owner, limit: CANDIDATES_MAX });
    return oneOf(word, items, { what: kind.name, listedBy: kind.listedBy });
  };
}

export function ownedJobs(station: Station, view: OwnView): Pick<Station, "specs" | "ships" | "merges" | "bests" | "workflows"> {
  const { owner, own, sees } = view;
  /** Lists one owner's jobs, or all for a caller who sees everything. */
  const listOwn =
    <Options extends { owner?: string | undefined }, List>(list: (options?: Options) => Promise<List>) =>
    async (options: Options = {} as Options): Promise<List> => {
      if (sees === "everything") return await list(options);
      return isOthers(options, owner) ? (noJob as List) : await list({ ...options, owner });
    };
  return {
    specs: ownedGroup("specs", station, view, {
      create: async (request) => await station.specs.create(request, { owner }),
      list: listOwn(station.specs.list),
    }),
    ships: ownedGroup("ships", station, view, {
      start: async (request) => await station.ships.start({ ...request, of: await workLookup(request.of, own) }, { owner }),
      list: listOwn(station.ships.list),
    }),
    merges: ownedGroup("merges", station, view, {
      // We drop the id and parent, which only the station itself may set.
      async start(request) {
        const sessions: string[] = [];
        for (const word of request.sessions) sessions.push(await own.session(word));
        return await station.merges.start({ ...request, sessions }, { owner });
      },
      list: listOwn(station.merges.list),
    }),
    bests: ownedGroup("bests", station, view, {
      async start({ run, ...request }) {
        const source = run === undefined ? {} : { run: { ...run, run: await own.run(run.run) } };
        return await station.bests.start({ ...request, ...source }, { owner });
      },
      list: listOwn(station.bests.list),
    }),
    workflows: ownedGroup("workflows", station, view, {
      start: async (request) => await station.workflows.start(request, { owner }),
      list: listOwn(station.workflows.list),
    }),
  };
}

/** Looks up a session, a run in it, a spec or a ship, among those that the owner sees. */
async function workLookup(word: string, own: OwnLookups): Promise<string> {
  if (isIdPrefix("ship", word)) return await own.ship(word);
  if (isIdPrefix("spec", word)) return await own.spec(word);
  try {
    return await own.session(word);
  } catch (error) {
    if (!isNotFound(error)) throw error;
    return await own.spec(word).catch((other: unknown) => {
      throw isNotFound(other) ? error : other;
    });
  }
}

const isNotFound = (error: unknown) => error instanceof CaissonError && error.code === "not_found";
