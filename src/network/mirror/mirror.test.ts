import { connect, type LookupFunction } from "node:net";
import { type Duplex, duplexPair } from "node:stream";
import { expect, test } from "vitest";
import { openMirrorRig } from "../../../test/support/network/registries/mirror-rig.ts";
import { NetworkClosed, NetworkDenied, NetworkFailed } from "../../contract/network/network-event.ts";
import type { NetworkEventInput } from "../egress/egress-options.ts";
import { raw, tarball } from "./testing-mirror.ts";

test("serves from the cache, and asks the registry again after a while", async () => {
  await using rig = await openMirrorRig();
  expect(await rig.get("/npm/caisson-left")).toMatchObject({ status: 200, cache: "miss" });
  expect(await rig.get("/npm/caisson-left")).toMatchObject({ status: 200, cache: "hit" });
  expect(rig.registry.requests()).toHaveLength(1);
  rig.age();
  expect(await rig.get("/npm/caisson-left")).toMatchObject({ status: 200, cache: "hit" });
  const [request, ...more] = rig.registry.requests();
  expect(request?.headers["if-none-match"]).toMatch(/^"/);
  expect(more).toEqual([]);
  // The answer that nothing has changed makes the entry fresh again.
  await rig.get("/npm/caisson-left");
  expect(rig.registry.requests()).toEqual([]);
  expect((await rig.get(tarball)).body.equals(rig.registry.body(tarball))).toBe(true);
  rig.age();
  expect((await rig.get(tarball)).cache).toBe("hit");
  expect(rig.registry.requests().map(({ path }) => path)).toEqual([tarball]);
});

test("fetches a changed page again", async () => {
  await using rig = await openMirrorRig();
  const before = await rig.get("/debian/dists/stable/Release");
  rig.registry.put("/debian/dists/stable/Release", { type: "text/plain", body: Buffer.from("Suite: another\n") });
  rig.age();
  expect(await rig.get("/debian/dists/stable/Release")).toMatchObject({ cache: "miss", text: "Suite: another\n" });
  expect(before.text).not.toContain("another");
  // The draft is removed after the answer was sent.
  await expect.poll(() => rig.kept()).toMatchObject({ entries: 1, temporary: 0 });
});

test("serves old entries and known misses without the registry", async () => {
  await using rig = await openMirrorRig();
  await rig.get("/npm/caisson-left");
  await rig.get(tarball);
  expect((await rig.get("/npm/not-there")).status).toBe(404);
  await rig.registry.stop();
  rig.age();
  expect(await rig.get("/npm/caisson-left")).toMatchObject({ status: 200, cache: "stale" });
  expect(await rig.get("/npm/not-there")).toMatchObject({ status: 404, cache: "stale" });
  expect(await rig.get(tarball)).toMatchObject({ status: 200, cache: "hit" });
  const other = await rig.get("/npm/@caisson%2fscoped");
  expect(other.status).toBe(502);
  expect(other.text).toContain("cannot be reached");
  await rig.registry.start();
});

test("serves the cached page on a 500, and caches nothing of it", async () => {
  await using rig = await openMirrorRig();
  await rig.get("/npm/caisson-left");
  rig.age();
  rig.registry.fault("/npm/caisson-left", { status: 500 });
  expect(await rig.get("/npm/caisson-left")).toMatchObject({ status: 200, cache: "stale" });
  rig.registry.fault("/npm/caisson-old", { status: 503 });
  expect(await rig.get("/npm/caisson-old")).toMatchObject({ status: 502, text: expect.stringContaining("answered 503") });
  expect(rig.kept().entries).toBe(1);
});

test("asks no registry when offline on purpose, and stops clients from retrying", async () => {
  await using online = await openMirrorRig();
  await online.get("/npm/caisson-left");
  await using rig = await openMirrorRig({ offline: true });
  const refused = await rig.get("/npm/caisson-left", { headers: { accept: "application/json" } });
  expect(refused.status).toBe(403);
  expect(JSON.parse(refused.text).error).toContain("offline");
  expect(rig.registry.requests()).toEqual([]);
});

test("reports an unreachable registry once for each cause", async () => {
  await using rig = await openMirrorRig();
  await rig.registry.stop();
  for (const path of ["/npm/caisson-left", "/npm/caisson-old", tarball]) expect((await rig.get(path)).status).toBe(502);
  const failed = rig.events.filter(({ type }) => type === "network.failed");
  expect(failed).toMatchObject([{ data: { host: "registry.test", via: "mirror", reason: "unavailable", path: "/npm/caisson-left" } }]);
  expect(failed.map(({ data }) => ("text" in data ? data.text : "")).join()).toMatch(
    /^the npm registry is not available: registry\.test:\d+ cannot be reached: .*ECONNREFUSED.* \(unavailable\)$/,
  );
  for (const event of failed) expect(() => parse(event)).not.toThrow();
  await rig.registry.start();
});

test("reports a registry with an unknown name as such", async () => {
  const unknown: LookupFunction = (name, _options, done) =>
    done(Object.assign(new Error(`getaddrinfo ENOTFOUND ${name}`), { code: "ENOTFOUND", syscall: "getaddrinfo" }), "", 0);
  await using rig = await openMirrorRig({ lookup: unknown });
  // The second request fails without a lookup: a name known to be missing is not looked up for each package.
  for (let times = 0; times < 2; times++) expect((await rig.get("/npm/caisson-left")).status).toBe(502);
  expect(rig.events.filter(({ type }) => type === "network.failed")).toMatchObject([{ data: { reason: "unknown_host", count: 1 } }]);
});

test("answers HEAD, conditional and range requests from the cache", async () => {
  await using rig = await openMirrorRig();
  const whole = rig.registry.body(tarball);
  expect(await rig.get(tarball, { method: "HEAD" })).toMatchObject({ status: 200, text: "" });
  await rig.get(tarball);
  const { headers } = await rig.get(tarball, { method: "HEAD" });
  expect(headers.get("content-length")).toBe(String(whole.length));
  const etag = headers.get("etag") ?? "";
  expect((await rig.get(tarball, { headers: { "if-none-match": `"x", ${etag}` } })).status).toBe(304);
  expect((await rig.get(tarball, { headers: { "if-none-match": '"x"' } })).status).toBe(200);
  expect((await rig.get(tarball, { headers: { "if-modified-since": "Thu, 02 Jan 2020 00:00:00 GMT" } })).status).toBe(304);
  const part = await rig.get(tarball, { headers: { range: "bytes=10-19" } });
  expect(part).toMatchObject({ status: 206, body: whole.subarray(10, 20) });
  expect(part.headers.get("content-range")).toBe(`bytes 10-19/${whole.length}`);
  expect((await rig.get(tarball, { headers: { range: "bytes=-5" } })).body).toEqual(whole.subarray(-5));
  expect((await rig.get(tarball, { headers: { range: `bytes=${whole.length}-` } })).status).toBe(416);
  expect((await rig.get(tarball, { headers: { range: "bytes=0-1", "if-range": '"x"' } })).status).toBe(200);
});

test("reports a connection when it ends, as the contract requires", async () => {
  await using rig = await openMirrorRig();
  const body = rig.registry.body(tarball);
  await rig.get("/npm/caisson-left", { headers: { connection: "close" } });
  await raw(rig.origin, tarball);
  await expect.poll(() => rig.events.length).toBe(2);
  expect(rig.events[1]).toMatchObject({
    type: "network.closed",
    data: {
      host: "registry.test",
      via: "mirror",
      rule: "registry npm",
      inspected: false,
      requests: 1,
      receivedBytes: body.length,
      address: "127.0.0.1",
    },
  });
  await raw(rig.origin, "/nowhere");
  for (const event of rig.events) expect(() => parse(event)).not.toThrow();
});

test("closes despite a connection without a complete request", async () => {
  const rig = await openMirrorRig();
  const socket = connect(rig.port, "127.0.0.1");
  await new Promise((resolve) => socket.once("connect", resolve));
  socket.write("GET /npm/");
  const closed = new Promise((resolve) => socket.on("error", () => undefined).once("close", () => resolve("closed")));
  await rig.get("/npm/caisson-left");
  await rig[Symbol.asyncDispose]();
  expect(await closed).toBe("closed");
});

test("refuses one connection too many, and serves the others", async () => {
  await using rig = await openMirrorRig();
  const streams: Duplex[] = [];
  const open = () => {
    const [near, far] = duplexPair();
    streams.push(near);
    rig.mirror.handle({ stream: far, origin: new URL(rig.registry.url) });
    return near;
  };
  for (let index = 0; index < 512; index++) open();
  const refused = Buffer.concat(await open().toArray()).toString();
  expect(refused).toMatch(/^HTTP\/1\.1 503 [\s\S]*more than 512 connections/);
  expect(rig.events.map(({ data }) => data)).toMatchObject([{ reason: "too_many" }]);
  const first = streams[0] as Duplex;
  first.write("GET /npm/caisson-left HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  expect(Buffer.concat(await first.toArray()).toString()).toMatch(/^HTTP\/1\.1 200 OK/);
  for (const stream of streams) stream.destroy();
});

function parse(event: NetworkEventInput): unknown {
  const schema = event.type === "network.denied" ? NetworkDenied : event.type === "network.failed" ? NetworkFailed : NetworkClosed;
  return schema.parse({ ...event, version: 1, at: new Date().toISOString(), data: { ...event.data, sandbox: "sb_aaaaaaaaaaaa" } });
}
