import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { FRAME_BYTES_MAX } from "../contract/api/stream-paths.ts";
import { unixWebSockets } from "./unix-web-socket.ts";

let base = "";
let server: Server;
let arrived: Promise<Socket>;
beforeEach(async () => {
  base = mkdtempSync(join(tmpdir(), "caisson-test-unix-"));
  const { promise, resolve } = Promise.withResolvers<Socket>();
  arrived = promise;
  server = createServer(resolve).listen(join(base, "socket"));
  await once(server, "listening");
});
afterEach(() => {
  server.close();
  rmSync(base, { recursive: true, force: true });
});

/** Opens a socket, and returns it with what it received and with its peer, which has read the request. */
async function open(answer = "HTTP/1.1 101 Switching Protocols\r\n\r\n") {
  const socket = unixWebSockets(join(base, "socket"))("ws://station/v1/stream?a=1", { protocol: "caisson.v1", token: undefined });
  const events: unknown[] = [];
  const closed = Promise.withResolvers<number>();
  socket.onopen = () => events.push("open");
  socket.onmessage = ({ data }: { data: string | ArrayBuffer }) => events.push(typeof data === "string" ? data : [...new Uint8Array(data)]);
  socket.onerror = () => events.push("error");
  socket.onclose = ({ code }: { code: number }) => closed.resolve(code);
  const peer = await arrived;
  peer.on("error", () => {});
  const [request] = (await once(peer, "data")) as [Buffer];
  peer.write(answer);
  /** Returns the next bytes that the client sends, at least this many. */
  const sent = async (bytes: number): Promise<Buffer> => {
    let data = Buffer.alloc(0);
    while (data.length < bytes) data = Buffer.concat([data, ...((await once(peer, "data")) as [Buffer])]);
    return data;
  };
  return { socket, heard: events, closed: closed.promise, peer, request: request.toString(), sent };
}

const frame = (first: number, data: Uint8Array | number[] | string): Buffer => {
  const bytes = typeof data === "string" ? Buffer.from(data) : Buffer.from(data);
  const head = bytes.length < 126 ? [first, bytes.length] : [first, 126, bytes.length >> 8, bytes.length & 255];
  return Buffer.concat([Buffer.from(head), bytes]);
};
const text = (data: string) => frame(0x81, data);

describe("a WebSocket over a Unix socket", () => {
  test("sends a correct request, and reads frames however they are split", async () => {
    const { heard: events, peer, request, closed } = await open();
    expect(request).toMatch(/^GET \/v1\/stream\?a=1 HTTP\/1\.1\r\n/);
    expect(request).toContain("Sec-WebSocket-Protocol: caisson.v1\r\n");
    const long = "é".repeat(300);
    const all = Buffer.concat([
      text("one"),
      frame(0x82, [0, 255]),
      frame(0x01, "in "),
      frame(0x80, "parts"),
      text(long),
      frame(0x88, [3, 0xe8]),
    ]);
    for (const byte of all) peer.write(Buffer.from([byte]));
    expect(await closed).toBe(1000);
    expect(events).toEqual(["open", "one", [0, 255], "in parts", long]);
  });

  test("answers pings, masks what it sends, and closes with the given code", async () => {
    const { socket, peer, sent, closed, heard: events } = await open();
    peer.write(frame(0x89, "hi"));
    expect([...(await sent(8))]).toEqual([0x8a, 0x82, 0, 0, 0, 0, ...Buffer.from("hi")]);
    await expect.poll(() => events, { timeout: 60_000 }).toContain("open");
    socket.send("word");
    expect([...(await sent(10))]).toEqual([0x81, 0x84, 0, 0, 0, 0, ...Buffer.from("word")]);
    socket.close(1000);
    expect([...(await sent(8))]).toEqual([0x88, 0x82, 0, 0, 0, 0, 3, 0xe8]);
    peer.write(frame(0x88, [0x0f, 0xa1]));
    expect(await closed).toBe(4001);
    socket.send("too late");
  });

  test.each([
    ["a station that refuses it", "HTTP/1.1 401 Unauthorized\r\n\r\n", ["error"]],
    ["a server other than a station", "SSH-2.0-OpenSSH\r\n\r\n", ["error"]],
    ["an endless response head", "x".repeat(20_000), ["error"]],
  ])("fails on %s", async (_, answer, expected) => {
    const { heard: events, closed } = await open(answer);
    expect(await closed).toBe(1006);
    expect(events).toEqual(expected);
  });

  test.each([
    ["a masked frame", Buffer.from([0x81, 0x81, 0, 0, 0, 0, 65])],
    ["an extension that was not requested", frame(0xc1, "x")],
    ["a frame that is too long", Buffer.concat([Buffer.from([0x82, 127]), longLength(FRAME_BYTES_MAX * 2)])],
    ["a length that no number holds", Buffer.from([0x82, 127, 255, 255, 255, 255, 255, 255, 255, 255])],
  ])("disconnects on %s", async (_, bytes) => {
    const { peer, closed, heard: events } = await open();
    peer.write(bytes);
    expect(await closed).toBe(1006);
    expect(events).toEqual(["open"]);
  });

  test("disconnects when a message never ends or the peer disconnects", async () => {
    const { peer, closed } = await open();
    const part = Buffer.alloc(60_000);
    peer.write(frame(0x02, part));
    for (let bytes = 0; bytes <= FRAME_BYTES_MAX + 2048; bytes += part.length) peer.write(frame(0x00, part));
    expect(await closed).toBe(1006);
  });
});

function longLength(bytes: number): Buffer {
  const length = Buffer.alloc(8);
  length.writeBigUInt64BE(BigInt(bytes));
  return length;
}
