import type { OwnerView } from "../../contract/owner.ts";
import type { Attempt, WebhookId } from "../../contract/webhook-verbs.ts";
import type { OutboundAnswer, OutboundPost } from "../../network/outbound/post-outbound.ts";
import type { InsideVerbs } from "../inside/verbs.ts";
import type { RunVerbs } from "../runs/verbs.ts";
import { cloudEvent, isMeant, signedHeaders } from "./cloud-event.ts";
import type { Delivery, WebhookRecord, WebhookStore } from "./webhook-store.ts";

/** Between the attempts, with a little chance; after the last one it is given up. About a day and a half in all. */
const PAUSES_MS = [5_000, 30_000, 2 * 60_000, 10 * 60_000, 3_600_000, 3 * 3_600_000, 6 * 3_600_000, 24 * 3_600_000];
const RETRY_AFTER_SECONDS_MAX = 3_600;
/** Of one webhook; while there are so many, no new event is taken from the log. */
const RETRYING_MAX = 100;
/** How often the list of webhooks is looked at, since other processes change it, too; and how long a retry sleeps. */
const LOOK_MS = 1_000;
const SLEEP_MS_MAX = 60_000;
/** After a failure of our own, such as a full disk: doubled with each that follows soon. */
const FAILURE_PAUSE_MS = 2_000;
const FAILURE_PAUSE_MS_MAX = 60_000;
/** Events that are none of a webhook's business, after which it is put down how far it came. */
const REACHED_EVERY = 1_000;
/** The receiver wants no more. */
const GONE = 410;

/** Where events come from, and where they are read again. */
export interface EventStation {
  runs: Pick<RunVerbs, "allEvents" | "events">;
  inside: Pick<InsideVerbs, "events">;
  workflows: DrivenEvents;
  specs: DrivenEvents;
  ships: DrivenEvents;
  merges: DrivenEvents;
}

interface DrivenEvents {
  events(word: string, options: { fromSeq: number; signal: AbortSignal }): AsyncIterable<Told["event"] & { seq: number }>;
}

export interface DeliverParts {
  store: WebhookStore;
  /** The station as the webhook's owner sees it. */
  stationFor(view: OwnerView): EventStation;
  post(post: OutboundPost): Promise<OutboundAnswer>;
  now(): number;
  /** Called by whoever changes a webhook in this process. */
  woken: Set<() => void>;
  onDefect(error: unknown): void;
  signal: AbortSignal;
}

/** Sends to every webhook what it is to be told, each at its own pace, until the signal. */
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

/** What a webhook works by, apart from how far it came. */
function termsOf({ reached: _, ...terms }: WebhookRecord): string {
  return JSON.stringify(terms);
}

/** Pauses after a failure before it is over, so that nobody begins anew at once. */
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

/** New events, and those to be told again, until the signal; when either fails, the other ends before it is thrown. */
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
  /** Told when the receiver wants no more. */
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
      store.keep(record.id, { ...due, state: "dead", nextAt: null, error: "what it is of was removed" });
      continue;
    }
    const { seq, position } = due;
    await tell(record, { parts, fed: { ...placeOf(due), seq, position, event }, attempts: due.attempts + 1 });
  }
}

type Place = Pick<Delivery, "run" | "sandbox" | "driven">;

/** Whose event it is; what was put down before there were sandboxes or driven things among them names none. */
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
        : station[drivenGroups[driven.kind]].events(driven.id, { fromSeq: seq, signal: parts.signal });
    for await (const event of events) return event.seq === seq ? event : null;
  } catch {
    // Removed, or damaged since.
  }
  return null;
}

const drivenGroups = { workflow: "workflows", spec: "specs", ship: "ships", merge: "merges" } as const;

type Told = Place & Pick<Delivery, "seq" | "position"> & { event: { type: string; at: string; data: unknown } };

async function tell(record: WebhookRecord, { parts, fed, attempts }: { parts: TellParts; fed: Told; attempts: number }): Promise<void> {
  const { store, now, signal } = parts;
  const { type, at, data } = fed.event;
  const { run, sandbox, driven, seq } = fed;
  const of = driven ?? (run === null ? { kind: "sandbox" as const, id: sandbox as string } : { kind: "run" as const, id: run });
  const body = cloudEvent({ of, seq, type, at, data });
  const result = await attempt(record, { id: `msg_${record.id}_${fed.position}`, body, post: parts.post, now, signal });
  // Given up in the middle: nobody knows whether it arrived, so it is sent again, with the same id.
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
  store.change({ ...record, paused: "its receiver answered that it is gone" });
  parts.onGone();
}

/** Null when it was the last attempt. */
function pauseAfter(attempts: number, retryAfterSeconds: number | null): number | null {
  const pauseMs = PAUSES_MS[attempts - 1];
  if (pauseMs === undefined) return null;
  const withChance = pauseMs * (0.9 + Math.random() * 0.2);
  return Math.max(withChance, Math.min(retryAfterSeconds ?? 0, RETRY_AFTER_SECONDS_MAX) * 1000);
}

/** One message to a webhook, signed. */
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
  return status >= 300 && status < 400 ? `it answered ${status}, and redirects are not followed` : `it answered ${status}`;
}

/** Until the time, the signal, or until somebody changed a webhook. */
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
