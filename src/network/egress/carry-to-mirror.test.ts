import { createServer } from "node:http";
import type { Duplex } from "node:stream";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createEgressRig, type EgressRig, readAll } from "./testing-egress.ts";

let rig: EgressRig;
const server = createServer((request, response) => response.end(`mirror: ${request.method} ${request.url}`));
const handed: string[] = [];
const mirror = {
  serves: (host: string, port: number) => host === "packages.test" && [80, 443].includes(port),
  handle({ stream, origin }: { stream: Duplex; origin: URL }) {
    handed.push(origin.href);
    stream.on("error", () => {});
    server.emit("connection", stream);
  },
};
const get = "GET /a HTTP/1.1\r\nHost: packages.test\r\nConnection: close\r\n\r\n";

beforeEach(async () => {
  handed.length = 0;
  rig = await createEgressRig({ mirror, limits: { firstBytesMs: 300 } });
  rig.setPolicy({ mode: "allow", registries: ["npm"] });
});
afterEach(() => rig[Symbol.asyncDispose]());

describe("a tunnel to a mirrored registry", () => {
  test("ends here with the sandbox's own authority, without lookup or connection", async () => {
    const { socket, head } = await rig.tunnel("packages.test:443");
    expect(head).toMatch(/^HTTP\/1\.1 200 /);
    const tls = await rig.secure(socket, "packages.test", { ca: [rig.inside.certificatePem] });
    tls.write(get);
    expect(await readAll(tls)).toContain("mirror: GET /a");
    expect(handed).toEqual(["https://packages.test/"]);
    expect(rig.lookedUp).toEqual([]);
  });

  test("also carries plain HTTP", async () => {
    const { socket } = await rig.tunnel("packages.test:80");
    socket.write(get);
    expect(await readAll(socket)).toContain("mirror: GET /a");
    expect(handed).toEqual(["http://packages.test/"]);
  });

  test("rejects another server name", async () => {
    const { socket } = await rig.tunnel("packages.test:443");
    await expect(rig.secure(socket, "other.test")).rejects.toThrow(/unrecognized name/);
    expect(rig.eventsOf("network.denied")).toMatchObject([{ host: "packages.test", reason: "name_mismatch" }]);
    expect(handed).toEqual([]);
  });

  test.each(["SSH-2.0-x\r\n", "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00", ""])("carries only HTTP: %j", async (text) => {
    const { socket } = await rig.tunnel("packages.test:443");
    socket.write(Buffer.from(text, "latin1"));
    await readAll(socket);
    expect(rig.eventsOf("network.denied")).toMatchObject([{ host: "packages.test", reason: "bad_request" }]);
    expect(handed).toEqual([]);
  });

  test("goes to the host itself if a rule names it, and nowhere without a network", async () => {
    const port = await rig.http((_request, response) => response.end("itself"));
    rig.names.set("packages.test", ["127.0.0.1"]);
    rig.setPolicy({ mode: "allow", registries: ["npm"], rules: [{ host: "*.test", ports: [443, port], private: true }] });
    const { head } = await rig.tunnel("packages.test:443");
    expect(head).not.toMatch(/^HTTP\/1\.1 200 /);
    expect(rig.lookedUp).toEqual(["packages.test"]);
    rig.setPolicy({ mode: "none" });
    expect((await rig.tunnel("packages.test:443")).head).toContain("no_network");
    expect(handed).toEqual([]);
  });

  test("closes with the egress", async () => {
    const { socket } = await rig.tunnel("packages.test:443");
    await rig.secure(socket, "packages.test");
    expect(rig.egress.stats().connections).toBe(1);
    await rig.egress.close();
    expect(rig.egress.stats().connections).toBe(0);
  });
});
