import { expect, test } from "vitest";
import { openMirrorRig } from "../../../../test/support/network/registries/mirror-rig.ts";
import { hash } from "../../../../test/support/network/registries/shelf.ts";
import { insideSettings } from "../inside-settings.ts";
import type { Packages } from "../packages.ts";
import { npmHosts } from "./npm.ts";
import { projectsOf } from "./pypi.ts";
import { createRegistries } from "./registries.ts";
import { rewriteSimpleHtml, rewriteSimpleJson } from "./simple-page.ts";

const json = { accept: "application/vnd.pypi.simple.v1+json, text/html; q=0.1" };
const short = { accept: "application/vnd.npm.install-v1+json; q=1.0, application/json; q=0.8" };

test("npm: serves short and full lists, with tarballs at the requested address", async () => {
  await using rig = await openMirrorRig();
  const abbreviated = await rig.get("/npm/@caisson%2fscoped", { headers: short });
  expect(abbreviated.headers.get("content-type")).toBe("application/vnd.npm.install-v1+json");
  const whole = await rig.get("/npm/@caisson/scoped");
  expect(whole.headers.get("content-type")).toBe("application/json");
  expect(JSON.parse(abbreviated.text).time).toBeUndefined();
  for (const page of [abbreviated, whole, await rig.get("/npm/@caisson%2fscoped/2.0.0")]) {
    const { versions, dist } = JSON.parse(page.text);
    expect((versions?.["2.0.0"].dist ?? dist).tarball).toBe(`${rig.registry.url}/npm/@caisson/scoped/-/scoped-2.0.0.tgz`);
  }
  for (const base of [`https://${npmHosts.npm}`, `https://${npmHosts.yarn}`, `http://${npmHosts.npm}`]) {
    const { versions } = JSON.parse((await rig.getBy(`${base}/@caisson%2fscoped`)).text);
    const { tarball } = versions["2.0.0"].dist;
    expect(tarball).toBe(`${base}/@caisson/scoped/-/scoped-2.0.0.tgz`);
    expect((await rig.getBy(tarball)).body.equals(rig.registry.body("/npm/@caisson/scoped/-/scoped-2.0.0.tgz"))).toBe(true);
  }
  // Only the addresses of tarballs change.
  expect(JSON.parse(whole.text).readme).toBe(`"tarball":"${rig.registry.url}/npm/not-a-link.tgz"`);
  expect(
    (await rig.get("/npm/@caisson%2fscoped/-/scoped-2.0.0.tgz")).body.equals(rig.registry.body("/npm/@caisson/scoped/-/scoped-2.0.0.tgz")),
  ).toBe(true);
});

test("npm: keeps the address of a tarball on another host", async () => {
  await using rig = await openMirrorRig();
  const page = {
    name: "x",
    versions: { "1.0.0": { dist: { tarball: "https://elsewhere.example/npm/x/-/x-1.0.0.tgz", shasum: "0".repeat(40) } } },
  };
  rig.registry.put("/npm/x", { type: "application/json", body: Buffer.from(JSON.stringify(page)) });
  expect(JSON.parse((await rig.get("/npm/x")).text)).toEqual(page);
});

test("npm: answers 404 to search and whoami", async () => {
  await using rig = await openMirrorRig();
  expect(await rig.get("/npm/-/ping")).toMatchObject({ status: 200, text: "{}\n" });
  for (const path of ["/npm/-/whoami", "/npm/-/v1/search?text=x", "/npm/-/package/x/dist-tags"])
    expect((await rig.get(path)).status).toBe(404);
  expect(rig.registry.requests()).toEqual([]);
});

test("PyPI: serves pages in both forms, and checks files and metadata", async () => {
  await using rig = await openMirrorRig();
  const html = await rig.get("/pypi/simple/Caisson_Wheel/");
  expect(html.headers.get("content-type")).toBe("text/html");
  const [, href = "", sha256 = ""] = /href="([^"#]+)#sha256=([0-9a-f]{64})"/.exec(html.text) ?? [];
  expect(html.text).toContain('data-requires-python="&gt;=3.7"');
  const page = JSON.parse((await rig.get("/pypi/simple/caisson-wheel/", { headers: json })).text);
  expect(page.files[0].url).toBe(href);
  expect((await rig.get(href.replace("caisson_wheel", "caisson_dep"))).status).toBe(404);
  const wheel = await rig.get(href);
  expect(hash("sha256", wheel.body)).toBe(sha256);
  const metadata = await rig.get(`${href}.metadata`);
  expect(hash("sha256", metadata.body)).toBe(page.files[0]["core-metadata"].sha256);
  expect((await rig.get(`${href}.asc`)).status).toBe(404);
});

