import { describe, expect, test } from "vitest";
import { useServer } from "../../test/support/api-station.ts";
import { connect } from "../client/connect.ts";
import type { StreamedEvent } from "../contract/api/streams.ts";
import type { FedEvent } from "../contract/feed/fed-event.ts";
import { cuttingProxy, rawSocket } from "./streams/testing-streams.ts";

const { server, token, ask, post, endedRun, insideToken, defects } = useServer({ chronicles: true });
const clientOf = async (owner?: string, url = server().status.url) =>
  connect({ url, token: await token("run", owner === undefined ? {} : { owner }) });

/** Collects events in order, up to the first of this type. */
async function until(events: AsyncIterable<FedEvent>, type: string): Promise<FedEvent[]> {
  const seen: FedEvent[] = [];
  for await (const fed of events) {
    seen.push(fed);
    if (fed.event?.type === type) break;
  }
  return seen;
}
const typesOf = (events: readonly FedEvent[]) => events.filter((fed) => "sandbox" in fed).map(({ event }) => event?.type);

async function wholeLife(as: string): Promise<string> {
  const { id } = (await (await post("/v1/sandboxes", { spec: { name: "box" } }, { as })).json()) as { id: string };
  await ask(`/v1/sandboxes/${id}`, { as, method: "DELETE" });
  return id;
}

const life = ["sandbox.created", "sandbox.ended"];

describe("the events of a sandbox", () => {
  test("are logged once and in order, and reach followers of all events", async () => {
    const as = await token("run");
    const client = connect({ url: server().status.url, token: as });
    const following = until(client.runs.allEvents(), "sandbox.ended");
    const id = await wholeLife(as);
    const seen = await following;
    expect(typesOf(seen)).toEqual(life);
    expect(seen[0]).toMatchObject({ sandbox: id, owner: "local", seq: 1, event: { data: { sandbox: id, owner: "local", name: "box" } } });
    const socket = rawSocket(server(), "/v1/stream", { as });
    await socket.send({ type: "subscribe", afterPosition: 0, filter: { entityKinds: ["sandbox"], types: ["sandbox.*"] } });
    const events = () => socket.messages.flatMap((each) => (each.type === "events" ? (each.events as StreamedEvent[]) : []));
    await expect.poll(() => events().map(({ event }) => event?.type), { timeout: 60_000 }).toEqual(life);
    expect(events()[0]?.entity).toEqual({ kind: "sandbox", id });
    socket.ws.close();
    expect(defects).toEqual([]);
  });

  test("can be followed to the end and resumed, even after its removal", async () => {
    const as = await token("run");
    const { id } = (await (await post("/v1/sandboxes", {}, { as })).json()) as { id: string };
    const proxy = await cuttingProxy(server());
    try {
      const { inside } = connect({ url: proxy.url, token: as });
      const seqs: number[] = [];
      const types: string[] = [];
      for await (const { seq, type } of inside.follow(id)) {
        seqs.push(seq);
        types.push(type);
        if (type === "sandbox.created") {
          proxy.cut();
          await post("/v1/inside/events", { type: "hello" }, { as: insideToken(id) });
          proxy.cut();
          await ask(`/v1/sandboxes/${id}`, { as, method: "DELETE" });
        }
      }
      expect(types).toEqual(["sandbox.created", "sandbox.reported", "sandbox.ended"]);
      expect(seqs).toEqual([1, 2, 3]);
      const rest = await ask(`/v1/sandboxes/${id}/events`, { as, headers: { accept: "text/event-stream", "last-event-id": "2" } });
      expect((await rest.text()).match(/^id: \d+$/gm)).toEqual(["id: 3"]);
      const page = (await (await ask(`/v1/sandboxes/${id}/events?fromSeq=2`, { as })).json()) as { events: { seq: number }[] };
      expect(page.events.map(({ seq }) => seq)).toEqual([2, 3]);
    } finally {
      proxy.close();
    }
  });

  test("are hidden from other owners, during its life and after its end", async () => {
    const ann = await token("run", { owner: "ann" });
    const ben = await token("run", { owner: "ben" });
    const [admin, benSees] = [await token("admin"), await clientOf("ben")];
    const bens = until(benSees.runs.allEvents(), "sandbox.ended");
    const { id } = (await (await post("/v1/sandboxes", {}, { as: ann })).json()) as { id: string };
    const statuses = async () =>
      Promise.all(
        [ann, ben, admin].map(
          async (as) => (await ask(`/v1/sandboxes/${id}/events`, { as, headers: { accept: "application/json" } })).status,
        ),
      );
    await expect.poll(statuses, { timeout: 60_000 }).toEqual([200, 404, 200]);
    await ask(`/v1/sandboxes/${id}`, { as: ann, method: "DELETE" });
    expect(await statuses()).toEqual([200, 404, 200]);
    const socket = rawSocket(server(), "/v1/stream", { as: ben });
    await socket.send({ type: "subscribe", afterPosition: 0 });
    const own = await wholeLife(ben);
    expect(new Set((await bens).map((fed) => ("sandbox" in fed ? fed.sandbox : "run" in fed ? fed.run : fed.driven.id)))).toEqual(
      new Set([own]),
    );
    const readEvents = () => socket.messages.flatMap((each) => (each.type === "events" ? (each.events as StreamedEvent[]) : []));
    await expect.poll(() => readEvents().map(({ event }) => event?.type), { timeout: 60_000 }).toEqual(life);
    expect(readEvents().map(({ entity }) => entity.id)).toEqual([own, own]);
    socket.ws.close();
  });

  test("are recorded even for the sandbox of a run", async () => {
    const client = await clientOf();
    const following = until(client.runs.allEvents(), "sandbox.ended");
    const run = await endedRun();
    const [created] = (await following).filter(({ event }) => event?.type === "sandbox.created");
    expect(created).toMatchObject({ owner: "local", event: { data: { run } } });
  });
});
