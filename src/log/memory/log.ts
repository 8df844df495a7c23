import { CaissonError } from "../../contract/error/error.ts";
import { compareHeads, passesFilter } from "../head-filter.ts";
import type { LeaseClock } from "../lease-clock.ts";
import { checkInherits, encodeEvents, fencedOut, READ_LIMIT_DEFAULT, STREAMS_LIMIT_DEFAULT, wrongSequence } from "../limits.ts";
import type { Inherits, Lease, Log, StoredEvent, StreamHead } from "../log.ts";
import { projectionOf as everyProjection, type FindProjection, type Projection, project } from "../projection.ts";
import { pageOf, type ReadBudget, subscription } from "../subscription.ts";

interface MemoryStream {
  events: StoredEvent[];
  /** How many events were dropped by compaction. */
  before: number;
  lease: Lease | null;
  /** In lease clock time. */
  expiresMs: number;
  epoch: number;
  head: { head: StreamHead["head"]; damage: string | null; isOpen: boolean } | null;
}

/**
 * A log for tests and for temporary runs. It disappears with the process; otherwise it behaves like the durable log.
 */
export function createMemoryLog(
  options: { nowMs?: () => number; leaseClock?: Pick<LeaseClock, "nowMs">; projectionOf?: FindProjection } = {},
): Log {
  const { projectionOf = everyProjection, nowMs = Date.now, leaseClock = { nowMs: () => performance.now() } } = options;
  const streams = new Map<string, MemoryStream>();
  const listeners = new Set<() => void>();
  /** Every event at index position - 1; null if its stream was removed. */
  const feed: (StoredEvent | null)[] = [];
  const listen = (wake: () => void) => {
    listeners.add(wake);
    return () => void listeners.delete(wake);
  };
  const ensure = (name: string): MemoryStream => {
    const stream = streams.get(name) ?? { events: [], before: 0, lease: null, expiresMs: 0, epoch: 0, head: null };
    streams.set(name, stream);
    return stream;
  };
  const leases = leasesOf({ streams, ensure, nowMs, leaseClock });
  const read: Log["read"] = async (name, options) => pageFrom(streams.get(name), options);
  const forget = (name: string) => {
    for (const [index, event] of feed.entries()) if (event?.stream === name) feed[index] = null;
  };

  return {
    async append(name, events, { expectedSeq, lease, inherits, isRetold = false } = {}) {
      const texts = encodeEvents(name, events);
      if (lease) leases.check(name, lease);
      const before = lastSeqOf(streams.get(name));
      if (expectedSeq !== undefined && expectedSeq !== before) throw wrongSequence(name, { expectedSeq, lastSeq: before });
      if (inherits !== undefined) checkInherits({ stream: name, events, options: { isRetold } }, before);
      const story = inherits === undefined ? [] : inheritedFrom(name, inherits, streams);
      const lastSeq = inherits?.seq ?? before;
      const stream = ensure(name);
      if (inherits !== undefined) Object.assign(stream, { events: story, before: lastSeq - story.length });
      const at = new Date(nowMs()).toISOString();
      if (isRetold && events.length > 0) {
        Object.assign(stream, { events: [], before: lastSeq });
        forget(name);
      }
      events.forEach((event, index) => {
        const data = JSON.parse(texts[index] ?? "null");
        const stored: StoredEvent = { stream: name, seq: lastSeq + index + 1, at, type: event.type, version: event.version, data };
        stream.events.push(stored);
        feed.push(stored);
      });
      if (events.length > 0) advanceHead(stream, projectionOf(name), events.length + story.length);
      for (const wake of [...listeners]) wake();
      return { lastSeq: lastSeq + events.length };
    },
    read,
    lastSeq: async (name) => lastSeqOf(streams.get(name)),
    subscribe(name, { fromSeq = 1, signal, known } = {}) {
      const page = async (fromSeq: number, { limit, bytes: bytesMax }: ReadBudget) =>
        pageOf(await read(name, { fromSeq, limit, bytesMax }), fromSeq);
      return subscription({ from: fromSeq, signal, listen, read: page, known });
    },
    subscribeAll({ prefix = "", types, afterPosition = 0, restMs, signal } = {}) {
      const page = async (from: number, { limit }: ReadBudget) => {
        const events = feed
          .slice(from - 1, from - 1 + limit)
          .flatMap((event, index) => (isMeant(event, prefix, types) ? [{ ...structuredClone(event), position: from + index }] : []));
        return { events, next: Math.max(from, Math.min(from + limit, feed.length + 1)) };
      };
      return subscription({ from: afterPosition + 1, signal, listen, read: page, restMs });
    },
    lastPosition: async () => feed.length,
    async streams({ prefix = "", limit = STREAMS_LIMIT_DEFAULT } = {}) {
      return [...streams]
        .filter(([name, stream]) => name.startsWith(prefix) && stream.events.length > 0)
        .map(([name, stream]) => ({ stream: name, lastSeq: lastSeqOf(stream), at: stream.events.at(-1)?.at ?? "" }))
        .sort((a, b) => (a.at === b.at ? 0 : a.at < b.at ? 1 : -1))
        .slice(0, limit);
    },
    ...leases.calls,
    async remove(name) {
      if (!streams.delete(name)) throw new CaissonError("not_found", `there is no stream ${name}`);
      forget(name);
    },
    async head(name) {
      const { isOpen: _, ...head } = headOf(streams, name) ?? { isOpen: false };
      return "stream" in head ? head : null;
    },
    async heads({ after, limit, ...filter }) {
      const terms = (head: StreamHead["head"]) => projectionOf(filter.prefix)?.terms?.(head) ?? [];
      const found = [...streams.keys()]
        .filter((name) => name.startsWith(filter.prefix))
        .flatMap((name) => headOf(streams, name) ?? [])
        .filter((head) => passesFilter(head, filter, terms))
        .sort(compareHeads);
      const rest = after === undefined ? found : found.filter((head) => compareHeads(head, after) > 0);
      return { heads: rest.slice(0, limit).map(({ isOpen: _, ...head }) => head), total: found.length, isMinimum: false };
    },
    async noteDamage(name, damage) {
      const head = streams.get(name)?.head;
      if (head) head.damage = damage;
    },
    async check() {
      return [];
    },
    async [Symbol.asyncDispose]() {},
  };
}

