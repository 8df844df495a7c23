import { CaissonError } from "../../contract/error/error.ts";
import type { OwnerView } from "../../contract/token/owner.ts";
import type { Attempt, WebhookId } from "../../contract/webhook/webhook-verbs.ts";
import type { OutboundAnswer, OutboundPost } from "../../network/outbound/post-outbound.ts";
import type { InsideVerbs } from "../../verbs/inside.ts";
import type { RunVerbs } from "../../verbs/runs.ts";
import { cloudEvent, isMeant, signedHeaders } from "./cloud-event.ts";
import type { Delivery, WebhookRecord, WebhookStore } from "./webhook-store.ts";

/**
 * Pauses between attempts, about a day and a half in total, with some jitter. After the last attempt the delivery is
 * dead.
 */
const PAUSES_MS = [5_000, 30_000, 2 * 60_000, 10 * 60_000, 3_600_000, 3 * 3_600_000, 6 * 3_600_000, 24 * 3_600_000];
const RETRY_AFTER_SECONDS_MAX = 3_600;
/** How many retries of one webhook may be pending. At this number, it takes no new events from the log. */
const RETRYING_MAX = 100;
/**
 * How often we read the list of webhooks, because other processes change it as well; and the longest sleep before a
 * retry.
 */
const LOOK_MS = 1_000;
const SLEEP_MS_MAX = 60_000;
/** The pause after a failure on our side, such as a full disk. It doubles with each failure that follows soon. */
const FAILURE_PAUSE_MS = 2_000;
const FAILURE_PAUSE_MS_MAX = 60_000;
/** How many events without a match pass before we record a webhook's position. */
const REACHED_EVERY = 1_000;
/** The status by which a receiver ends its subscription. */
const GONE = 410;

/** Sources of events, which can also be read again. */
export interface EventStation {
  runs: Pick<RunVerbs, "allEvents" | "events">;
  inside: Pick<InsideVerbs, "events">;
  workflows: JobEvents;
  specs: JobEvents;
  ships: JobEvents;
  merges: JobEvents;
  bests: JobEvents;
}

interface JobEvents {
  events(word: string, options: { fromSeq: number; signal: AbortSignal }): AsyncIterable<DeliveredEvent["event"] & { seq: number }>;
}

export interface DeliverParts {
  store: WebhookStore;
  /** Returns the station as the webhook's owner sees it. */
  stationFor(view: OwnerView): EventStation;
  post(post: OutboundPost): Promise<OutboundAnswer>;
  now(): number;
  /** Functions to call after this process changes a webhook. */
  woken: Set<() => void>;
  onDefect(error: unknown): void;
  signal: AbortSignal;
}

/** Sends matching events to every webhook, each at its own pace, until the signal fires. */
export async function deliverAll(parts: DeliverParts): Promise<void> {
  const working = new Map<WebhookId, { as: string; end: AbortController; done: Promise<unknown> }>();
  const failures = new Map<WebhookId, number>();
  const look = () => {
    const wanted = parts.signal.aborted ? [] : parts.store.all().filter(({ paused }) => paused === null);
    for (const [id, { as, end }] of working) {
      if (!wanted.some((each) => each.id === id && termsOf(each) === as)) end.abort();
    }
    for (const record of wanted.filter(({ id }) => !working.has(id))) {
      const end = new AbortController();
      const done = deliverUntilFailure(record, { ...parts, signal: end.signal, failures }).finally(() => working.delete(record.id));
      working.set(record.id, { as: termsOf(record), end, done });
    }
  };
  while (!parts.signal.aborted) {
    look();
    await sleep(LOOK_MS, parts);
  }
  look();
  await Promise.all([...working.values()].map(({ done }) => done));
}

/** Returns the settings of a webhook, without its progress. */
function termsOf({ reached: _, ...terms }: WebhookRecord): string {
  return JSON.stringify(terms);
}