test("PyPI: serves files at the public file host to clients with public names", async () => {
  await using rig = await openMirrorRig();
  const page = JSON.parse((await rig.getBy("https://pypi.org/simple/caisson-wheel/", json)).text);
  const { url, hashes } = page.files[0];
  expect(url).toMatch(/^https:\/\/files\.pythonhosted\.org\/pypi\/packages\/.*\/caisson_wheel-1\.0-py3-none-any\.whl$/);
  expect(hash("sha256", (await rig.getBy(url)).body)).toBe(hashes.sha256);
  expect((await rig.getBy(`${url}.metadata`)).status).toBe(200);
  expect((await rig.getBy(url.replace("wheel-1.0", "wheel-1.1"))).status).toBe(404);
  expect((await rig.getBy("https://files.pythonhosted.org/etc/passwd")).status).toBe(404);
});

test("PyPI: serves a cached file without the registry, however old its page is", async () => {
  await using rig = await openMirrorRig();
  const page = JSON.parse((await rig.getBy("https://pypi.org/simple/caisson-wheel/", json)).text);
  const urls = page.files.flatMap(({ url }: { url: string }) => [url, `${url}.metadata`]);
  for (const url of urls) expect((await rig.getBy(url)).status).toBe(200);
  rig.registry.requests();
  rig.age();
  for (const url of urls) expect((await rig.getBy(url)).status).toBe(200);
  expect(rig.registry.requests()).toEqual([]);
  await rig.registry.stop();
  for (const url of urls) expect((await rig.getBy(url)).status).toBe(200);
  // A file that no cached page lists may be new. Without the registry it is unknown.
  expect((await rig.getBy(urls[0].replace("wheel-1.0", "wheel-1.1"))).status).toBe(502);
});

test.each([
  ["caisson_wheel-1.0-py3-none-any.whl", ["caisson-wheel"]],
  ["Foo.Bar-1.0-py3-none-any.whl.metadata", ["foo-bar"]],
  ["python-dateutil-2.8.2.tar.gz", ["python-dateutil"]],
  ["foo-2-1.0.tar.gz", ["foo-2", "foo"]],
  ["foo-v1.0.zip", ["foo"]],
  ["a-1-2-3-4-5-6.tar.gz", ["a-1-2-3-4-5", "a-1-2-3-4", "a-1-2-3", "a-1-2"]],
  ["README", []],
  ["-1.0.tar.gz", []],
])("PyPI: %s may belong to %j", (file, projects) => {
  expect(projectsOf(file)).toEqual(projects);
});

const places = { files: new URL("https://files.example/"), own: new URL("https://index.example/") };
const options = { page: new URL("https://index.example/simple/p/"), places, shown: { own: new URL("https://shown.example/") } };
const sum = "a".repeat(64);

test("PyPI: does not mirror links without a digest or to other hosts", () => {
  const page = `<!DOCTYPE html><a href="https://files.example/p-1.whl#sha256=${sum}">p-1.whl</a> <a HREF='../../p-2.whl#sha256=${sum}' data-yanked="b&quot;ad">p-2.whl</a>
    <a href="https://files.example/p-3.whl">p-3.whl</a> <a href="https://elsewhere.example/p-4.whl#sha256=${sum}">p-4.whl</a>
    <a href="javascript:x" onclick="evil()">p&lt;b&gt;</a><script>evil()</script>`;
  const { body, digests = [] } = rewriteSimpleHtml(page, options);
  const lines = body
    .toString()
    .split("\n")
    .filter((line) => line.startsWith("<a"));
  expect(lines).toEqual([
    `<a href="https://files.example/p-1.whl#sha256=${sum}">p-1.whl</a><br>`,
    `<a data-yanked="b&quot;ad" href="https://shown.example/p-2.whl#sha256=${sum}">p-2.whl</a><br>`,
    '<a href="https://files.example/p-3.whl">p-3.whl</a><br>',
    `<a href="https://elsewhere.example/p-4.whl#sha256=${sum}">p-4.whl</a><br>`,
    '<a href="javascript:x">p&lt;b&gt;</a><br>',
  ]);
  expect(body.toString()).not.toContain("evil");
  expect([...digests]).toEqual([
    ["files/p-1.whl", `sha256:${sum}`],
    ["own/p-2.whl", `sha256:${sum}`],
  ]);
});

