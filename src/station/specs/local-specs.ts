import type { NewJobEvent } from "../../contract/durable/durable-event.ts";
import type { JobFacts, JobView } from "../../contract/durable/durable-job.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import type { NewSpecEvent } from "../../contract/spec/spec-event.ts";
import type { SpecFacts } from "../../contract/spec/spec-facts.ts";
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
} from "../../contract/spec/spec-verbs.ts";
import { LOCAL_OWNER } from "../../contract/token/owner.ts";
import { asJson } from "../../lib/as-json.ts";
import { defined } from "../../lib/defined.ts";
import type { Log } from "../../log/log.ts";
import type { NumberedSpecEvent, SpecVerbs } from "../../verbs/specs.ts";
import type { Station } from "../../verbs/station.ts";
import { refuseSecretIn } from "../../workspace/git/address.ts";
import type { Folded } from "../durable/durable-log.ts";
import type { Jobs } from "../durable/durable-verbs.ts";
import type { ClaimName } from "../names/claim-name.ts";
import { CANDIDATES_MAX, isIdPrefix, oneOf } from "../names/one-of.ts";
import { SPEC_PREFIX } from "./spec-kind.ts";
import { openAttempt, type SpecState } from "./spec-state.ts";
import { cancelEvents, decisionEvents, diffOf, editEvents, executionEvents, exportOf } from "./spec-verbs.ts";
import { specSummary, specView } from "./spec-view.ts";

const WORDS = { what: "spec", listedBy: "caisson spec ls" };
/** How long an execution waits for its first run to be known. */
const BEGIN_MS_MAX = 20_000;

export interface LocalSpecsOptions {
  jobs: Jobs<SpecState, NewSpecEvent>;
  log: Log;
  runs: Pick<Station["runs"], "get">;
  claimName: ClaimName;
  now?: () => Date;
}

export function createLocalSpecs(options: LocalSpecsOptions): SpecVerbs {
  const { jobs, log } = options;
  const now = () => (options.now?.() ?? new Date()).toISOString();
  const find = (word: string) => findSpec(word, log);
  const view = async (id: string): Promise<SpecView> => specView(await jobs.fold(id), now());
  const say = async (word: string, make: (job: Folded<SpecState>) => readonly (NewSpecEvent | NewJobEvent)[]): Promise<string> => {
    const id = await find(word);
    await jobs.say(id, make);
    return id;
  };
  const cancel: SpecVerbs["cancel"] = async (spec, { by }) => {
    const id = await say(spec, (job) => cancelEvents(job, { by }));
    jobs.drive(id);
    await jobs.wait(id);
    return await view(id);
  };
  return {
    async create(input, { owner = LOCAL_OWNER } = {}) {
      const { idea, name, source, gates, runs, parallel } = parseRequest(CreateSpec, input, "a spec");
      refuseSecretIn(source);
      await using _ = name === undefined ? null : await options.claimName(name, { owner });
      if (name !== undefined && (await specsNamed(name, log, owner)).length > 0) throw nameTaken(name);
      const data = { idea, source: source ?? null, gates, runs: asJson(runs), parallel, ...defined({ name }) };
      return await view(await jobs.start({ title: idea, owner, events: [{ type: "spec.proposed", data }] }));
    },
    get: async (spec) => await view(await find(spec)),
    async list(input = {}) {
      const { status, createdAfter, createdBefore, ...query } = parseRequest(ListSpecs, input, "a list of specs");
      const isUnfiltered = status === undefined && createdAfter === undefined && createdBefore === undefined;
      const matchesFilter = (facts: JobFacts) =>
        (status === undefined || summaryOf({ ...facts, seq: 0, updatedAt: "" }).status === status) &&
        (createdAfter === undefined || Date.parse(facts.createdAt) >= Date.parse(createdAfter)) &&
        (createdBefore === undefined || Date.parse(facts.createdAt) < Date.parse(createdBefore));
      const page = await jobs.list(defined(query), isUnfiltered ? undefined : matchesFilter);
      return { ...page, items: page.items.map(summaryOf) };
    },
    async execute(spec, input) {
      const request = parseRequest(ExecuteSpec, input, "to execute a spec");
      const id = await say(spec, (job) => executionEvents(job, request));
      jobs.drive(id);
      return { spec: id, ...(await awaitStart(id, options)) };
    },
    async decide(spec, input) {
      const request = parseRequest(DecideSpec, input, "a decision");
      return await view(await say(spec, ({ state }) => decisionEvents(state, request, now())));
    },
    async edit(spec, input) {
      const request = parseRequest(EditSpec, input, "a version");
      return await view(await say(spec, ({ state }) => editEvents(state, request)));
    },
    cancel,
    async wait(spec, { signal } = {}) {
      const id = await find(spec);
      await jobs.wait(id, { orPerson: true, ...(signal && { signal }) });
      return await view(id);
    },
    async *events(spec, eventOptions) {
      yield* jobs.events(await find(spec), eventOptions) as AsyncIterable<NumberedSpecEvent>;
    },
    diff: async (spec, input = {}) => diffOf((await jobs.fold(await find(spec))).state, parseRequest(DiffSpec, input, "a diff")),
    export: async (spec, input = {}) => exportOf((await jobs.fold(await find(spec))).state, parseRequest(ExportSpec, input, "an export")),
    async remove(spec) {
      const id = await find(spec);
      const removed = await view(id);
      if (removed.status === "draft") await cancel(id, { by: "its removal" });
      await jobs.remove(id);
      return removed;
    },
  };
}

/** Finds a spec by id, id prefix or name. A name of the machine's own user takes precedence. */
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
  const matches = (head: unknown) => (head as JobView & { own: SpecFacts }).own.name === name;
  const where = owner === undefined ? {} : { owner: [owner] };
  const { heads } = await log.heads({ prefix: SPEC_PREFIX, where, matches, limit: CANDIDATES_MAX });
  return heads.map(({ stream }) => ({ id: stream.slice(SPEC_PREFIX.length), name }));
}

function summaryOf(head: JobFacts & Pick<JobView, "seq" | "updatedAt">): SpecSummary {
  return specSummary(head, head.own as unknown as SpecFacts);
}

/**
 * Returns the run that the spec continues with, and its sandbox if it exists already. Null if a person has to decide
 * first.
 */
async function awaitStart(id: string, { jobs, runs }: LocalSpecsOptions): Promise<{ run: string | null; sandbox: string | null }> {
  const first = await jobs.fold(id);
  const findStart = async ({ state, facts }: Folded<SpecState>) => {
    const run = openAttempt(state)?.run ?? state.tasks.find(({ finish, run: own }) => finish === null && own !== null)?.run ?? null;
    if (run !== null) return { run, sandbox: (await runs.get(run)).sandbox?.id ?? null };
    return facts.finish !== null || facts.waits !== null ? { run: null, sandbox: null } : null;
  };
  const already = await findStart(first);
  if (already !== null) return already;
  const signal = AbortSignal.timeout(BEGIN_MS_MAX);
  for await (const _ of jobs.events(id, { fromSeq: first.seq + 1, follow: true, signal })) {
    const result = await findStart(await jobs.fold(id));
    if (result !== null) return result;
  }
  return { run: null, sandbox: null };
}

function nameTaken(name: string): CaissonError {
  return new CaissonError("exists", `there is already a spec named ${name}`, {
    hint: "Choose another name. Run `caisson spec ls` to list specs.",
  });
}
