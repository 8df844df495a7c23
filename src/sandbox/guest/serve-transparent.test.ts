import { describe, expect, test } from "vitest";
import { type ScriptedPeer, useScriptedGuest } from "../../../test/support/scripted-guest.ts";
import type { InboundConnection } from "../sandbox.ts";
import type { GuestConnection } from "./connection.ts";
import { answers, decodeFields, shapes } from "./fields.ts";
import { decodeDatagram, encodeDatagram } from "./raw.ts";

let connection: GuestConnection;
let peer: ScriptedPeer;
useScriptedGuest((each) => {
  ({ connection, peer } = each);
});

/** Resolves when the client has handled everything that the peer has sent. */
async function settled(): Promise<void> {
  const pong = connection.ping({ timeoutMs: 60_000 });
  const ping = await peer.next("PING");
  peer.send("PONG", ping.stream, ping.payload);
  await pong;
}

describe("serving every address", () => {
  /** Serves ports and answers as the guest would. Returns each claim's stream by its scope and port. */
  async function serveAll(ports: readonly number[], onDatagram: (question: Buffer) => Buffer | null | Promise<Buffer | null> = () => null) {
    const came: InboundConnection[] = [];
    const streams = new Map<string, number>();
    const serving = connection.serveTransparent({ ports, onConnection: (each) => came.push(each), onDatagram });
    for (let i = 0; i <= ports.length; i++) {
      const request = await peer.next("LISTEN");
      const { port, scope } = decodeFields("LISTEN", shapes.LISTEN, request.payload);
      streams.set(`${scope} ${port}`, request.stream);
      peer.sendFields("OK", request.stream, answers.nothing, {});
    }
    return { ...(await serving), came, streams };
  }
  const acceptFor = (stream: number, port: number, address: string, addressPort = port) =>
    peer.sendFields("ACCEPTED", stream, shapes.ACCEPTED, { port, address, addressPort });

  test("reports each connection's destination", async () => {
    const { came, streams, close } = await serveAll([80, 443]);
    expect([...streams.keys()].sort()).toEqual(["1 443", "1 80", "2 53"]);
    acceptFor(2, 80, "93.184.216.34");
    acceptFor(4, 443, "2001:db8::1");
    await settled();
    expect(came.map(({ destination }) => destination)).toEqual([
      { address: "93.184.216.34", port: 80 },
      { address: "2001:db8::1", port: 443 },
    ]);
    close();
    const cancelledStreams = [await peer.next("CANCEL"), await peer.next("CANCEL"), await peer.next("CANCEL")].map(({ stream }) => stream);
    expect(cancelledStreams.sort()).toEqual([...streams.values()].sort());
  });

  test("claims all ports or none", async () => {
    const serving = connection.serveTransparent({ ports: [80, 443], onConnection: () => {}, onDatagram: () => null });
    const [first, second, third] = [await peer.next("LISTEN"), await peer.next("LISTEN"), await peer.next("LISTEN")];
    peer.sendFields("OK", first.stream, answers.nothing, {});
    peer.sendFields("ERROR", second.stream, shapes.ERROR, { code: 3, message: "in use" });
    peer.sendFields("OK", third.stream, answers.nothing, {});
    await expect(serving).rejects.toMatchObject({ code: "conflict" });
    expect([(await peer.next("CANCEL")).stream, (await peer.next("CANCEL")).stream]).toEqual([first.stream, third.stream]);
  });

  test("answers every datagram, even late or with nothing", async () => {
    const later = Promise.withResolvers<Buffer | null>();
    const { streams } = await serveAll([], (question) => {
      if (question.toString() === "later") return later.promise;
      if (question.toString() === "throws") throw new Error("handler");
      return question.toString() === "none" ? null : Buffer.from(`re: ${question}`);
    });
    const stream = streams.get("2 53") as number;
    const ask = (token: number, words: string) =>
      peer.send("DATAGRAM", stream, encodeDatagram(stream, token, Buffer.from(words)).subarray(12));
    for (const [token, words] of ["later", "now", "none", "throws"].entries()) ask(token, words);
    const answered = async () => {
      const { token, data } = decodeDatagram((await peer.next("DATAGRAM")).payload);
      return [token, data.toString()];
    };
    expect([await answered(), await answered(), await answered()]).toEqual([
      [1, "re: now"],
      [2, ""],
      [3, ""],
    ]);
    later.reject(new Error("late"));
    expect(await answered()).toEqual([0, ""]);
  });

  test("answers with nothing if too many questions are waiting", async () => {
    const { streams } = await serveAll([], () => new Promise(() => {}));
    const stream = streams.get("2 53") as number;
    for (let token = 0; token < 300; token++) peer.send("DATAGRAM", stream, encodeDatagram(stream, token, Buffer.from("?")).subarray(12));
    const tokens: number[] = [];
    for (let i = 0; i < 44; i++) tokens.push(decodeDatagram((await peer.next("DATAGRAM")).payload).token);
    expect(tokens[0]).toBe(256);
  });

  const lies: Record<string, (streams: Map<string, number>) => void> = {
    "a connection without a destination": () => peer.sendFields("ACCEPTED", 2, shapes.ACCEPTED, { port: 80 }),
    "a destination that is not an address": () => acceptFor(2, 80, "example.com"),
    "an address with a zone": () => acceptFor(2, 80, "fe80::1%eth0"),
    "another port than the one it listens on": () => acceptFor(2, 80, "192.0.2.1", 443),
    "a datagram without a token": (streams) => peer.send("DATAGRAM", streams.get("2 53") as number, Buffer.alloc(3)),
    "a datagram on a claim for connections": (streams) => peer.send("DATAGRAM", streams.get("1 80") as number, Buffer.alloc(8)),
    "a datagram on no claim": () => peer.send("DATAGRAM", 2, Buffer.alloc(8)),
  };
  test.each(Object.entries(lies))("%s ends the connection with a protocol error", async (_name, lie) => {
    const { streams, came } = await serveAll([80]);
    lie(streams);
    expect(await connection.closed).toMatchObject({ code: "protocol" });
    expect(came).toHaveLength(0);
  });
});
