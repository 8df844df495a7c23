import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { useServer } from "../../../test/support/api-station.ts";
import { type Client, connect } from "../../client/connect.ts";
import type { EventFilter, StreamedEvent } from "../../contract/api/streams.ts";
import type { Log, NewEvent } from "../../log/log.ts";
import { createSqliteLog } from "../../log/sqlite/log.ts";
import { runStream } from "../../station/vocabulary/station-names.ts";
import { cuttingProxy, rawSocket, socketClient } from "./testing-streams.ts";

const { server, token, station, base, endedRun, ask, start } = useServer();

const one = "run_aaaaaaaaaaaa";
const two = "run_bbbbbbbbbbbb";
const sandbox = "sb_cccccccccccc";
let log: Log;
beforeEach(() => {
  log = createSqliteLog({ path: join(base(), "state", "log.db") });
});
afterEach(() => log[Symbol.asyncDispose]());

const client = async (url = server().status.url): Promise<Client> => connect({ url, token: await token("read") });
const step = (n: number): NewEvent => ({ type: "step.started", version: 1, data: { step: n } });
const closedPort = (port: number): NewEvent => ({ type: "port.closed", version: 1, data: { sandbox, port } });
const append = (run: string, ...events: NewEvent[]) => log.append(runStream(run), events);

/** Takes the next events of a subscription. */
async function take(events: AsyncIterable<StreamedEvent>, count: number): Promise<StreamedEvent[]> {
  const takenEvents: StreamedEvent[] = [];
  const iterator = events[Symbol.asyncIterator]();
  while (takenEvents.length < count) takenEvents.push((await iterator.next()).value as StreamedEvent);
  return takenEvents;
}
const positions = (events: readonly StreamedEvent[]) => events.map(({ position }) => position);

describe.each([
  ["over TCP", () => client()],
  ["by the socket", async () => socketClient(server())],
])("events %s", (_, open) => {
  test("include past events of all runs, then new ones", async () => {
    const run = await endedRun();
    const wanted: number[] = [];
    const { streams, runs } = await open();
    for await (const { seq } of station().runs.events(run)) wanted.push(seq);
    const subscription = await streams.subscribe();
    const iterator = subscription[Symbol.asyncIterator]();
    const first = await Promise.all(wanted.map(async () => (await iterator.next()).value as StreamedEvent));
    expect(first.map(({ seq }) => seq)).toEqual(wanted);
    expect(first[0]).toMatchObject({ entity: { kind: "run", id: run }, event: { type: "run.created" }, damage: null });
    expect(subscription.position()).toBeLessThanOrEqual(await runs.lastPosition());
    await append(one, step(1));
    expect((await iterator.next()).value).toMatchObject({ entity: { id: one }, seq: 1, event: { type: "step.started" } });
    subscription.close();
    expect(await iterator.next()).toMatchObject({ done: true });
  });
});

