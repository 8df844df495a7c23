import type { DrivenFacts, DrivenView } from "../../contract/driven.ts";
import type { NewDrivenEvent } from "../../contract/driven-event.ts";
import { CaissonError } from "../../contract/error.ts";
import { LOCAL_OWNER } from "../../contract/owner.ts";
import { parseRequest } from "../../contract/parse-request.ts";
import type { NewSpecEvent } from "../../contract/spec-event.ts";
import type { SpecFacts } from "../../contract/spec-facts.ts";
import {
  CreateSpec,
  DecideSpec,
  DiffSpec,
  EditSpec,
  ExecuteSpec,
  ExportSpec,
  ListSpecs,
  type SpecSummary,
  type SpecView,
} from "../../contract/spec-verbs.ts";
import { defined } from "../../lib/defined.ts";
import type { Log } from "../../log/log.ts";
import { refuseSecretIn } from "../../workspace/git/address.ts";
import type { Folded } from "../driven/driven-log.ts";
import type { DrivenThings } from "../driven/driven-verbs.ts";
import type { ClaimName } from "../names/claim-name.ts";
import { isIdPrefix, oneOf } from "../names/one-of.ts";
import type { Station } from "../station.ts";
import { SPEC_PREFIX } from "./spec-kind.ts";
import { openAttempt, type SpecState } from "./spec-state.ts";
import { cancelled, decided, diffOf, edited, executed, exportOf } from "./spec-verbs.ts";
import { specSummary, specView } from "./spec-view.ts";
import type { NumberedSpecEvent, SpecVerbs } from "./verbs.ts";

const CANDIDATES_MAX = 100;
const WORDS = { what: "spec", listedBy: "caisson spec ls" };
/** How long an execution waits at most to say with which run it began. */
const BEGIN_MS_MAX = 20_000;

export interface LocalSpecsOptions {
  things: DrivenThings<SpecState, NewSpecEvent>;
  log: Log;
  runs: Pick<Station["runs"], "get">;
  claimName: ClaimName;
  now?: () => Date;
}

export function createLocalSpecs(options: LocalSpecsOptions): SpecVerbs {
  const { things, log } = options;
  const now = () => (options.now?.() ?? new Date()).toISOString();
  const find = (word: string) => findSpec(word, log);
  const view = async (id: string): Promise<SpecView> => specView(await things.fold(id), now());
  const say = async (word: string, make: (thing: Folded<SpecState>) => readonly (NewSpecEvent | NewDrivenEvent)[]): Promise<string> => {
    const id = await find(word);
    await things.say(id, make);
    return id;
  };
  const cancel: SpecVerbs["cancel"] = async (spec, { by }) => {
    const id = await say(spec, (thing) => cancelled(thing, { by }));
    things.drive(id);
    await things.wait(id);
    return await view(id);
  };
  return {
    async create(given, { owner = LOCAL_OWNER } = {}) {
      const { idea, name, source, gates, runs, parallel } = parseRequest(CreateSpec, given, "a spec");
      refuseSecretIn(source);
      await using _ = name === undefined ? null : await options.claimName(name, { owner });
      if (name !== undefined && (await specsNamed(name, log, owner)).length > 0) throw taken(name);
      const data = { idea, source: source ?? null, gates, runs: runs as never, parallel, ...defined({ name }) };
      return await view(await things.start({ title: idea, owner, events: [{ type: "spec.proposed", data }] }));
    },
    get: async (spec) => await view(await find(spec)),
    async list(given = {}) {
      const { status, createdAfter, createdBefore, ...asked } = parseRequest(ListSpecs, given, "a list of specs");
      const isAny = status === undefined && createdAfter === undefined && createdBefore === undefined;
      const isAsked = (facts: DrivenFacts) =>
        (status === undefined || summaryOf({ ...facts, seq: 0, updatedAt: "" }).status === status) &&
        (createdAfter === undefined || Date.parse(facts.createdAt) >= Date.parse(createdAfter)) &&
        (createdBefore === undefined || Date.parse(facts.createdAt) < Date.parse(createdBefore));
      const page = await things.list(defined(asked), isAny ? undefined : isAsked);
      return { ...page, items: page.items.map(summaryOf) };
    },
    async execute(spec, given) {
      const request = parseRequest(ExecuteSpec, given, "to execute a spec");
      const id = await say(spec, (thing) => executed(thing, request));
      things.drive(id);
      return { spec: id, ...(await begunWith(id, options)) };
    },
    async decide(spec, given) {
      const request = parseRequest(DecideSpec, given, "a decision");
      return await view(await say(spec, ({ state }) => decided(state, request, now())));
    },
    async edit(spec, given) {
      const request = parseRequest(EditSpec, given, "a version");
      return await view(await say(spec, ({ state }) => edited(state, request)));
    },
    cancel,
    async wait(spec, { signal } = {}) {
      const id = await find(spec);
      await things.wait(id, { orPerson: true, ...(signal && { signal }) });
      return await view(id);
    },
    async *events(spec, asked) {
      yield* things.events(await find(spec), asked) as AsyncIterable<NumberedSpecEvent>;
    },
    diff: async (spec, asked = {}) => diffOf((await things.fold(await find(spec))).state, parseRequest(DiffSpec, asked, "a diff")),
    export: async (spec, asked = {}) => exportOf((await things.fold(await find(spec))).state, parseRequest(ExportSpec, asked, "an export")),
    async remove(spec) {
      const id = await find(spec);
      const removed = await view(id);
      if (removed.status === "draft") await cancel(id, { by: "its removal" });
      await things.remove(id);
      return removed;
    },
  };
}

