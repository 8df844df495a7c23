import { expect, test } from "vitest";
import { startMirrorPort } from "../../../test/support/network/registries/mirror-port.ts";
import { openMirrorRig } from "../../../test/support/network/registries/mirror-rig.ts";
import { debianHost } from "./registries/debian.ts";
import { npmHosts } from "./registries/npm.ts";
import { raw, tarball } from "./testing-mirror.ts";

test("forwards nothing that a program inside says about itself", async () => {
  await using rig = await openMirrorRig();
  const headers = {
    authorization: "Bearer npm_secret",
    cookie: "a=b",
    "x-anything": "npm_secret",
    "user-agent": "npm_secret",
    referer: "http://npm_secret/",
  };
  for (const path of ["/npm/caisson-left?token=npm_secret", tarball, "/pypi/simple/caisson-dep/"]) {
    expect((await rig.get(path, { headers })).status).toBe(200);
  }
  const seen = rig.registry.requests();
  expect(seen).toHaveLength(3);
  expect(JSON.stringify(seen)).not.toContain("npm_secret");
  expect(seen.map((one) => one.headers["user-agent"])).toEqual(["caisson-mirror", "caisson-mirror", "caisson-mirror"]);
});

test("passes on few of the registry's headers", async () => {
  await using rig = await openMirrorRig();
  const expected = [
    "cache-control",
    "connection",
    "content-length",
    "content-type",
    "date",
    "keep-alive",
    "last-modified",
    "x-caisson-cache",
  ];
  expect([...(await rig.get(tarball)).headers.keys()].sort()).toEqual(expected);
  expect([...(await rig.get(tarball)).headers.keys()].sort()).toEqual([...expected, "accept-ranges", "etag"].sort());
});

test.each(["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])("refuses %s without asking the registry", async (method) => {
  await using rig = await openMirrorRig();
  const init = { method, ...(method === "OPTIONS" ? {} : { body: "evil" }) };
  for (const path of [
    "/npm/caisson-left",
    tarball,
    "/pypi/simple/caisson-dep/",
    "/crates/config.json",
    "/go/example.com/!tiny/@v/list",
    "/debian/dists/stable/Release",
  ]) {
    const answered = await rig.get(path, init);
    expect(answered.status).toBe(405);
    expect(answered.headers.get("allow")).toBe("GET, HEAD");
  }
  expect(rig.registry.requests()).toEqual([]);
  const denied = rig.events.filter(({ type }) => type === "network.denied");
  expect(denied[0]?.data).toMatchObject({ reason: "method_not_allowed", method, path: "/npm/caisson-left", via: "mirror" });
});

test("answers npm's audit request with 404, because it knows no vulnerabilities", async () => {
  await using rig = await openMirrorRig();
  const answered = await rig.get("/npm/-/npm/v1/security/advisories/bulk", { method: "POST", body: "x".repeat(100_000) });
  expect(answered.status).toBe(404);
  expect(rig.registry.requests()).toEqual([]);
  expect(rig.events.filter(({ type }) => type === "network.denied")).toEqual([]);
});

test.each([
  "/npm/../etc/passwd",
  "/npm/%2e%2e/secret",
  "/npm/a%2f..%2f..%2fsecret",
  "/npm//caisson-left",
  "/npm/caisson-left%00",
  "/npm/caisson%0aleft",
  "/npm/a\\b",
  "/npm/%zz",
  `/npm/${"a".repeat(3000)}`,
  "//evil.example/npm/caisson-left",
  "*",
  `ftp://${debianHost}/debian/dists/stable/Release`,
  `http://${npmHosts.npm}/caisson-left`,
  "http://user@127.0.0.1/npm/caisson-left",
])("rejects %s as a package address", async (target) => {
  await using rig = await openMirrorRig();
  expect((await raw(rig.origin, target)).status).toBe(400);
  expect(rig.registry.requests()).toEqual([]);
  expect(rig.events[0]?.data).toMatchObject({ reason: "bad_request" });
});

