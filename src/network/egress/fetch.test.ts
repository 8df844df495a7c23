import { gzipSync } from "node:zlib";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createEgressRig, type EgressRig } from "./testing-egress.ts";
import { createSecretRig, type SecretRig, SECRET_VALUE as value } from "./testing-secrets.ts";

let all: SecretRig;
let rig: EgressRig;
let port: number;
beforeEach(async () => {
  all = await createSecretRig();
  ({ rig, port } = all);
});
afterEach(() => rig[Symbol.asyncDispose]());

describe("fetch on an agent's behalf", () => {
  const fetch = (path: string, more: object = {}) => rig.egress.fetch({ url: `https://site.test:${port}${path}`, bytesMax: 1000, ...more });

  test("is checked, verified and counted like any request", async () => {
    Object.assign(all.answer, {
      headers: { "content-encoding": "gzip", "content-type": "text/plain" },
      body: gzipSync("hello, compressed"),
    });
    expect(await fetch("/x?y=1#z")).toMatchObject({
      status: 200,
      headers: { "content-type": "text/plain" },
      truncated: false,
      url: `https://site.test:${port}/x?y=1`,
    });
    expect(all.received[0]).toMatchObject({
      method: "GET",
      url: "/x?y=1",
      headers: { host: `site.test:${port}`, "accept-encoding": "gzip, br, deflate" },
    });
    const result = await fetch("/x");
    expect("body" in result && String(result.body)).toBe("hello, compressed");
    expect("headers" in result && result.headers["content-encoding"]).toBeUndefined();
    expect(rig.eventsOf("network.closed")[0]).toMatchObject({ via: "fetch", host: "site.test", requests: 1, address: "127.0.0.1" });
  });

  test("injects and redacts secrets", async () => {
    Object.assign(all.answer, { body: value });
    const result = await fetch("/api/x", { headers: { authorization: `Bearer ${all.placeholder}` } });
    expect(all.received[0]?.headers.authorization).toBe(`Bearer ${value}`);
    expect("body" in result && String(result.body)).toBe(all.placeholder);
    expect(rig.eventsOf("secret.used")).toHaveLength(1);
  });

  test("returns a denial as a result", async () => {
    expect(await rig.egress.fetch({ url: "https://site.test:1/", bytesMax: 10 })).toMatchObject({
      denied: { reason: "port_not_allowed", text: expect.stringContaining("caisson net allow") },
    });
    expect(await rig.egress.fetch({ url: `http://169.254.169.254:${port}/latest`, bytesMax: 10 })).toMatchObject({
      denied: { reason: "private_address" },
    });
    rig.setPolicy({ mode: "allow", rules: [{ host: "site.test", ports: [port], private: true, methods: ["GET"] }] });
    expect(await fetch("/", { method: "POST", body: Buffer.from("x") })).toMatchObject({ denied: { reason: "method_not_allowed" } });
    const impostor = await rig.https(() => {}, { host: "impostor.test" });
    rig.setPolicy({ mode: "allow", rules: [{ host: "site.test", ports: [impostor], private: true }] });
    expect(await rig.egress.fetch({ url: `https://site.test:${impostor}/`, bytesMax: 10 })).toMatchObject({
      denied: { reason: "not_verified" },
    });
    expect(rig.eventsOf("network.denied").map(({ via, reason }) => `${via} ${reason}`)).toEqual([
      "fetch port_not_allowed",
      "fetch private_address",
      "fetch method_not_allowed",
      "fetch not_verified",
    ]);
  });

  test("N07: checks each redirect, and keeps credentials within their origin", async () => {
    const seen: Record<string, unknown>[] = [];
    const plain = await rig.http((request, response) => {
      seen.push({
        url: request.url,
        method: request.method,
        authorization: request.headers.authorization,
        cookie: request.headers.cookie,
        accept: request.headers.accept,
      });
      if (request.url === "/loop") response.writeHead(302, { location: "/loop" });
      if (request.url === "/denied") response.writeHead(302, { location: "http://evil.test/" });
      if (request.url === "/metadata") response.writeHead(302, { location: "http://169.254.169.254/latest" });
      response.end("there");
    });
    rig.setPolicy({
      mode: "allow",
      rules: [
        { host: "*", ports: [port, plain], private: true },
        { host: "169.254.169.254", ports: [80], private: true },
      ],
    });
    Object.assign(all.answer, { headers: { location: `http://other.test:${plain}/end` }, body: "" });
    const redirecting = await rig.http((_request, response) =>
      response.writeHead(303, { location: `http://other.test:${plain}/end` }).end(),
    );
    rig.setPolicy({
      mode: "allow",
      rules: [
        { host: "*", ports: [redirecting, plain], private: true },
        { host: "169.254.169.254", ports: [80], private: true },
      ],
    });
    const headers = { authorization: `Bearer ${all.placeholder}`, cookie: "a=b", accept: "text/html", "content-type": "text/plain" };
    const result = await rig.egress.fetch({
      url: `http://site.test:${redirecting}/`,
      method: "POST",
      body: Buffer.from("x"),
      headers,
      bytesMax: 100,
    });
    expect(result).toMatchObject({ status: 200, url: `http://other.test:${plain}/end` });
    expect(seen).toEqual([{ url: "/end", method: "GET", authorization: undefined, cookie: undefined, accept: "text/html" }]);
    const at = (path: string) => rig.egress.fetch({ url: `http://site.test:${plain}${path}`, bytesMax: 100 });
    expect(await at("/denied")).toMatchObject({ denied: { reason: "port_not_allowed" } });
    expect(await at("/metadata")).toMatchObject({ denied: { reason: "private_address" } });
    await expect(at("/loop")).rejects.toMatchObject({ code: "unavailable" });
    expect(seen.filter(({ url }) => url === "/loop")).toHaveLength(6);
    expect(rig.lookedUp).not.toContain("evil.test");
  });

  test("is limited in decompressed bytes and in time, and can be aborted", async () => {
    Object.assign(all.answer, { headers: { "content-encoding": "gzip" }, body: gzipSync(Buffer.alloc(20_000_000)) });
    const result = await fetch("/");
    expect(result).toMatchObject({ truncated: true });
    expect("body" in result && result.body.length).toBe(1000);
    const hanging = await rig.http(() => {});
    rig.setPolicy({ mode: "allow", rules: [{ host: "site.test", ports: [hanging], private: true }] });
    const abort = new AbortController();
    const pending = rig.egress.fetch({ url: `http://site.test:${hanging}/`, bytesMax: 10, signal: abort.signal });
    setTimeout(() => abort.abort(), 20);
    await expect(pending).rejects.toMatchObject({ code: "cancelled" });
    await using hasty = await createEgressRig({ limits: { fetchMs: 50 }, rules: [{ host: "127.0.0.1", ports: [hanging], private: true }] });
    await expect(hasty.egress.fetch({ url: `http://127.0.0.1:${hanging}/`, bytesMax: 10 })).rejects.toMatchObject({ code: "timeout" });
  });

  test("ends when the policy no longer allows it", async () => {
    const hanging = await rig.http(() => {});
    rig.setPolicy({ mode: "allow", rules: [{ host: "site.test", ports: [hanging], private: true }] });
    const first = rig.egress.fetch({ url: `http://site.test:${hanging}/`, bytesMax: 10 });
    while (rig.lookedUp.length < 1) await new Promise(setImmediate);
    rig.setPolicy({ mode: "none" });
    rig.egress.enforce();
    const outcome = await first.catch((error) => error);
    expect(outcome).toSatisfy((each: { code?: string; denied?: object }) => each.code === "cancelled" || each.denied !== undefined);
  });

  test.each([
    ["not a URL", { url: "nonsense" }],
    ["another scheme", { url: "file:///etc/passwd" }],
    ["credentials", { url: "https://user:pass@site.test/" }],
    ["a header that would be two", { headers: { "x-a": "1\r\nx-b: 2" } }],
    ["an invalid header name", { headers: { "x a": "1" } }],
    ["an invalid method", { method: "GET /\r\n" }],
  ])("rejects %s", async (_what, more) => {
    await expect(fetch("/", more)).rejects.toMatchObject({ code: "invalid" });
    expect(all.received).toEqual([]);
  });

  test("reports a missing or misbehaving server as unavailable", async () => {
    const nonsense = await rig.tcp((socket) => socket.end("nonsense\r\n\r\n"));
    rig.setPolicy({ mode: "allow", rules: [{ host: "site.test", ports: [1, nonsense], private: true }] });
    for (const each of [1, nonsense])
      await expect(rig.egress.fetch({ url: `http://site.test:${each}/`, bytesMax: 10 })).rejects.toMatchObject({ code: "unavailable" });
  });
});
