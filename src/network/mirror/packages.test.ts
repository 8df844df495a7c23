import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PassThrough } from "node:stream";
import { gzipSync } from "node:zlib";
import { expect, onTestFinished, test } from "vitest";
import { openMirrorRig } from "../../../test/support/network/registries/mirror-rig.ts";
import type { PackagesOptions } from "./mirror-options.ts";
import type { UpstreamResponse } from "./package-upstream.ts";
import { openPackages } from "./packages.ts";
import type { Found, Resource } from "./resource.ts";

const MIB = 1024 ** 2;
const file: Resource = { url: new URL("http://registry.example/file"), accept: "*/*", keeps: "always" };

function open(options: Partial<PackagesOptions> & { now?: () => number }) {
  const cacheDir = mkdtempSync(join(tmpdir(), "caisson-test-"));
  const packages = openPackages({ cacheDir, ...options });
  onTestFinished(async () => {
    await packages.close();
    rmSync(cacheDir, { recursive: true });
  });
  return { packages, temporary: () => readdirSync(join(cacheDir, "tmp")).length };
}

/** An upstream whose answers the test sends piece by piece. */
function scripted() {
  const answers: { body: PassThrough; answer(head: Partial<UpstreamResponse>): void }[] = [];
  const waiting: (() => void)[] = [];
  return {
    get: ({ signal }: { signal?: AbortSignal }) =>
      new Promise<UpstreamResponse>((resolve) => {
        const body = new PassThrough();
        signal?.addEventListener("abort", () => body.destroy(new Error("aborted")));
        answers.push({
          body,
          answer: (head) => resolve({ status: 200, headers: { "transfer-encoding": "chunked" }, body, address: "192.0.2.1", ...head }),
        });
        waiting.shift()?.();
      }),
    async next() {
      if (answers.length === 0) await new Promise<void>((resolve) => waiting.push(resolve));
      return answers.shift() as (typeof answers)[number];
    },
    pending: () => answers.length,
  };
}

async function whole(found: Awaited<ReturnType<ReturnType<typeof openPackages>["obtain"]>>): Promise<Buffer> {
  const parts: Buffer[] = [];
  try {
    for await (const part of (found as Found).read()) parts.push(part);
  } finally {
    await (found as Found).close();
  }
  return Buffer.concat(parts);
}

test("shares one download among concurrent requests", async () => {
  await using rig = await openMirrorRig();
  const answers = await Promise.all(
    Array.from({ length: 20 }, (_, index) => rig.get(index % 2 ? "/npm/caisson-left" : "/npm/caisson-left/-/caisson-left-1.0.0.tgz")),
  );
  expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200));
  const paths = rig.registry.requests().map(({ path, headers }) => `${path} ${headers.accept}`);
  expect(new Set(paths).size).toBe(paths.length);
});

test("streams bytes as the registry sends them, but holds back the last", async () => {
  const upstream = scripted();
  const { packages } = open({ get: upstream.get });
  const obtaining = packages.obtain(file);
  const { body, answer } = await upstream.next();
  answer({});
  const found = (await obtaining) as Found;
  const parts = found.read()[Symbol.asyncIterator]();
  body.write(Buffer.alloc(MIB, "a"));
  const first = await parts.next();
  expect(first.value?.length).toBeGreaterThan(0);
  // A second reader that comes late gets all of it too.
  const late = packages.obtain(file).then(whole);
  let bytes = first.value?.length ?? 0;
  while (bytes < MIB - 16 * 1024) bytes += (await parts.next()).value?.length ?? 0;
  expect(bytes).toBe(MIB - 16 * 1024);
  body.end("end");
  for (let next = await parts.next(); !next.done; next = await parts.next()) bytes += next.value.length;
  await found.close();
  expect(bytes).toBe(MIB + 3);
  expect((await late).length).toBe(MIB + 3);
  expect(upstream.pending()).toBe(0);
  const hit = (await packages.obtain(file)) as Found;
  expect(hit).toMatchObject({ freshness: "hit", bytes: MIB + 3 });
  await hit.close();
});

