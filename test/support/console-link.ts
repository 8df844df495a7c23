import { once } from "node:events";
import { connect, createServer, type Socket } from "node:net";

/** A proxy for the station's port. It can cut connections, and silence streams without closing them. */
export async function breakableLink(stationUrl: string) {
  const target = new URL(stationUrl);
  const pairs = new Set<{ client: Socket; station: Socket; isStream: boolean }>();
  let isCut = false;
  let held: (() => void)[] | null = null;
  const server = createServer((client) => {
    if (isCut) return void client.destroy();
    const station = connect(Number(target.port), target.hostname);
    const pair = { client, station, isStream: false };
    pairs.add(pair);
    for (const [one, other] of [
      [client, station],
      [station, client],
    ] as const) {
      one.on("error", () => {});
      one.once("close", () => {
        pairs.delete(pair);
        other.destroy();
      });
    }
    client.once("data", (head: Buffer) => {
      pair.isStream = /^upgrade: websocket/im.test(head.toString("latin1"));
      client.pause();
      const begin = () => {
        station.write(head);
        client.pipe(station).pipe(client);
      };
      if (pair.isStream && held !== null) held.push(begin);
      else begin();
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  const port = typeof address === "object" ? address?.port : null;
  return {
    url: `http://127.0.0.1:${port}`,
    cut() {
      isCut = true;
      for (const { client, station } of pairs) {
        client.destroy();
        station.destroy();
      }
    },
    mend() {
      isCut = false;
    },
    /** Holds back new WebSockets until the returned function is called. */
    holdStreams(): () => void {
      const waiting: (() => void)[] = [];
      held = waiting;
      return () => {
        held = null;
        for (const begin of waiting.splice(0)) begin();
      };
    },
    /** Acts like a router that has forgotten the connections: existing WebSockets stay open, and no data passes. */
    silenceStreams() {
      for (const { client, station, isStream } of pairs) {
        if (!isStream) continue;
        client.unpipe(station).pause();
        station.unpipe(client).pause();
      }
    },
    async [Symbol.asyncDispose]() {
      for (const { client } of pairs) client.destroy();
      server.close();
    },
  };
}