/** By its id, the beginning of it, or its name: the machine's own user's first. */
async function findSpec(word: string, log: Log): Promise<string> {
  if (/^spec_[a-z2-7]{12}$/.test(word)) return word;
  if (!isIdPrefix("spec", word)) {
    const own = await specsNamed(word, log, LOCAL_OWNER);
    return oneOf(word, own.length > 0 ? own : await specsNamed(word, log), WORDS);
  }
  const found = await log.streams({ prefix: `${SPEC_PREFIX}${word}`, limit: CANDIDATES_MAX });
  return oneOf(
    word,
    found.map(({ stream }) => ({ id: stream.slice(SPEC_PREFIX.length) })),
    WORDS,
  );
}

async function specsNamed(name: string, log: Log, owner?: string): Promise<{ id: string; name: string }[]> {
  const matches = (head: unknown) => (head as DrivenView & { own: SpecFacts }).own.name === name;
  const where = owner === undefined ? {} : { owner: [owner] };
  const { heads } = await log.heads({ prefix: SPEC_PREFIX, where, matches, limit: CANDIDATES_MAX });
  return heads.map(({ stream }) => ({ id: stream.slice(SPEC_PREFIX.length), name }));
}

function summaryOf(head: DrivenFacts & Pick<DrivenView, "seq" | "updatedAt">): SpecSummary {
  return specSummary(head, head.own as unknown as SpecFacts);
}

/**
 * The run that it goes on with, and its sandbox where that is there already; null when a person has to decide first.
 */
async function begunWith(id: string, { things, runs }: LocalSpecsOptions): Promise<{ run: string | null; sandbox: string | null }> {
  const first = await things.fold(id);
  const settled = async ({ state, facts }: Folded<SpecState>) => {
    const run = openAttempt(state)?.run ?? state.tasks.find(({ finish, run: own }) => finish === null && own !== null)?.run ?? null;
    if (run !== null) return { run, sandbox: (await runs.get(run)).sandbox?.id ?? null };
    return facts.finish !== null || facts.waits !== null ? { run: null, sandbox: null } : null;
  };
  const already = await settled(first);
  if (already !== null) return already;
  const signal = AbortSignal.timeout(BEGIN_MS_MAX);
  for await (const _ of things.events(id, { fromSeq: first.seq + 1, follow: true, signal })) {
    const begun = await settled(await things.fold(id));
    if (begun !== null) return begun;
  }
  return { run: null, sandbox: null };
}

function taken(name: string): CaissonError {
  return new CaissonError("exists", `there is a spec named ${name} already`, {
    hint: "Choose another name: `caisson spec ls` lists them.",
  });
}