test("shows a broken transfer as truncated to every reader, and does not keep it", async () => {
  const upstream = scripted();
  const { packages, temporary } = open({ get: upstream.get });
  const obtaining = [packages.obtain(file), packages.obtain(file)];
  const { body, answer } = await upstream.next();
  answer({});
  const reading = obtaining.map(async (one) => whole(await one));
  body.write(Buffer.alloc(MIB));
  body.destroy(new Error("cable cut"));
  for (const one of reading) await expect(one).rejects.toMatchObject({ code: "unavailable" });
  const again = packages.obtain(file);
  const second = await upstream.next();
  second.answer({});
  second.body.end("whole");
  expect((await whole(await again)).toString()).toBe("whole");
  expect(temporary()).toBe(0);
});

test("rejects a transfer without a certain end", async () => {
  const upstream = scripted();
  const { packages } = open({ get: upstream.get });
  const obtaining = packages.obtain(file).then(whole);
  const { body, answer } = await upstream.next();
  answer({ headers: {} });
  body.end("perhaps all");
  await expect(obtaining).rejects.toMatchObject({ code: "protocol" });
});

test("ends a download with its last reader, and starts another for the next", async () => {
  const upstream = scripted();
  const { packages, temporary } = open({ get: upstream.get });
  const obtaining = packages.obtain(file);
  const { body, answer } = await upstream.next();
  answer({});
  const found = (await obtaining) as Found;
  body.write("begin");
  await found.close();
  expect(body.destroyed).toBe(true);
  const again = packages.obtain(file);
  const second = await upstream.next();
  second.answer({});
  second.body.end("all");
  expect((await whole(await again)).toString()).toBe("all");
  await expect.poll(temporary).toBe(0);
});

test("does not let a slow reader hold up another", async () => {
  const upstream = scripted();
  const { packages } = open({ get: upstream.get });
  const obtaining = [packages.obtain(file), packages.obtain(file)] as const;
  const { body, answer } = await upstream.next();
  answer({});
  const slow = (await obtaining[0]) as Found;
  const parts = slow.read()[Symbol.asyncIterator]();
  body.end(Buffer.alloc(8 * MIB));
  expect((await whole(await obtaining[1])).length).toBe(8 * MIB);
  let bytes = 0;
  for (let next = await parts.next(); !next.done; next = await parts.next()) bytes += next.value.length;
  await slow.close();
  expect(bytes).toBe(8 * MIB);
});

test("refuses a package that differs from the registry's list, and never keeps it", async () => {
  await using rig = await openMirrorRig();
  const path = "/npm/caisson-left/-/caisson-left-1.0.0.tgz";
  rig.registry.fault(path, { body: Buffer.from("evil") });
  const refused = await rig.get(path, { headers: { accept: "application/json" } });
  expect(refused).toMatchObject({ status: 502, text: expect.stringContaining("does not match the digest in the registry's own list") });
  rig.registry.fault(path, { body: Buffer.alloc(MIB, "evil") });
  await expect(rig.get(path)).rejects.toThrow();
  expect(rig.events.filter(({ type }) => type === "network.denied").map(({ data }) => data)).toMatchObject([
    { reason: "not_verified" },
    { reason: "not_verified" },
  ]);
  expect(rig.kept().text).not.toContain("evil");
  rig.registry.fault(path, null);
  expect((await rig.get(path)).body.equals(rig.registry.body(path))).toBe(true);
  expect((await rig.get("/npm/caisson-old/-/caisson-old-0.0.1.tgz")).status).toBe(200);
});

test("hides a file that is not listed, even if the server has it", async () => {
  await using rig = await openMirrorRig();
  rig.registry.put("/npm/caisson-left/-/caisson-left-9.9.9.tgz", { type: "application/octet-stream", body: Buffer.from("unlisted") });
  for (let times = 0; times < 3; times++) expect((await rig.get("/npm/caisson-left/-/caisson-left-9.9.9.tgz")).status).toBe(404);
  expect(rig.registry.requests().map(({ path }) => path)).toEqual(["/npm/caisson-left"]);
});