/** After a failure, pauses before it resolves, so that no caller restarts the work at once. */
async function deliverUntilFailure(record: WebhookRecord, parts: DeliverParts & { failures: Map<WebhookId, number> }): Promise<void> {
  const { failures, signal } = parts;
  const began = performance.now();
  try {
    await deliverTo(record, parts);
    failures.delete(record.id);
  } catch (error) {
    if (signal.aborted) return;
    parts.onDefect(error);
    const isNew = performance.now() - began > FAILURE_PAUSE_MS_MAX;
    const before = isNew ? 0 : (failures.get(record.id) ?? 0);
    failures.set(record.id, before + 1);
    await sleep(Math.min(FAILURE_PAUSE_MS * 2 ** before, FAILURE_PAUSE_MS_MAX), parts);
  }
}

/**
 * Delivers new events and retries until the signal fires. If either fails, the other is stopped before the error is
 * thrown.
 */
async function deliverTo(record: WebhookRecord, parts: DeliverParts): Promise<void> {
  const end = new AbortController();
  const until = { ...parts, signal: AbortSignal.any([parts.signal, end.signal]), onGone: () => end.abort() };
  const failures: unknown[] = [];
  const endBoth = (error: unknown) => {
    failures.push(error);
    end.abort();
  };
  await Promise.all([tellNew(record, until).catch(endBoth), tellAgain(record, until).catch(endBoth)]);
  if (failures.length > 0) throw failures[0];
}

interface TellParts extends DeliverParts {
  /** Called when the receiver ends its subscription. */
  onGone(): void;
}

async function tellNew(record: WebhookRecord, parts: TellParts): Promise<void> {
  const { store, signal } = parts;
  let passed = 0;
  for await (const fed of parts.stationFor(record.view).runs.allEvents({ afterPosition: record.reached, signal })) {
    const event = fed.event === null || !isMeant(record.events, fed.event.type) ? null : fed.event;
    if (event === null || store.delivery(record.id, fed.position) !== null) {
      passed += 1;
      if (passed % REACHED_EVERY === 0) store.reach(record.id, fed.position);
      continue;
    }
    while (!signal.aborted && store.count(record.id, "retrying") >= RETRYING_MAX) await sleep(LOOK_MS, parts);
    if (signal.aborted) return;
    const { seq, position } = fed;
    await tell(record, { parts, fed: { ...placeOf(fed), seq, position, event }, attempts: 1 });
  }
}

async function tellAgain(record: WebhookRecord, parts: TellParts): Promise<void> {
  const { store, signal, now } = parts;
  while (!signal.aborted) {
    const due = store.nextRetry(record.id);
    const waitMs = due?.nextAt == null ? SLEEP_MS_MAX : Date.parse(due.nextAt) - now();
    if (due === null || waitMs > 0) {
      await sleep(Math.min(waitMs, SLEEP_MS_MAX), parts);
      continue;
    }
    const event = await eventAt(record, { delivery: due, parts });
    if (event === null) {
      store.keep(record.id, { ...due, state: "dead", nextAt: null, error: "the subject of the event was removed" });
      continue;
    }
    const { seq, position } = due;
    await tell(record, { parts, fed: { ...placeOf(due), seq, position, event }, attempts: due.attempts + 1 });
  }
}

type Place = Pick<Delivery, "run" | "sandbox" | "driven">;

/** Returns the subject of an event. Older records do not name sandboxes or durable jobs, which had no events then. */
function placeOf({ run = null, sandbox = null, driven = null }: Partial<Place>): Place {
  return { run, sandbox, driven };
}

async function eventAt(record: WebhookRecord, { delivery, parts }: { delivery: Delivery; parts: DeliverParts }) {
  const { run, sandbox, driven } = placeOf(delivery);
  const { seq } = delivery;
  const station = parts.stationFor(record.view);
  try {
    if (sandbox !== null)
      return (await station.inside.events(sandbox, { fromSeq: seq, limit: 1 })).find((event) => event.seq === seq) ?? null;
    const events =
      driven === null
        ? station.runs.events(run as string, { fromSeq: seq })
        : station[jobGroups[driven.kind]].events(driven.id, { fromSeq: seq, signal: parts.signal });
    for await (const event of events) return event.seq === seq ? event : null;
  } catch (error) {
    // It was removed or damaged since. Any other failure is retried.
    if (!(error instanceof CaissonError) || !["not_found", "internal"].includes(error.code)) throw error;
  }
  return null;
}

