import type { NewJobEvent } from "../../contract/durable/durable-event.ts";
import type { JobFacts, JobList, JobView } from "../../contract/durable/durable-job.ts";
import { ListJobs } from "../../contract/durable/durable-job.ts";
import { CaissonError } from "../../contract/error/error.ts";
import { parseRequest } from "../../contract/error/parse-request.ts";
import { readEvent } from "../../contract/event/event-family.ts";
import { LOCAL_OWNER, ownedBy } from "../../contract/token/owner.ts";
import type { Crashpoint } from "../../lib/crashpoint.ts";
import { defined } from "../../lib/defined.ts";
import { newId } from "../../lib/new-id.ts";
import type { Log } from "../../log/log.ts";
import type { JobVerbs } from "../../verbs/durable-jobs.ts";
import { CANDIDATES_MAX, oneOf } from "../names/one-of.ts";
import { parseCursor, showCursor } from "../pages.ts";
import type { Driver } from "./driver.ts";
import { type Folded, foldJob, headOf, type JobHead, say, storedForm, streamOf, toJobHead } from "./durable-log.ts";
import type { Effect, Kind, NewKindEvent } from "./kind.ts";

const PAGE = 1000;
const PAGE_BYTES = 1024 ** 2;
const LIST_DEFAULT = 1000;
const TITLE_MAX = 200;
/** The default, unless the configuration sets a limit. */
const OPEN_PER_OWNER_MAX = 200;

/** A job to create. */
export interface NewJob<New extends NewKindEvent> {
  /** Set by a caller that must find the job again after a crash. An existing job with this id stays as it is. */
  id?: string;
  title: string;
  owner?: string | undefined;
  /** The stream of the job that contains this one. */
  parent?: string | null;
  /** The kind's own first events, which define the job. */
  events: readonly New[];
}

/** The verbs that all kinds share, and the parts from which a kind builds its own verbs. */
export interface Jobs<State, New extends NewKindEvent> extends JobVerbs {
  /** Creates a job and starts driving it. Resolves with its id when it is in the log. */
  start(job: NewJob<New>): Promise<string>;
  /** Resolves an id or an id prefix to the full id. */
  find(word: string): Promise<string>;
  /** With `matches`, lists only the jobs for which it returns true. Nothing is folded for this. */
  list(options?: ListJobs, matches?: (facts: JobFacts) => boolean): Promise<JobList>;
  /** Returns the job's whole state. */
  fold(word: string): Promise<Folded<State>>;
  /** Appends events to the job; see `say` in `durable-log.ts`. Does not drive it here: its driver sees the events. */
  say(word: string, make: (job: Folded<State>) => readonly (New | NewJobEvent)[]): Promise<JobView>;
  /** Drives the job in this process, unless another process does. */
  drive(id: string): void;
}