test.each([
  "/npm/caisson-left/-/../x.tgz",
  "/npm/caisson-left/-/x.zip",
  "/npm/caisson-left/1.0.0/more",
  "/npm/-evil",
  "/pypi/simple/",
  "/pypi/simple/caisson-dep/x",
  "/pypi/constructor/caisson-dep/x",
  "/crates/ca/is/other",
  "/crates/Ca/is/Caisson-tiny",
  "/crates/me",
  "/go/sumdb/evil.example/latest",
  "/go/example.com/Tiny/@v/list",
  "/go/@v/list",
  "/debian/dists",
  "/debian/project/trace/x",
  "/elsewhere/x",
  "/",
])("asks no registry for %s", async (target) => {
  await using rig = await openMirrorRig();
  expect([400, 404]).toContain((await raw(rig.origin, target)).status);
  expect(rig.registry.requests()).toEqual([]);
});

test("serves only a registry's own paths under its public names", async () => {
  await using rig = await openMirrorRig();
  const release = rig.registry.body("/debian/dists/stable/Release").toString();
  for (const host of [debianHost, "security.debian.org"]) {
    expect(await rig.getBy(`http://${host}/debian/dists/stable/Release`)).toMatchObject({ status: 200, text: release });
  }
  expect((await rig.getBy("https://pypi.org/simple/caisson-dep/")).status).toBe(200);
  expect((await rig.getBy("https://proxy.golang.org/example.com/!tiny/@v/list")).status).toBe(200);
  rig.registry.requests();
  for (const url of [`https://${debianHost}/caisson-left`, `https://${npmHosts.npm}/npm/x/y`, "https://pypi.org/admin/"]) {
    expect((await rig.getBy(url)).status, url).toBe(404);
  }
  expect(rig.registry.requests()).toEqual([]);
  const { hostname, port } = new URL(rig.registry.url);
  const served = [
    [npmHosts.npm, 443],
    [npmHosts.yarn, 443],
    ["files.pythonhosted.org", 443],
    ["static.crates.io", 443],
    [debianHost, 80],
    [hostname, Number(port)],
  ] as const;
  for (const [host, at] of served) expect(rig.mirror.serves(host, at), host).toBe(true);
  for (const [host, at] of [
    [npmHosts.npm, 22],
    ["npmjs.org", 443],
    [hostname, 443],
    ["evil.example", 443],
  ] as const) {
    expect(rig.mirror.serves(host, at), host).toBe(false);
  }
});

test("gives a registry on the host's loopback no address inside", async () => {
  await using rig = await openMirrorRig();
  const { port } = new URL(rig.registry.url);
  await using port2 = await startMirrorPort({
    cacheDir: rig.cacheDir,
    registries: ["npm"],
    upstreams: { npm: `http://127.0.0.1:${port}/npm/` },
    upstreamUrl: `https://${npmHosts.npm}/`,
  });
  expect(port2.mirror.serves("127.0.0.1", Number(port))).toBe(false);
  expect(port2.mirror.serves(npmHosts.npm, 443)).toBe(true);
});

test("serves only the registries that are currently allowed", async () => {
  let registries: ("npm" | "pypi" | "debian")[] = ["npm"];
  await using rig = await openMirrorRig({ registries: () => registries });
  expect((await rig.get("/npm/caisson-left")).status).toBe(200);
  expect((await rig.get("/pypi/simple/caisson-dep/")).status).toBe(404);
  expect(rig.events.at(-1)?.data).toMatchObject({ reason: "path_not_allowed" });
  registries = ["pypi", "debian"];
  expect((await rig.get("/npm/caisson-left")).status).toBe(404);
  expect((await rig.get("/pypi/simple/caisson-dep/")).status).toBe(200);
  expect([rig.mirror.serves(npmHosts.npm, 443), rig.mirror.serves("pypi.org", 443)]).toEqual([false, true]);
});