test("PyPI: offers no metadata without a digest, in JSON either", () => {
  const files = [
    { filename: "p-1.whl", url: "https://files.example/p-1.whl", hashes: { sha256: sum }, "core-metadata": true, "gpg-sig": true },
    { filename: "p-2.whl", url: "https://files.example/p-2.whl", hashes: { md5: "x" } },
    { filename: "p-3.whl", url: "https://elsewhere.example/p-3.whl", hashes: { sha256: sum } },
  ];
  const { body, digests = [] } = rewriteSimpleJson(JSON.stringify({ meta: {}, files }), options);
  expect(JSON.parse(body.toString()).files).toEqual([
    { filename: "p-1.whl", url: "https://files.example/p-1.whl", hashes: { sha256: sum } },
    files[1],
    files[2],
  ]);
  expect([...digests]).toHaveLength(1);
  expect(() => rewriteSimpleJson("{}", options)).toThrow();
  expect(() => rewriteSimpleHtml("not at all", options)).toThrow();
});

test("crates: serves its own index, whatever the registry's download URL", async () => {
  await using rig = await openMirrorRig();
  const config = JSON.parse((await rig.get("/crates/config.json")).text);
  expect(config.dl).toBe(`${rig.registry.url}/crates/dl/{crate}/{version}`);
  expect((await rig.get("/crates/ca/is/caisson-tiny")).text).toBe(rig.registry.body("/crates/ca/is/caisson-tiny").toString());
  const crate = rig.registry.body("/crates/api/v1/crates/caisson-tiny/0.2.0/download");
  expect((await rig.get("/crates/dl/caisson-tiny/0.2.0")).body.equals(crate)).toBe(true);
  expect((await rig.get("/crates/dl/caisson-tiny/0.3.0")).status).toBe(404);
  expect(JSON.parse((await rig.getBy("https://index.crates.io/config.json")).text)).toEqual({
    dl: "https://static.crates.io/crates",
    api: null,
  });
  for (const file of ["0.2.0/download", "caisson-tiny-0.2.0.crate"]) {
    expect((await rig.getBy(`https://static.crates.io/crates/caisson-tiny/${file}`)).body.equals(crate)).toBe(true);
  }
  const dl = `${rig.registry.url}/crates/x/{lowerprefix}/{crate}-{version}-{sha256-checksum}.crate`;
  rig.registry.put("/crates/config.json", { type: "application/json", body: Buffer.from(JSON.stringify({ dl })) });
  rig.age();
  const old = rig.registry.body("/crates/api/v1/crates/caisson-tiny/0.1.0/download");
  rig.registry.put(`/crates/x/ca/is/caisson-tiny-0.1.0-${hash("sha256", old)}.crate`, { type: "x/y", body: old });
  expect((await rig.get("/crates/dl/caisson-tiny/0.1.0")).body.equals(old)).toBe(true);
});

test.each(["file:///etc/passwd", "http://127.0.0.1:1/{crate}", "nonsense"])("crates: rejects the download URL %s", async (dl) => {
  await using rig = await openMirrorRig();
  rig.registry.put("/crates/config.json", { type: "application/json", body: Buffer.from(JSON.stringify({ dl })) });
  const refused = await rig.get("/crates/dl/caisson-tiny/0.1.0");
  expect(refused).toMatchObject({ status: 502, text: expect.stringContaining("does not specify a valid download URL") });
});

test("Go: caches versions permanently, and queries only briefly", async () => {
  await using rig = await openMirrorRig();
  const module = "/go/example.com/!tiny";
  const always = [`${module}/@v/v1.0.0.info`, `${module}/@v/v1.0.0.mod`, `${module}/@v/v1.0.0.zip`];
  rig.registry.put(`${module}/@v/main.info`, { type: "application/json", body: Buffer.from("{}") });
  rig.registry.put("/go/sumdb/sum.golang.org/supported", { type: "text/plain", body: Buffer.from("") });
  rig.registry.put("/go/sumdb/sum.golang.org/lookup/example.com/!tiny@v1.0.0", { type: "text/plain", body: Buffer.from("1\n") });
  rig.registry.put("/go/sumdb/sum.golang.org/tile/8/0/x001/234.p/5", { type: "text/plain", body: Buffer.from("t") });
  always.push("/go/sumdb/sum.golang.org/lookup/example.com/!tiny@v1.0.0", "/go/sumdb/sum.golang.org/tile/8/0/x001/234.p/5");
  const shortly = [`${module}/@v/list`, `${module}/@latest`, `${module}/@v/main.info`, "/go/sumdb/sum.golang.org/supported"];
  for (const path of [...always, ...shortly]) expect((await rig.get(path)).body.equals(rig.registry.body(path))).toBe(true);
  rig.registry.requests();
  rig.age();
  for (const path of [...always, ...shortly]) expect((await rig.get(path)).cache).toBe("hit");
  expect(rig.registry.requests().map(({ path }) => path)).toEqual(shortly);
  // A missing module is reported as such, even offline, because clients then try shorter paths.
  expect((await rig.get("/go/example.com/!tiny/more/@v/list")).status).toBe(404);
});