export function createJobs<State, New extends NewKindEvent, Work extends Effect>(
  kind: Kind<State, New, Work>,
  options: {
    log: Log;
    driver: Pick<Driver, "drive">;
    crashpoint: Crashpoint;
    /** Limits open jobs of this kind that are not part of another job. */
    openPerOwnerMax?: number | undefined;
  },
): Jobs<State, New> {
  const { log, driver, crashpoint, openPerOwnerMax = OPEN_PER_OWNER_MAX } = options;
  const find = (word: string) => findJob(kind, word, log);
  const view = async (id: string): Promise<JobView> => viewOf(await headOf(log, kind, id));
  const tell = async (word: string, make: (job: Folded<State>) => readonly (New | NewJobEvent)[]): Promise<JobView> => {
    const id = await find(word);
    await say(log, kind, id, make);
    return await view(id);
  };
  const drive = (id: string) => driver.drive(streamOf(kind, id));
  return {
    find,
    drive,
    say: tell,
    fold: async (word) => await foldJob(log, kind, await find(word)),
    async start({ id = newId(kind.idPrefix), title, owner, parent = null, events }) {
      const created = { type: "driven.created" as const, data: { id, title: firstWords(title), parent, ...ownedBy(owner) } };
      const stored = storedForm(kind, [created, ...events]);
      if (parent === null) await checkShare(kind, id, { log, owner: owner ?? LOCAL_OWNER, openPerOwnerMax });
      crashpoint("driven.created:before");
      await log.append(streamOf(kind, id), stored, { expectedSeq: 0 }).catch(unlessThere);
      crashpoint("driven.created:after");
      drive(id);
      return id;
    },
    get: async (word) => await view(await find(word)),
    list: async (options = {}, matches) =>
      await listThings(kind, parseRequest(ListJobs, options, `a list of ${kind.name}s`), { log, matches }),
    async *events(word, options = {}) {
      yield* eventsOf(kind, await find(word), { ...options, log });
    },
    async wait(word, options = {}) {
      const id = await find(word);
      return viewOf(await untilOver(kind, id, { ...options, log }));
    },
    async cancel(word, { by, text = "" }) {
      const job = await tell(word, ({ facts }) => {
        refuseEnded(kind, facts);
        return facts.cancelRequested === null ? [{ type: "driven.cancel_requested", data: { by, text } }] : [];
      });
      drive(job.id);
      return job;
    },
    pause: async (word, { by, text = "" }) =>
      await tell(word, ({ facts }) => {
        refuseEnded(kind, facts);
        return facts.paused === null ? [{ type: "driven.paused", data: { by, text } }] : [];
      }),
    async resume(word, { by }) {
      const resumed = await tell(word, ({ facts }) => {
        refuseEnded(kind, facts);
        return facts.paused === null ? [] : [{ type: "driven.continued", data: { by } }];
      });
      drive(resumed.id);
      return resumed;
    },
    async remove(word) {
      const id = await find(word);
      const { facts, damage } = await headOf(log, kind, id);
      if (facts.finish === null && damage === null) {
        throw new CaissonError("conflict", `the ${kind.name} ${id} has not ended`, {
          hint: `Cancel it first: caisson ${kind.name} cancel ${id}`,
        });
      }
      await log.remove(streamOf(kind, id));
    },
  };
}

function viewOf({ facts, seq, at, damage }: JobHead): JobView {
  return { ...facts, seq, updatedAt: at, damage };
}

/** Throws `conflict` if the job has ended. */
export function refuseEnded({ name }: Pick<Kind, "name">, { id, finish }: JobFacts): void {
  if (finish === null) return;
  throw new CaissonError("conflict", `the ${name} ${id} has ended (${finish})`, {
    hint: `Run \`caisson ${name} show ${id}\` to see how it ended.`,
    details: { finish },
  });
}

/** Resolves an id or an id prefix to the full id. A full id is returned without a lookup. */
async function findJob(kind: Pick<Kind, "name" | "prefix" | "idPrefix" | "listedBy">, word: string, log: Log): Promise<string> {
  const { name, prefix, idPrefix, listedBy } = kind;
  if (new RegExp(`^${idPrefix}_[a-z2-7]{12}$`).test(word)) return word;
  if (!new RegExp(`^${idPrefix}_[a-z2-7]{1,11}$`).test(word)) {
    throw new CaissonError("invalid", `${JSON.stringify(word.slice(0, 100))} is not the id of a ${name}`, {
      hint: `An id looks like ${idPrefix}_k3v7q2m5x4ab, and a unique prefix is enough; \`${listedBy}\` lists them.`,
    });
  }
  const found = await log.streams({ prefix: `${prefix}${word}`, limit: CANDIDATES_MAX });
  return oneOf(
    word,
    found.map(({ stream }) => ({ id: stream.slice(prefix.length) })),
    { what: name, listedBy },
  );
}

/**
 * Throws `busy` if the owner has reached the limit of open jobs of a kind. A request for a job that already exists
 * always passes.
 */
async function checkShare(
  kind: Pick<Kind, "name" | "prefix" | "listedBy">,
  id: string,
  { log, owner, openPerOwnerMax }: { log: Log; owner: string; openPerOwnerMax: number },
): Promise<void> {
  const { heads } = await log.heads({ prefix: kind.prefix, where: { owner: [owner] }, open: true, limit: openPerOwnerMax });
  if (heads.length < openPerOwnerMax || heads.some(({ stream }) => stream === streamOf(kind, id))) return;
  const isOwn = ({ head }: { head: unknown }) => (head as JobFacts).parent === null;
  if (heads.filter(isOwn).length < openPerOwnerMax) return;
  throw new CaissonError("busy", `${owner} already has ${openPerOwnerMax} open ${kind.name}s, the maximum for one owner`, {
    hint: `Wait until one ends, or cancel one; \`${kind.listedBy}\` lists them. \`station.jobsPerOwnerMax\` sets the limit.`,
  });
}