const jobGroups = { workflow: "workflows", spec: "specs", ship: "ships", merge: "merges", best: "bests" } as const;

type DeliveredEvent = Place & Pick<Delivery, "seq" | "position"> & { event: { type: string; at: string; data: unknown } };

async function tell(
  record: WebhookRecord,
  { parts, fed, attempts }: { parts: TellParts; fed: DeliveredEvent; attempts: number },
): Promise<void> {
  const { store, now, signal } = parts;
  const { type, at, data } = fed.event;
  const { run, sandbox, driven, seq } = fed;
  const of = driven ?? (run === null ? { kind: "sandbox" as const, id: sandbox as string } : { kind: "run" as const, id: run });
  const body = cloudEvent({ of, seq, type, at, data });
  const result = await attempt(record, { id: `msg_${record.id}_${fed.position}`, body, post: parts.post, now, signal });
  // After an interruption we do not know whether it arrived, so it is sent again with the same id.
  if (signal.aborted && !result.ok) return;
  const pauseMs = result.ok ? null : pauseAfter(attempts, result.retryAfterSeconds);
  store.keep(record.id, {
    position: fed.position,
    run,
    sandbox,
    driven,
    seq,
    type,
    state: result.ok ? "delivered" : pauseMs === null ? "dead" : "retrying",
    attempts,
    at: new Date(now()).toISOString(),
    nextAt: pauseMs === null ? null : new Date(now() + pauseMs).toISOString(),
    status: result.status,
    error: result.error,
  });
  if (result.status !== GONE) return;
  store.change({ ...record, paused: "its receiver answered 410 Gone" });
  parts.onGone();
}

/** Returns the pause before the next attempt, or null after the last one. */
function pauseAfter(attempts: number, retryAfterSeconds: number | null): number | null {
  const pauseMs = PAUSES_MS[attempts - 1];
  if (pauseMs === undefined) return null;
  const withChance = pauseMs * (0.9 + Math.random() * 0.2);
  return Math.max(withChance, Math.min(retryAfterSeconds ?? 0, RETRY_AFTER_SECONDS_MAX) * 1000);
}

/** Sends one signed message to a webhook. */
export async function attempt(
  { url, secret, allowPrivate }: Pick<WebhookRecord, "url" | "secret" | "allowPrivate">,
  message: { id: string; body: string; signal?: AbortSignal } & Pick<DeliverParts, "post" | "now">,
): Promise<Attempt & { retryAfterSeconds: number | null }> {
  const { id, body, post, now, signal } = message;
  const began = performance.now();
  const headers = signedHeaders({ id, body, secret, nowMs: now() });
  const answer = await post({ url, headers, body, allowPrivate, ...(signal && { signal }) });
  const durationMs = Math.round(performance.now() - began);
  if ("error" in answer) return { ok: false, status: null, error: answer.error, durationMs, retryAfterSeconds: null };
  const { status, retryAfterSeconds } = answer;
  const ok = status >= 200 && status < 300;
  return { ok, status, error: ok ? null : refusalOf(status), durationMs, retryAfterSeconds };
}

function refusalOf(status: number): string {
  return status >= 300 && status < 400 ? `it answered ${status}; redirects are not followed` : `it answered ${status}`;
}

/** Sleeps until the time is over, the signal fires or a webhook changes. */
async function sleep(ms: number, { signal, woken }: Pick<DeliverParts, "signal" | "woken">): Promise<void> {
  if (signal.aborted) return;
  const { promise, resolve } = Promise.withResolvers<void>();
  const end = () => resolve();
  const timer = setTimeout(end, ms);
  signal.addEventListener("abort", end);
  woken.add(end);
  await promise;
  clearTimeout(timer);
  signal.removeEventListener("abort", end);
  woken.delete(end);
}
