import { once } from "node:events";
import { buffer } from "node:stream/consumers";
import { describe, expect, test } from "vitest";
import { type ScriptedPeer, useScriptedGuest } from "../../../test/support/scripted-guest.ts";
import type { InboundConnection } from "../sandbox.ts";
import type { GuestConnection } from "./connection.ts";
import { answers, decodeFields, encodeFields, shapes } from "./fields.ts";
import { encodeFrame } from "./frame.ts";

const PORT = 19_080;

let connection: GuestConnection;
let peer: ScriptedPeer;
useScriptedGuest((each) => {
  ({ connection, peer } = each);
});

const accept = (stream: number, port = PORT) => peer.sendFields("ACCEPTED", stream, shapes.ACCEPTED, { port });

/** Serves a port and answers as the guest would. Returns the claim, its stream, and the connections that arrive. */
async function serve(port = PORT, onConnection: (connection: InboundConnection) => void = () => {}) {
  const came: InboundConnection[] = [];
  const serving = connection.serve(port, (each) => {
    came.push(each);
    onConnection(each);
  });
  const request = await peer.next("LISTEN");
  expect(decodeFields("LISTEN", shapes.LISTEN, request.payload)).toMatchObject({ port });
  peer.sendFields("OK", request.stream, answers.nothing, {});
  return { ...(await serving), stream: request.stream, came };
}

const u32 = (value: number) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32LE(value);
  return bytes;
};

/** Resolves when the client has handled everything that the peer has sent. */
async function settled(): Promise<void> {
  const pong = connection.ping({ timeoutMs: 60_000 });
  const ping = await peer.next("PING");
  peer.send("PONG", ping.stream, ping.payload);
  await pong;
}

describe("a served port", () => {
  test("passes on each connection with its bytes, both ways and half-closed", async () => {
    const { came } = await serve();
    accept(2);
    peer.send("DATA", 2, Buffer.from("question"));
    peer.send("END", 2);
    await settled();
    const inbound = came[0] as InboundConnection;
    expect(inbound.destination).toBeNull();
    expect((await buffer(inbound.stream)).toString()).toBe("question");
    inbound.stream.end("answer");
    expect(await peer.next("DATA")).toMatchObject({ stream: 2, payload: Buffer.from("answer") });
    expect(await peer.next("END")).toMatchObject({ stream: 2 });
    expect(peer.seen.some(({ type }) => type === "CANCEL")).toBe(false);
  });

  test("accepts a connection that arrives together with the OK", async () => {
    const came: InboundConnection[] = [];
    const serving = connection.serve(PORT, (each) => came.push(each));
    const { stream } = await peer.next("LISTEN");
    peer.socket.write(Buffer.concat([encodeFrame("OK", stream), encodeFields("ACCEPTED", 2, shapes.ACCEPTED, { port: PORT })]));
    await serving;
    expect(came).toHaveLength(1);
  });

  test("waits for the guest's credit, and grants credit for bytes that were read", async () => {
    const { came } = await serve();
    accept(2);
    await settled();
    const { stream } = came[0] as InboundConnection;
    let written = false;
    stream.write(Buffer.alloc(100_000), () => {
      written = true;
    });
    let sent = 0;
    while (sent < 65_536) sent += (await peer.next("DATA")).payload.length;
    await settled();
    expect({ sent, written }).toEqual({ sent: 65_536, written: false });
    peer.send("CREDIT", 2, u32(500_000));
    while (sent < 100_000) sent += (await peer.next("DATA")).payload.length;
    peer.send("DATA", 2, Buffer.alloc(65_536));
    await settled();
    expect(peer.seen.filter(({ type }) => type === "CREDIT")).toHaveLength(0);
    // A connection that is read gets the full window.
    stream.resume();
    expect((await peer.next("CREDIT")).payload.readUInt32LE(0)).toBe(1_048_576);
    for (let at = 0; at < 4; at++) peer.send("DATA", 2, Buffer.alloc(262_144));
    let granted = 0;
    while (granted < 786_432) granted += (await peer.next("CREDIT")).payload.readUInt32LE(0);
  });

  test("limits how many connections have the full window at the same time", async () => {
    const { came } = await serve();
    const read = (id: number) => {
      accept(id);
      peer.send("DATA", id, Buffer.alloc(65_536));
    };
    for (let i = 1; i <= 33; i++) read(2 * i);
    await settled();
    for (const { stream } of came) stream.resume();
    const credits: number[] = [];
    while (credits.length < 33) credits.push((await peer.next("CREDIT")).payload.readUInt32LE(0));
    expect(credits.filter((bytes) => bytes > 65_536)).toHaveLength(32);
    came[0]?.stream.destroy();
    await peer.next("CANCEL");
    read(100);
    await settled();
    came.at(-1)?.stream.resume();
    expect((await peer.next("CREDIT")).payload.readUInt32LE(0)).toBe(1_048_576);
  });

  test("cancels a destroyed connection and ignores its late frames", async () => {
    const { came } = await serve();
    accept(2);
    await settled();
    came[0]?.stream.destroy();
    expect(await peer.next("CANCEL")).toMatchObject({ stream: 2 });
    peer.send("DATA", 2, Buffer.from("late"));
    peer.send("END", 2);
    await settled();
  });

  test("destroys a connection that breaks inside, even without a listener", async () => {
    const { came } = await serve();
    accept(2);
    peer.sendFields("ERROR", 2, shapes.ERROR, { code: 11, message: "reset" });
    await settled();
    expect(came[0]?.stream.destroyed).toBe(true);
    expect(peer.seen.some(({ type }) => type === "CANCEL")).toBe(false);
  });

  test("cancels only the connection whose handler throws", async () => {
    await serve(PORT, () => {
      throw new Error("handler");
    });
    const warned = once(process, "warning");
    accept(2);
    expect(await peer.next("CANCEL")).toMatchObject({ stream: 2 });
    expect(String(await warned)).toContain("handler");
    await settled();
  });

  test("rejects with conflict if a program has the port", async () => {
    const serving = connection.serve(PORT, () => {});
    const { stream } = await peer.next("LISTEN");
    peer.sendFields("ERROR", stream, shapes.ERROR, { code: 3, message: "in use" });
    await expect(serving).rejects.toMatchObject({ code: "conflict" });
  });

  test("passes connections to the newest claim, and to the older one after it closes", async () => {
    const first = await serve();
    const second = await serve();
    accept(2);
    await settled();
    second.close();
    expect(await peer.next("CANCEL")).toMatchObject({ stream: second.stream });
    accept(4);
    await settled();
    expect([first.came.length, second.came.length]).toEqual([1, 1]);
  });

  test("destroys its connections when the guest is lost, and can still be closed", async () => {
    const { close, came } = await serve();
    accept(2);
    await settled();
    const { stream } = came[0] as InboundConnection;
    peer.socket.destroy();
    await expect(once(stream, "data")).rejects.toMatchObject({ code: "lost" });
    close();
  });

  test("cancels connections that crossed with the close, up to a limit", async () => {
    const { close, stream, came } = await serve();
    close();
    expect(await peer.next("CANCEL")).toMatchObject({ stream });
    for (let i = 1; i <= 2_048; i++) accept(2 * i);
    for (let i = 1; i <= 2_048; i++) expect(await peer.next("CANCEL")).toMatchObject({ stream: 2 * i });
    expect(came).toHaveLength(0);
    accept(5_000);
    expect(await connection.closed).toMatchObject({ code: "protocol" });
  });
});

