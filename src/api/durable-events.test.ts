import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { useServer } from "../../test/support/api-station.ts";
import { type Client, connect } from "../client/connect.ts";
import type { EventFilter, StreamedEvent } from "../contract/api/streams.ts";
import { JobKind } from "../contract/durable/durable-kinds.ts";
import type { FedEvent, FedJobEvent } from "../contract/feed/fed-event.ts";
import type { Log } from "../log/log.ts";
import { createSqliteLog } from "../log/sqlite/log.ts";
import { cuttingProxy } from "./streams/testing-streams.ts";
import { goldenEvent, putThing } from "./testing-durable.ts";

const { server, token, base, ask, defects } = useServer();
let log: Log;
beforeEach(() => {
  log = createSqliteLog({ path: join(base(), "state", "log.db") });
});
afterEach(() => log[Symbol.asyncDispose]());

const clientOf = async (owner?: string, url = server().status.url): Promise<Client> =>
  connect({ url, token: await token("run", owner === undefined ? {} : { owner }) });

const asking = { definition: { name: "ask", steps: [{ name: "sure", kind: "approval", text: "Are you sure?" }] } };
/** The complete log of a workflow with one question that was answered. */
const life = [
  "driven.created",
  "workflow.defined",
  "workflow.step_started",
  "driven.waiting",
  "workflow.answered",
  "workflow.step_ended",
  "driven.ended",
];

async function take(events: AsyncIterable<StreamedEvent>, until: (event: StreamedEvent) => boolean): Promise<StreamedEvent[]> {
  const takenEvents: StreamedEvent[] = [];
  for await (const event of events) {
    takenEvents.push(event);
    if (until(event)) break;
  }
  return takenEvents;
}
const isEnd = ({ event }: { event: { type: string } | null }) => event?.type === "driven.ended";
const typesOf = (events: readonly { event: { type: string } | null }[]) => events.map(({ event }) => event?.type);

describe("the events of a workflow", () => {
  test("reach all followers once and in order, even over broken connections", async () => {
    const proxy = await cuttingProxy(server());
    try {
      const client = await clientOf();
      const byProxy = await clientOf(undefined, proxy.url);
      const subscription = await byProxy.streams.subscribe({ afterPosition: 0, filter: { entityKinds: ["workflow"] } });
      const byStream: StreamedEvent[] = [];
      const streaming = take(subscription, (event) => {
        byStream.push(event);
        // Breaks the connection after each event.
        proxy.cut();
        return isEnd(event);
      });
      const bySse = (async () => {
        const seen: FedEvent[] = [];
        for await (const fed of byProxy.runs.allEvents({ entityKinds: ["workflow"] })) {
          seen.push(fed);
          if (isEnd(fed)) break;
        }
        return seen;
      })();
      const { id } = await client.workflows.start(asking);
      await client.workflows.wait(id, { orPerson: true });
      await client.workflows.approve(id, { approved: true });
      await streaming;
      expect(typesOf(byStream)).toEqual(life);
      expect(new Set(byStream.map(({ entity }) => `${entity.kind} ${entity.id}`))).toEqual(new Set([`workflow ${id}`]));
      expect(byStream.map(({ seq }) => seq)).toEqual(life.map((_, at) => at + 1));
      const seen = (await bySse) as FedJobEvent[];
      expect(seen.map(({ driven, owner, seq, position }) => [driven, owner, seq, position])).toEqual(
        byStream.map(({ entity, seq, position }) => [entity, "local", seq, position]),
      );
      expect(typesOf(seen)).toEqual(life);
      subscription.close();
    } finally {
      proxy.close();
    }
    expect(defects).toEqual([]);
  });
});