describe("events", () => {
  test.each<[string, EventFilter, number[]]>([
    ["everything", {}, [1, 2, 3, 4]],
    ["a type", { types: ["step.started"] }, [1, 3]],
    ["types by their beginning", { types: ["port.*", "run.ended"] }, [2, 4]],
    ["a kind", { entityKinds: ["sandbox"] }, [2, 4]],
    ["a run, and what tells of its sandbox", { entityIds: [one] }, [1, 2]],
    ["a sandbox, in any log", { entityIds: [sandbox] }, [2, 4]],
    ["an id of another kind: nothing", { entityIds: [sandbox], entityKinds: ["run"] }, []],
    ["all of it", { types: ["step.*"], entityKinds: ["run"], entityIds: [two] }, [3]],
  ])("are filtered: %s", async (_, filter, wanted) => {
    await append(one, step(1), closedPort(80));
    await append(two, step(2), closedPort(81));
    const { streams } = await client();
    const subscription = await streams.subscribe({ filter });
    expect(positions(await take(subscription, wanted.length))).toEqual(wanted);
    if (wanted.length === 0) await vi.waitFor(async () => expect(await subscription.changeFilter(filter)).toBe(4), { timeout: 60_000 });
    subscription.close();
    // Server-sent events have the same filters.
    const query = new URLSearchParams();
    for (const [name, values] of Object.entries(filter)) for (const value of values ?? []) query.append(name, value);
    const stop = new AbortController();
    const response = await ask(`/v1/events?${query}`, { signal: stop.signal });
    let text = "";
    const decoder = new TextDecoder();
    const reader = response.body?.getReader();
    while ((text.match(/^id:/gm)?.length ?? 0) < wanted.length) text += decoder.decode((await reader?.read())?.value);
    stop.abort();
    expect([...text.matchAll(/^id: (\d+)/gm)].map(([, id]) => Number(id))).toEqual(wanted);
  });

  test("change their filter at a position, without repeats or skipped events", async () => {
    const { streams } = await client();
    const subscription = await streams.subscribe({ filter: { entityIds: [one] } });
    const iterator = subscription[Symbol.asyncIterator]();
    await append(two, step(1));
    await append(one, step(2));
    expect((await iterator.next()).value).toMatchObject({ position: 2 });
    const at = await subscription.changeFilter({ entityIds: [two] });
    expect(at).toBe(2);
    await append(one, step(3));
    await append(two, step(4));
    expect((await iterator.next()).value).toMatchObject({ position: 4 });
    await subscription.changeFilter({});
    await append(one, step(5));
    expect((await iterator.next()).value).toMatchObject({ position: 5 });
    subscription.close();
  });

  test("each pass exactly one filter, however often it changes", async () => {
    const { streams } = await client();
    const subscription = await streams.subscribe({ filter: { entityIds: [one] } });
    const seen: StreamedEvent[] = [];
    const reading = (async () => {
      for await (const event of subscription) seen.push(event);
    })();
    const changes: { at: number; id: string }[] = [{ at: 0, id: one }];
    const appending = (async () => {
      for (let n = 1; changes.length <= 10; n += 1) await Promise.all([append(one, step(n)), append(two, step(n))]);
    })();
    // A filter applies from the stream's current position, so each one passes an event before it changes.
    while (changes.length <= 10) {
      const { at, id } = changes.at(-1) ?? { at: 0, id: one };
      await vi.waitFor(() => expect(seen.some(({ position }) => position > at)).toBe(true), { interval: 1, timeout: 60_000 });
      const other = id === one ? two : one;
      changes.push({ at: await subscription.changeFilter({ entityIds: [other] }), id: other });
    }
    await appending;
    const last = await log.lastPosition();
    await vi.waitFor(() => expect(seen.at(-1)?.position).toBeGreaterThan(last - 2), { timeout: 60_000 });
    const filterAt = (position: number) => changes.findLast(({ at }) => at < position)?.id;
    for (const { entity, position } of seen) expect(entity.id).toBe(filterAt(position));
    expect(new Set(positions(seen)).size).toBe(seen.length);
    subscription.close();
    await reading;
  });

  test("continue over broken connections without losing or repeating one", async () => {
    const proxy = await cuttingProxy(server());
    try {
      const { streams } = await client(proxy.url);
      const subscription = await streams.subscribe({ filter: { types: ["step.*"] } });
      const seen: number[] = [];
      const total = 1_500;
      const reading = (async () => {
        for await (const { position } of subscription) if (seen.push(position) === total) return;
      })();
      for (let n = 0; n < 15; n += 1) {
        await append(n % 2 === 0 ? one : two, ...Array.from({ length: 100 }, (_, at) => step(at + 1)));
        if (n % 4 === 1) proxy.cut();
      }
      await reading;
      expect(seen).toEqual(Array.from({ length: total }, (_, at) => at + 1));
    } finally {
      proxy.close();
    }
  });

  test("continue after a connection that went silent, which is reported", async () => {
    const proxy = await cuttingProxy(server());
    try {
      const { streams } = await client(proxy.url);
      const connectionStates: boolean[] = [];
      const subscription = await streams.subscribe({ silenceMs: 1_000, onConnection: (isThere) => connectionStates.push(isThere) });
      const iterator = subscription[Symbol.asyncIterator]();
      await append(one, step(1));
      expect((await iterator.next()).value).toMatchObject({ position: 1 });
      proxy.silence();
      await append(one, step(2));
      expect((await iterator.next()).value).toMatchObject({ position: 2 });
      await vi.waitFor(() => expect(connectionStates.slice(0, 2)).toEqual([false, true]), { timeout: 60_000 });
      subscription.close();
      expect(await iterator.next()).toMatchObject({ done: true });
    } finally {
      proxy.close();
    }
  });

  test("answer a ping, even if the reader acknowledges nothing", async () => {
    const socket = rawSocket(server(), "/v1/stream", { as: await token("read") });
    await append(one, step(1), step(2));
    await socket.send({ type: "subscribe", windowEvents: 1 });
    await socket.message("events");
    await socket.send({ type: "ping" });
    await socket.message("pong");
    socket.ws.terminate();
  });

  test("continue after the station restarts", async () => {
    const { port } = server();
    const { streams } = await client();
    const subscription = await streams.subscribe();
    await append(one, step(1));
    const iterator = subscription[Symbol.asyncIterator]();
    expect((await iterator.next()).value).toMatchObject({ position: 1 });
    await server().close();
    await append(one, step(2));
    await using _again = await start({ port } as never);
    await append(one, step(3));
    expect((await iterator.next()).value).toMatchObject({ position: 2 });
    expect((await iterator.next()).value).toMatchObject({ position: 3 });
    subscription.close();
  });

  test("start at the end, or after a position", async () => {
    await append(one, step(1), step(2), step(3));
    const { streams, runs } = await client();
    expect(await runs.lastPosition()).toBe(3);
    const after = await streams.subscribe({ afterPosition: 2 });
    expect(positions(await take(after, 1))).toEqual([3]);
    after.close();
    const end = await streams.subscribe({ afterPosition: "end" });
    expect(end.position()).toBe(3);
    await append(one, step(4));
    expect(positions(await take(end, 1))).toEqual([4]);
    end.close();
  });

  test("wait for a reader that stalls without slowing others down", async () => {
    const as = await token("read");
    const stalled = rawSocket(server(), "/v1/stream", { as });
    await stalled.send({ type: "subscribe", windowEvents: 100 });
    await stalled.message("subscribed");
    const { streams } = await client();
    const other = await streams.subscribe();
    const total = 6_000;
    const reading = take(other, total);
    for (let n = 0; n < total; n += 500) await append(one, ...Array.from({ length: 500 }, (_, at) => step(at + 1)));
    expect(positions(await reading).at(-1)).toBe(total);
    const got = () => stalled.messages.flatMap((message) => (message.events as StreamedEvent[] | undefined) ?? []);
    expect(got()).toHaveLength(100);
    // The reader is further behind than the shared tail, and gets the rest from the log.
    for (let takenCount = 100; takenCount < total; takenCount = got().length) {
      await stalled.send({ type: "taken", events: takenCount });
      await vi.waitFor(() => expect(got().length).toBeGreaterThan(takenCount), { timeout: 60_000 });
    }
    expect(positions(got())).toEqual(Array.from({ length: total }, (_, at) => at + 1));
    stalled.ws.terminate();
    other.close();
  });
});