function advanceHead(stream: MemoryStream, projection: Projection | null, count: number): void {
  if (projection === null) return;
  const next = project(projection, stream.head ?? { head: null, damage: null }, structuredClone(stream.events.slice(-count)));
  stream.head = { ...next, isOpen: projection.isOpen(next.head) };
}

/** Returns the events of another stream, renamed. Throws `not_found` if it has no such event. */
function inheritedFrom(name: string, { stream, seq }: Inherits, streams: ReadonlyMap<string, MemoryStream>): StoredEvent[] {
  const parent = streams.get(stream);
  if (parent === undefined || stream === name || seq > lastSeqOf(parent) || seq <= parent.before)
    throw new CaissonError("not_found", `there is no event ${seq} of ${stream} to inherit`);
  return parent.events.slice(0, seq - parent.before).map((event) => ({ ...event, stream: name }));
}

function pageFrom(
  stream: MemoryStream | undefined,
  { fromSeq = 1, limit = READ_LIMIT_DEFAULT, bytesMax = Number.POSITIVE_INFINITY } = {},
): StoredEvent[] {
  const { events = [], before = 0 } = stream ?? {};
  const first = Math.max(0, fromSeq - 1 - before);
  const page: StoredEvent[] = [];
  let bytes = 0;
  for (const event of events.slice(first, first + limit)) {
    page.push(event);
    if (bytesMax !== Number.POSITIVE_INFINITY) bytes += JSON.stringify(event.data).length;
    if (bytes >= bytesMax) break;
  }
  return structuredClone(page);
}

const lastSeqOf = (stream: MemoryStream | undefined): number => (stream === undefined ? 0 : stream.before + stream.events.length);

function headOf(streams: ReadonlyMap<string, MemoryStream>, name: string): (StreamHead & { isOpen: boolean }) | null {
  const stream = streams.get(name);
  if (!stream?.head) return null;
  return structuredClone({ stream: name, seq: lastSeqOf(stream), at: stream.events.at(-1)?.at ?? "", ...stream.head });
}

type LeaseCalls = Pick<Log, "acquire" | "holder" | "lastLease" | "renew" | "release">;

function leasesOf(options: {
  streams: ReadonlyMap<string, MemoryStream>;
  ensure: (name: string) => MemoryStream;
  nowMs: () => number;
  leaseClock: Pick<LeaseClock, "nowMs">;
}): { check(name: string, lease: Lease): void; calls: LeaseCalls } {
  const { streams, ensure, nowMs, leaseClock } = options;
  const live = (stream: MemoryStream) => (stream.lease && stream.expiresMs > leaseClock.nowMs() ? stream.lease : null);
  const give = (stream: MemoryStream, lease: Lease, ttlMs: number): Lease => {
    stream.lease = { ...lease, expiresAtMs: nowMs() + ttlMs };
    stream.expiresMs = leaseClock.nowMs() + ttlMs;
    return stream.lease;
  };
  const check = (name: string, lease: Lease) => {
    const current = streams.get(name)?.epoch ?? 0;
    if (current !== lease.epoch) throw fencedOut(name, { epoch: lease.epoch, current });
  };
  const calls: LeaseCalls = {
    async acquire(name, { holder: owner, ttlMs, holderGone }) {
      const stream = ensure(name);
      const held = live(stream);
      if (held && !holderGone?.(held.holder)) return null;
      stream.epoch += 1;
      return give(stream, { stream: name, holder: owner, epoch: stream.epoch, expiresAtMs: 0 }, ttlMs);
    },
    async holder(name) {
      const stream = streams.get(name);
      return stream ? live(stream) : null;
    },
    async lastLease(name) {
      return streams.get(name)?.lease ?? null;
    },
    async renew(lease, { ttlMs }) {
      check(lease.stream, lease);
      const stream = ensure(lease.stream);
      if (stream.lease === null) throw fencedOut(lease.stream, { epoch: lease.epoch, current: stream.epoch });
      return give(stream, lease, ttlMs);
    },
    async release(lease) {
      const stream = streams.get(lease.stream);
      if (stream && stream.epoch === lease.epoch) stream.lease = null;
    },
  };
  return { check, calls };
}

function isMeant(
  event: StoredEvent | null | undefined,
  prefix: string | readonly string[],
  types: readonly string[] | undefined,
): event is StoredEvent {
  if (event === null || event === undefined || types?.includes(event.type) === false) return false;
  return [prefix].flat().some((each) => event.stream.startsWith(each));
}