test("Go: does not cache a file that is not an archive", async () => {
  await using rig = await openMirrorRig();
  rig.registry.fault("/go/example.com/!tiny/@v/v1.0.0.zip", { body: Buffer.from("<html>please log in</html>") });
  expect((await rig.get("/go/example.com/!tiny/@v/v1.0.0.zip")).status).toBe(502);
  // The draft is removed after the answer was sent.
  await expect.poll(() => rig.kept()).toMatchObject({ entries: 0, temporary: 0 });
});

test("Debian: caches packages and lists by checksum permanently, others briefly", async () => {
  await using rig = await openMirrorRig();
  const pool = "/debian/pool/main/c/caisson-tool/caisson-tool_1.0_all.deb";
  const list = rig.registry.body("/debian/dists/stable/main/binary-all/Packages.gz");
  const byHash = `/debian/dists/stable/main/binary-all/by-hash/SHA256/${hash("sha256", list)}`;
  const release = "/debian/dists/stable/Release";
  for (const path of [pool, byHash, release]) expect((await rig.get(path)).body.equals(rig.registry.body(path))).toBe(true);
  rig.registry.requests();
  rig.age();
  for (const path of [pool, byHash, release]) expect((await rig.get(path)).cache).toBe("hit");
  expect(rig.registry.requests().map(({ path }) => path)).toEqual([release]);
  expect((await rig.get("/debian-security/dists/stable-security/Release")).status).toBe(200);
});

test("Debian: refuses a list that does not match its name, and an invalid package", async () => {
  await using rig = await openMirrorRig();
  const wrong = `/debian/dists/stable/main/binary-all/by-hash/SHA256/${"0".repeat(64)}`;
  rig.registry.put(wrong, { type: "x/y", body: Buffer.from("something") });
  rig.registry.put("/debian/pool/main/x/x_1.deb", { type: "x/y", body: Buffer.from("<html>") });
  for (const path of [wrong, "/debian/pool/main/x/x_1.deb"]) expect((await rig.get(path)).status).toBe(502);
  expect(rig.kept().entries).toBe(0);
});

test("configures only the served registries inside", () => {
  const { env, files } = insideSettings(["npm", "go"], { pypi: "https://pypi.example/" });
  expect([Object.keys(env).filter((name) => name.startsWith("PIP")), files]).toEqual([[], []]);
});

test("never configures a loopback address as a registry inside", () => {
  const all = ["npm", "pypi", "crates", "go", "debian"] as const;
  for (const host of ["127.0.0.1:4873", "localhost:4873", "[::1]:4873"]) {
    const upstreams = Object.fromEntries(all.map((name) => [name, `http://${host}/${name}/`]));
    expect(insideSettings(all, upstreams)).toEqual(insideSettings(all, {}));
  }
  expect(JSON.stringify(insideSettings(all, {}).env)).not.toMatch(/127\.|localhost/);
});

test("configures a private registry inside by its own address", () => {
  const { env } = insideSettings(["npm", "pypi", "go"], {
    npm: "https://packages.example/npm",
    pypi: "http://packages.example:8080/pypi/",
    go: "https://packages.example/go/",
  });
  expect(env).toMatchObject({
    npm_config_registry: "https://packages.example/npm/",
    YARN_NPM_REGISTRY_SERVER: "https://packages.example/npm",
    PIP_INDEX_URL: "http://packages.example:8080/pypi/simple/",
    PIP_TRUSTED_HOST: "packages.example:8080",
    GOPROXY: "https://packages.example/go",
  });
});

test.each(["nonsense", "ftp://x/", "https://user:pw@x/", "https://x/?a=b"])("rejects the upstream %s without repeating it", (upstream) => {
  const make = () => createRegistries({ upstreams: { npm: upstream }, packages: {} as Packages });
  expect(make).toThrow(expect.objectContaining({ code: "invalid", message: expect.not.stringContaining("pw") }));
});