describe("a guest that opens an illegal stream", () => {
  const lies: Record<string, () => void> = {
    "a stream for a port that is not served": () => accept(2, 80),
    "an odd stream": () => accept(3),
    "stream 0": () => accept(0),
    "a stream that is open": () => {
      accept(2);
      accept(2);
    },
    "a stream that was cancelled": () => {
      accept(2);
      peer.sendFields("ACCEPTED", 2, shapes.ACCEPTED, { port: PORT });
    },
    "an answer on an even stream that is not open": () => peer.send("OK", 2),
    "an answer on a stream it opened": () => {
      accept(2);
      peer.send("OK", 2);
    },
    "data on an even stream that is not open": () => peer.send("DATA", 2, Buffer.from("x")),
    "ACCEPTED without a port": () => peer.send("ACCEPTED", 2),
    "an unrequested address": () => peer.sendFields("ACCEPTED", 2, shapes.ACCEPTED, { port: PORT, address: "::1", addressPort: 1 }),
    "data after the end": () => {
      accept(2);
      peer.send("END", 2);
      peer.send("DATA", 2, Buffer.from("x"));
    },
    "more data than the window": () => {
      accept(2);
      peer.send("DATA", 2, Buffer.alloc(65_537));
    },
    "a stream too many": () => {
      for (let i = 1; i <= 2_049; i++) accept(2 * i);
    },
  };
  test.each(Object.entries(lies))("%s ends the connection with a protocol error", async (_name, lie) => {
    const { came } = await serve();
    lie();
    expect(await connection.closed).toMatchObject({ code: "protocol" });
    for (const { stream } of came) expect(stream.destroyed).toBe(true);
    expect(came.length).toBeLessThanOrEqual(2_048);
  });

  test("a second answer to a claim ends the connection", async () => {
    const { stream } = await serve();
    peer.send("OK", stream);
    expect(await connection.closed).toMatchObject({ code: "protocol" });
  });

  test("a stream for a port ends the connection if nothing is served", async () => {
    accept(2);
    expect(await connection.closed).toMatchObject({ code: "protocol" });
  });
});
