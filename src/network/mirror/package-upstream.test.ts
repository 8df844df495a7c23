import { createServer } from "node:http";
import type { AddressInfo, LookupFunction } from "node:net";
import { PassThrough } from "node:stream";
import { expect, onTestFinished, test } from "vitest";
import { createUpstream, mayLead, type UpstreamRequest } from "./package-upstream.ts";

/** Answers by URL, and records the requested URLs. */
function scripted(answers: Record<string, { status?: number; location?: string }>) {
  const urls: string[] = [];
  const get = async ({ url }: UpstreamRequest) => {
    urls.push(url.href);
    const { status = 200, location } = answers[url.href] ?? { status: 404 };
    return { status, headers: { location }, body: new PassThrough().end("x"), address: "" };
  };
  return { asked: urls, upstream: createUpstream({ get }) };
}

const url = new URL("https://a.example/x");

test("follows redirects, even to another host", async () => {
  const { asked: urls, upstream } = scripted({
    "https://a.example/x": { status: 302, location: "/y" },
    "https://a.example/y": { status: 307, location: "https://b.example/z" },
    "https://b.example/z": {},
  });
  expect((await upstream.get({ url, headers: {} })).status).toBe(200);
  expect(urls).toHaveLength(3);
});

test.each([
  "http://a.example/x",
  "http://b.example/x",
  "https://169.254.169.254/latest",
  "https://[::1]/",
  "https://2130706433/",
  "https://user@b.example/",
  "file:///etc/passwd",
  "https://",
])("does not follow a redirect to %s", async (location) => {
  const { asked: urls, upstream } = scripted({ "https://a.example/x": { status: 302, location } });
  await expect(upstream.get({ url, headers: {} })).rejects.toMatchObject({ code: "protocol" });
  expect(urls).toHaveLength(1);
});

test("does not follow redirects indefinitely", async () => {
  const { asked: urls, upstream } = scripted({ "https://a.example/x": { status: 302, location: "/x" } });
  await expect(upstream.get({ url, headers: {} })).rejects.toMatchObject({ code: "protocol" });
  expect(urls).toHaveLength(6);
});

test("lets plain HTTP redirect to another host, but a bare address only to itself", () => {
  expect(mayLead(new URL("http://a.example/"), new URL("http://b.example/"))).toBe(true);
  expect(mayLead(new URL("http://127.0.0.1:1/"), new URL("http://127.0.0.1:1/x"))).toBe(true);
  expect(mayLead(new URL("http://127.0.0.1:1/"), new URL("http://127.0.0.1:2/x"))).toBe(false);
});

test("resolves names with the given lookup, and checks certificates", async () => {
  const server = createServer((_request, response) => response.end("hello"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const names: string[] = [];
  const lookup: LookupFunction = (name, options, callback) => {
    names.push(name);
    if (name.startsWith("bad")) return callback(new Error("refused"), "", 4);
    if (options.all) return callback(null, [{ address: "127.0.0.1", family: 4 }]);
    callback(null, "127.0.0.1", 4);
  };
  const upstream = createUpstream({ lookup });
  onTestFinished(async () => {
    upstream.close();
    await new Promise((resolve) => server.close(resolve));
  });
  const response = await upstream.get({ url: new URL(`http://good.example:${port}/`), headers: {} });
  expect(Buffer.concat(await response.body.toArray()).toString()).toBe("hello");
  await expect(upstream.get({ url: new URL(`http://bad.example:${port}/`), headers: {} })).rejects.toMatchObject({ code: "unavailable" });
  // The server there does not speak TLS, let alone have a certificate for that name.
  await expect(upstream.get({ url: new URL(`https://good.example:${port}/`), headers: {} })).rejects.toMatchObject({ code: "unavailable" });
  expect(names).toEqual(["good.example", "bad.example", "good.example"]);
});

test("survives an abort at any moment", async () => {
  const server = createServer((_request, response) => response.end(Buffer.alloc(100_000)));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const upstream = createUpstream({});
  onTestFinished(async () => {
    upstream.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  for (const moment of ["before", "head", "data", "end", "close"] as const) {
    const abort = new AbortController();
    const getting = upstream.get({
      url: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`),
      headers: {},
      signal: abort.signal,
    });
    if (moment === "before") {
      abort.abort();
      await expect(getting).rejects.toMatchObject({ code: "cancelled" });
      continue;
    }
    const { body } = await getting;
    if (moment === "head") abort.abort();
    else body.resume().once(moment, () => abort.abort());
    await new Promise<void>((resolve) => (body.closed ? resolve() : body.once("close", resolve)));
  }
});