test("finds a version that is newer than the cached list", async () => {
  await using rig = await openMirrorRig();
  await rig.get("/npm/caisson-left");
  await using newer = await openMirrorRig();
  rig.age();
  const page = JSON.parse(newer.registry.body("/npm/caisson-left").toString().replaceAll(newer.registry.url, rig.registry.url));
  const body = rig.registry.body("/npm/caisson-left/-/caisson-left-1.0.0.tgz");
  const { dist } = page.versions["1.0.0"];
  page.versions["1.2.0"] = { ...page.versions["1.0.0"], dist: { ...dist, tarball: dist.tarball.replace("1.0.0", "1.2.0") } };
  rig.registry.put("/npm/caisson-left", { type: "application/json", body: Buffer.from(JSON.stringify(page)) });
  rig.registry.put("/npm/caisson-left/-/caisson-left-1.2.0.tgz", { type: "application/octet-stream", body });
  expect((await rig.get("/npm/caisson-left/-/caisson-left-1.2.0.tgz")).body.equals(body)).toBe(true);
});

test("gives up on a page that unpacks to far too much", async () => {
  await using rig = await openMirrorRig({ bytesMax: 8 * MIB });
  const bomb = gzipSync(Buffer.alloc(64 * MIB, " "));
  rig.registry.fault("/npm/caisson-left", { status: 200, headers: { "content-encoding": "gzip", "content-type": "application/json" } });
  expect((await rig.get("/npm/caisson-left")).status).toBe(502);
  await using other = await openMirrorRig({
    bytesMax: 8 * MIB,
    get: async () => {
      const body = new PassThrough();
      body.end(bomb);
      return { status: 200, headers: { "content-encoding": "gzip", "content-length": String(bomb.length) }, body, address: "" };
    },
  });
  expect(await other.get("/npm/caisson-left")).toMatchObject({ status: 502, text: expect.stringContaining("must not exceed") });
  // The draft is removed after the answer was sent.
  await expect.poll(() => other.kept()).toMatchObject({ entries: 0, temporary: 0 });
});

test.each(["no json", "[1]x", "null", "<html>captive portal</html>", '{"versions":{"1.0.0":null,"__proto__":{"dist":1}}}'])(
  "survives a page %s",
  async (text) => {
    await using rig = await openMirrorRig();
    await rig.get("/npm/caisson-left");
    rig.age();
    rig.registry.fault("/npm/caisson-left", { body: Buffer.from(text) });
    const answered = await rig.get("/npm/caisson-left");
    expect(answered.status).toBe(200);
    if (answered.cache !== "stale") expect(JSON.parse(answered.text)).toEqual(JSON.parse(text));
    expect(({} as { dist?: unknown }).dist).toBeUndefined();
  },
);

test("does not try an unreachable registry for each package", async () => {
  let tried = 0;
  let nowMs = 0;
  const get = async () => {
    tried++;
    throw new Error("no route");
  };
  const { packages } = open({ get, now: () => nowMs });
  for (let index = 0; index < 10; index++)
    await expect(packages.obtain({ ...file, variant: String(index) })).rejects.toMatchObject({ code: "unavailable" });
  expect(tried).toBe(1);
  nowMs += 60_000;
  await expect(packages.obtain(file)).rejects.toMatchObject({ code: "unavailable" });
  expect(tried).toBe(2);
});

test("ends the downloads in progress on close", async () => {
  const upstream = scripted();
  const { packages, temporary } = open({ get: upstream.get });
  const obtaining = packages.obtain(file);
  const { body, answer } = await upstream.next();
  answer({});
  const broken = expect(whole(await obtaining)).rejects.toMatchObject({ code: "unavailable" });
  body.write("begin");
  await packages.close();
  await broken;
  await expect.poll(temporary).toBe(0);
});