async function listThings(
  kind: Pick<Kind, "prefix" | "name">,
  query: ListJobs,
  { log, matches }: { log: Log; matches: ((facts: JobFacts) => boolean) | undefined },
): Promise<JobList> {
  const { id = "", state, status, finish, parent, owner, needsPerson, cursor, limit = LIST_DEFAULT } = query;
  const where = defined({
    status: status === undefined ? undefined : [status],
    finish: finish === undefined ? undefined : [finish],
    owner: owner === undefined ? undefined : [owner],
    parent: parent === undefined ? undefined : [parent],
  });
  const [at, stream] = cursor === undefined ? [] : parseCursor(cursor, `${kind.name}s`);
  const matchesFilter = (head: unknown) => {
    const facts = head as JobFacts;
    return (needsPerson === undefined || ((facts.waits?.person ?? null) !== null) === needsPerson) && matches?.(facts) !== false;
  };
  const isFiltered = needsPerson !== undefined || matches !== undefined;
  const { heads, total, isMinimum } = await log.heads({
    prefix: `${kind.prefix}${id}`,
    where,
    limit,
    ...defined({ open: state === undefined ? undefined : state === "open", matches: isFiltered ? matchesFilter : undefined }),
    ...(at !== undefined && stream !== undefined && { after: { at, stream } }),
  });
  const last = heads.at(-1);
  return {
    items: heads.map((head) => viewOf(toJobHead(kind, head))),
    total,
    totalIsMinimum: isMinimum,
    next: last !== undefined && heads.length === limit ? showCursor([last.at, last.stream]) : null,
  };
}

async function* eventsOf(
  kind: Pick<Kind, "name" | "prefix" | "events" | "listedBy">,
  id: string,
  { log, fromSeq = 1, follow = false, signal }: { log: Log; fromSeq?: number; follow?: boolean; signal?: AbortSignal },
) {
  const stream = streamOf(kind, id);
  await headOf(log, kind, id);
  const read = (stored: Parameters<typeof readEvent>[1] & { seq: number }) => ({
    ...(readEvent(kind.events, stored) as { type: string; at: string; data: unknown }),
    seq: stored.seq,
  });
  if (!follow) {
    for (let next = fromSeq; signal?.aborted !== true; ) {
      const events = await log.read(stream, { fromSeq: next, limit: PAGE, bytesMax: PAGE_BYTES });
      for (const stored of events) yield read(stored);
      const last = events.at(-1);
      if (last === undefined) return;
      next = last.seq + 1;
    }
    return;
  }
  const { facts, seq } = await headOf(log, kind, id);
  if (facts.finish !== null && fromSeq > seq) return;
  for await (const stored of log.subscribe(stream, { fromSeq, ...(signal && { signal }) })) {
    yield read(stored);
    // Nothing follows an end, unless the job was continued.
    if (stored.type === "driven.ended" && (await log.lastSeq(stream)) === stored.seq) return;
  }
}

async function untilOver(
  kind: Pick<Kind, "name" | "prefix" | "listedBy">,
  id: string,
  { log, orPerson = false, signal }: { log: Log; orPerson?: boolean | undefined; signal?: AbortSignal },
): Promise<JobHead> {
  const isOver = ({ facts }: JobHead) => facts.finish !== null || (orPerson && (facts.waits?.person ?? null) !== null);
  const first = await headOf(log, kind, id);
  if (isOver(first)) return first;
  for await (const _ of log.subscribe(streamOf(kind, id), { fromSeq: first.seq + 1, ...(signal && { signal }) })) {
    const now = await headOf(log, kind, id);
    if (isOver(now)) return now;
  }
  throw new CaissonError("cancelled", `the caller stopped waiting for ${id}`);
}

/** Ignores a conflict: a job that was created earlier with the same id is the same job. */
function unlessThere(error: unknown): void {
  if (!(error instanceof CaissonError) || error.code !== "conflict") throw error;
}

function firstWords(text: string): string {
  const line = text.trim().split("\n", 1)[0] ?? "";
  return line.length <= TITLE_MAX ? line : `${line.slice(0, TITLE_MAX - 1)}…`;
}
