import { once } from "node:events";
import type { Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createEgressRig, type EgressRig, readAll } from "./testing-egress.ts";

let rig: EgressRig;
let port: number;

beforeEach(async () => {
  rig = await createEgressRig({ limits: { silentMs: 20 } });
  rig.names.set("site.test", ["127.0.0.1"]);
  port = await rig.tcp((socket) => socket.pipe(socket));
  rig.setPolicy({
    mode: "allow",
    rules: [
      { host: "site.test", ports: [port], private: true },
      { host: "*", ports: [1], private: true },
      { host: "127.0.0.1", ports: [port], private: true },
    ],
  });
});
afterEach(() => rig[Symbol.asyncDispose]());

const u16 = (value: number) => [value >> 8, value & 255];
const byName = (name: string) => [3, name.length, ...Buffer.from(name)];
const byIpv4 = (address: string) => [1, ...address.split(".").map(Number)];
const byIpv6 = (hex: string) => [4, ...Buffer.from(hex, "hex")];

/** Sends the greeting and a request, and returns the reply code. */
async function request(address: number[], to: number, { command = 1 } = {}): Promise<{ socket: Socket; code: number | undefined }> {
  const socket = await rig.dial();
  socket.write(Buffer.from([5, 1, 0]));
  expect([...((await once(socket, "data"))[0] as Buffer)]).toEqual([5, 0]);
  socket.write(Buffer.from([5, command, 0, ...address, ...u16(to)]));
  const [reply] = (await once(socket, "data")) as [Buffer];
  expect(reply).toHaveLength(10);
  return { socket, code: reply[1] };
}

describe("SOCKS5", () => {
  test.each([
    ["a name", byName("site.test")],
    ["an address", byIpv4("127.0.0.1")],
    ["an address mapped into IPv6", byIpv6("00000000000000000000ffff7f000001")],
    ["an address written as a name", byName("127.1")],
  ])("carries bytes to %s", async (_what, address) => {
    const { socket, code } = await request(address, port);
    expect(code).toBe(0);
    socket.write("ping");
    expect(String(await once(socket, "data"))).toBe("ping");
    socket.end();
    await readAll(socket);
    const closed = rig.eventsOf("network.closed")[0] ?? (await rig.event("network.closed"));
    expect(closed).toMatchObject({ via: "socks", port, sentBytes: 4, receivedBytes: 4 });
  });

  test("reads a handshake in one piece or in single bytes", async () => {
    const all = [5, 2, 0, 2, 5, 1, 0, ...byName("site.test"), ...u16(port), ...Buffer.from("ping")];
    const eager = await rig.dial();
    eager.write(Buffer.from(all));
    const slow = await rig.dial();
    slow.setNoDelay(true);
    for (const byte of all) {
      slow.write(Buffer.from([byte]));
      await new Promise(setImmediate);
    }
    for (const socket of [eager, slow]) {
      socket.end();
      expect((await readAll(socket)).slice(-4)).toBe("ping");
    }
  });

  test("replies with the code for the reason", async () => {
    const cases: [number[], number, object, number][] = [
      [byName("evil.test"), 443, {}, 2],
      [byName("site.test"), 22, {}, 2],
      [byIpv4("169.254.169.254"), 1, {}, 2],
      [byName("nowhere.test"), 1, {}, 4],
      [byName("site.test"), 1, {}, 5],
      [byName("site.test"), port, { command: 2 }, 7],
      [byName("site.test"), port, { command: 3 }, 7],
      [[9], 0, {}, 8],
      [byName("not a host"), port, {}, 8],
      [byName("site.test"), 0, {}, 8],
    ];
    for (const [address, to, options, code] of cases) expect((await request(address, to, options)).code).toBe(code);
    expect(rig.lookedUp).toEqual(["nowhere.test", "site.test"]);
    expect(rig.eventsOf("network.denied").map(({ reason, via }) => `${via} ${reason}`)).toContain("socks port_not_allowed");
  });

  test("tells a client that must authenticate that no method is acceptable", async () => {
    const socket = await rig.dial();
    socket.write(Buffer.from([5, 1, 2]));
    expect(await readAll(socket)).toBe("\x05\xff");
  });

  test.each([
    ["another version", [5, 1, 0, 4, 1, 0, 1]],
    ["an end in the middle", [5, 1, 0, 5, 1]],
  ])("closes the connection on %s", async (_what, bytes) => {
    const socket = await rig.dial();
    socket.end(Buffer.from(bytes));
    expect(await readAll(socket)).toBe("\x05\x00");
  });

  test("applies path rules to HTTP in the tunnel", async () => {
    const http = await rig.http((_request, response) => response.end("hello"));
    rig.setPolicy({ mode: "allow", rules: [{ host: "site.test", ports: [http], private: true, paths: ["/api"] }] });
    const { socket } = await request(byName("site.test"), http);
    socket.write(`GET /admin HTTP/1.1\r\nHost: site.test:${http}\r\nConnection: close\r\n\r\n`);
    expect(await readAll(socket)).toContain("path_not_allowed");
  });
});
