import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createEgressRig, type EgressRig, readAll } from "./testing-egress.ts";

let rig: EgressRig;
let server: Server | null = null;
let client: Socket | null = null;

beforeEach(async () => await useRig({}));
afterEach(async () => {
  client?.destroy();
  await rig[Symbol.asyncDispose]();
  server?.close();
});

/** Replaces the rig with one that considers a client silent after this time. */
async function useRig(limits: { silentMs?: number }): Promise<void> {
  await (rig as EgressRig | undefined)?.[Symbol.asyncDispose]();
  // The default waits for a client that speaks, however busy the machine is.
  rig = await createEgressRig({ limits: { silentMs: 60_000, ...limits } });
  rig.names.set("site.test", ["127.0.0.1"]);
}

/** Opens a connection that the guest would carry to this destination. */
async function carried(address: string, port: number): Promise<Socket> {
  server = createServer({ allowHalfOpen: true }, (stream) => rig.egress.handle({ stream, destination: { address, port } }));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  client = connect({ host: "127.0.0.1", port: (server.address() as AddressInfo).port, allowHalfOpen: true });
  client.on("error", () => {});
  await once(client, "connect");
  return client;
}

function addressOf(name: string): string {
  const labels = name.split(".").flatMap((label) => [label.length, ...Buffer.from(label)]);
  const answer = rig.egress.answerName(Buffer.from([0, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, ...labels, 0, 0, 1, 0, 1]));
  return [...(answer as Buffer).subarray(-4)].join(".");
}
const allow = (port: number, more: object = {}) =>
  rig.setPolicy({ mode: "allow", rules: [{ host: "site.test", ports: [port], private: true, ...more }] });
const get = (host: string) => `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;

describe("a program unaware of the proxy", () => {
  test("N03: gets names without a packet, and only allowed ones are looked up", async () => {
    addressOf("secret-data.evil.test");
    const socket = await carried(addressOf("evil.test"), 80);
    socket.write(get("evil.test"));
    expect(await readAll(socket)).toMatch(/^HTTP\/1\.1 403 [\s\S]*host_not_allowed/);
    expect(rig.lookedUp).toEqual([]);
    expect(rig.eventsOf("network.denied")).toMatchObject([{ host: "evil.test", port: 80, via: "transparent" }]);
  });

  test("reaches an allowed name in any protocol", async () => {
    const port = await rig.tcp((socket) => {
      socket.write("220 hello\r\n");
      socket.pipe(socket);
    });
    allow(port);
    const socket = await carried(addressOf("site.test"), port);
    expect(String(await once(socket, "data"))).toBe("220 hello\r\n");
    socket.write("ping");
    expect(String(await once(socket, "data"))).toBe("ping");
    socket.end();
    await readAll(socket);
    expect(rig.eventsOf("network.closed")[0] ?? (await rig.event("network.closed"))).toMatchObject({
      host: "site.test",
      via: "transparent",
      address: "127.0.0.1",
    });
  });

  test("cannot name a host in TLS that its address does not belong to", async () => {
    const port = await rig.https((_request, response) => response.end("hello"));
    allow(port);
    await expect(rig.secure(await carried(addressOf("site.test"), port), "other.test")).rejects.toThrow();
    client?.destroy();
    server?.close();
    const tls = await rig.secure(await carried(addressOf("site.test"), port), "site.test");
    tls.write(get("site.test"));
    expect(await readAll(tls)).toContain("hello");
  });

  test("reaches the host named in TLS if its address has no name", async () => {
    const port = await rig.https((_request, response) => response.end("hello"));
    allow(port);
    const tls = await rig.secure(await carried("203.0.113.7", port), "site.test");
    tls.write(get("site.test"));
    expect(await readAll(tls)).toContain("hello");
    expect(rig.lookedUp).toEqual(["site.test"]);
  });

  test("reaches the host named in each HTTP request if its address has no name", async () => {
    const port = await rig.http((_request, response) => response.end("hello"));
    allow(port);
    const socket = await carried("203.0.113.7", port);
    socket.write(`GET / HTTP/1.1\r\nHost: site.test:${port}\r\n\r\n`);
    await once(socket, "data");
    socket.write(get(`evil.test:${port}`));
    expect(await readAll(socket)).toContain("host_not_allowed");
    expect(rig.lookedUp).toEqual(["site.test"]);
  });

  test("gets an alert for a denied name in TLS", async () => {
    await expect(rig.secure(await carried("203.0.113.7", 443), "evil.test")).rejects.toMatchObject({
      code: expect.stringContaining("UNRECOGNIZED_NAME"),
    });
  });

  test("N01: is judged by its address without any name", async () => {
    await useRig({ silentMs: 50 });
    for (const address of ["169.254.169.254", "127.0.0.1", "198.18.0.77"]) {
      rig.setPolicy({ mode: "open" });
      const socket = await carried(address, 80);
      expect(await readAll(socket)).toBe("");
      server?.close();
    }
    expect(rig.eventsOf("network.denied").map(({ host, reason }) => `${host} ${reason}`)).toEqual([
      "169.254.169.254 private_address",
      "127.0.0.1 private_address",
      "198.18.0.77 private_address",
    ]);
    const port = await rig.tcp((socket) => void socket.end("hello"));
    rig.setPolicy({ mode: "allow", rules: [{ host: "127.0.0.1", ports: [port], private: true }] });
    expect(await readAll(await carried("127.0.0.1", port))).toBe("hello");
  });
});