describe("events of durable jobs", () => {
  test.each(JobKind.options)("of kind %s reach only their owner", async (kind) => {
    const anns = await putThing(log, kind, "ann");
    const bens = await putThing(log, kind, "ben");
    const end = { type: "driven.ended", version: 1, data: { finish: "completed", text: null } };
    // This is the last event, so a client that has it received all earlier ones.
    for (const [owner, id] of [["ann", anns] as const, ["ben", bens] as const]) {
      await log.append(`${kind}/${id}`, [end]);
      const last = await putThing(log, "merge", owner, [goldenEvent("merge.failed.1")]);
      const client = await clientOf(owner);
      const subscription = await client.streams.subscribe({ afterPosition: 0 });
      const seen = await take(subscription, ({ entity, event }) => entity.id === last && event?.type === "merge.failed");
      subscription.close();
      expect(new Set(seen.map(({ entity }) => entity.id))).toEqual(new Set([id, last]));
      expect(seen.filter(({ entity }) => entity.id === id)).toMatchObject([
        { entity: { kind, id }, seq: 1, event: { data: { owner } } },
        { seq: 2, damage: null },
        { seq: 3, event: { type: "driven.ended" } },
      ]);
    }
    const admin = connect({ url: server().status.url, token: await token("admin") });
    const all = await admin.streams.subscribe({ afterPosition: 0, filter: { types: ["driven.created"] } });
    const owners = await take(all, ({ entity }) => entity.id === bens);
    expect(owners.map(({ entity }) => entity.id)).toEqual([anns, bens]);
    all.close();
  });

  test("are filtered by kind, id and type", async () => {
    const ids: Record<string, string> = {};
    for (const kind of JobKind.options) ids[kind] = await putThing(log, kind, "local");
    const last = await putThing(log, "ship", "local", [goldenEvent("ship.step_started.1")]);
    const { streams } = await clientOf();
    const listEvents = async (filter: EventFilter) => {
      const subscription = await streams.subscribe({ afterPosition: 0, filter });
      const seen = await take(subscription, ({ entity, event }) => entity.id === last && event?.type === "ship.step_started");
      subscription.close();
      return seen.map(({ entity, seq }) => `${entity.id} ${seq}`);
    };
    const { workflow, spec, ship } = ids;
    const lasts = [`${last} 1`, `${last} 2`, `${last} 3`];
    expect(await listEvents({ entityKinds: ["spec", "ship"] })).toEqual([`${spec} 1`, `${spec} 2`, `${ship} 1`, `${ship} 2`, ...lasts]);
    expect(await listEvents({ entityIds: [workflow ?? "", last] })).toEqual([`${workflow} 1`, `${workflow} 2`, ...lasts]);
    expect(await listEvents({ types: ["workflow.*", "ship.step_started"] })).toEqual([`${workflow} 2`, `${last} 3`]);
    const bad = await ask("/v1/events?entityKinds=nothing");
    expect(bad.status).toBe(400);
  });

  test("are reported as damaged if unreadable, without hiding the others", async () => {
    const id = await putThing(log, "spec", "ann", [{ type: "spec.of_tomorrow", version: 1, data: {} }]);
    await log.append("ship/ship_aaaaaaaaaaaa", [{ type: "ship.of_tomorrow", version: 1, data: {} }]);
    const last = await putThing(log, "merge", "ann");
    const seen = async (owner: string) => {
      const subscription = await (await clientOf(owner)).streams.subscribe({ afterPosition: 0 });
      const events = await take(subscription, ({ entity, seq }) => entity.kind === "merge" && seq === 2);
      subscription.close();
      return events;
    };
    const anns = await seen("ann");
    expect(anns.map(({ entity, seq }) => [entity.id, seq])).toEqual([
      [id, 1],
      [id, 2],
      [id, 3],
      [last, 1],
      [last, 2],
    ]);
    expect(anns[2]).toMatchObject({ event: null, damage: expect.stringContaining("spec.of_tomorrow") });
    const locals = await putThing(log, "merge", "local");
    // Here `local` is an owner like any other; only the machine's own user sees everything.
    expect((await seen("local")).map(({ entity }) => entity.id)).toEqual([locals, locals]);
  });
});
