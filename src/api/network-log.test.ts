import { join } from "node:path";
import { expect, test } from "vitest";
import { useServer } from "../../test/support/api-station.ts";
import { connect } from "../client/connect.ts";
import { SecretRevoked } from "../contract/network/network-event.ts";
import { openNetworkLog } from "../network/sandbox-network/network-log.ts";

const { server, token, ask, base, station } = useServer();

/** Creates a sandbox with this many events in its network log, which has room for about eighty. */
async function withEvents(count: number) {
  const as = await token("run");
  const client = connect({ url: server().status.url, token: as });
  const { id } = await client.sandboxes.create({ spec: { name: "box" } });
  const log = openNetworkLog(join(base(), "state", "sandboxes", id));
  const write = (from: number, to: number) => {
    for (let number = from; number <= to; number++)
      log.append(SecretRevoked.make({ sandbox: id, secret: "x".repeat(100_000), by: `${number}` }));
  };
  write(1, count);
  return { as, id, networks: client.networks, write };
}

async function numbersOf(events: AsyncIterable<{ seq: number; data: object }>): Promise<number[]> {
  const seen: number[] = [];
  for await (const { seq, data } of events) {
    expect(data).toMatchObject({ by: `${seq}` });
    seen.push(seq);
  }
  return seen;
}

const upTo = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => from + at);

test("a network log keeps its event numbers when its oldest entries are dropped", async () => {
  const { as, id, networks } = await withEvents(150);
  const all = await numbersOf(networks.log(id));
  expect(all.length).toBeLessThan(150);
  expect(all).toEqual(upTo(150 - all.length + 1, 150));
  expect(await numbersOf(networks.log("box", { fromSeq: 149 }))).toEqual([149, 150]);
  expect(await numbersOf(station().networks.log("box", { fromSeq: 149 }))).toEqual([149, 150]);
  const page = await (await ask(`/v1/sandboxes/${id}/network/log?fromSeq=145&limit=2`, { as })).json();
  expect(page).toMatchObject({ events: [{ seq: 145 }, { seq: 146 }], next: 147 });
});

test("a follower that reconnects continues after its last event", async () => {
  const { as, id, write } = await withEvents(3);
  const follow = async (headers: Record<string, string>, enough: number) => {
    const ends = new AbortController();
    const { body } = await ask(`/v1/sandboxes/${id}/network/log`, {
      as,
      headers: { accept: "text/event-stream", ...headers },
      signal: ends.signal,
    });
    const ids: number[] = [];
    let rest = "";
    for await (const piece of body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const lines = (rest + piece).split("\n");
      rest = lines.pop() ?? "";
      ids.push(...lines.flatMap((line) => (line.startsWith("id: ") ? [Number(line.slice(4))] : [])));
      if (ids.length >= enough) break;
    }
    ends.abort();
    return ids;
  };
  expect(await follow({}, 3)).toEqual([1, 2, 3]);
  // The older log file is dropped with events already sent; all later ones remain.
  write(4, 90);
  const ids = await follow({ "last-event-id": "60" }, 30);
  expect(ids).toEqual(upTo(61, 90));
});
