import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { type Cache, openCache } from "./cache.ts";

const KIB = 1024;
const MIB = 1024 * KIB;
let folder: string;
beforeEach(() => {
  folder = join(mkdtempSync(join(tmpdir(), "caisson-test-")), "cache");
});
afterEach(() => rmSync(join(folder, ".."), { recursive: true }));

const record = (key: string) => ({ key, status: 200, contentType: "text/plain", etag: '"x"', lastModified: null, sha256: "0" }) as const;

async function put(cache: Cache, key: string, content: Buffer, list?: string): Promise<void> {
  const draft = await cache.begin();
  await draft.write(content);
  await draft.keep(record(key), list === undefined ? undefined : Buffer.from(list));
  await draft.close();
}

async function text(cache: Cache, key: string): Promise<string | null> {
  const entry = await cache.find(key);
  if (entry === null) return null;
  return (await entry.read(0, entry.record.bytes).finally(() => entry.close())).toString();
}

function files(part: "entries" | "tmp"): string[] {
  return readdirSync(join(folder, part), { recursive: true, withFileTypes: true })
    .filter((one) => one.isFile())
    .map(({ parentPath, name }) => join(parentPath, name));
}

test("finds an entry with its list in every process, and under no other key", async () => {
  const cache = await openCache({ folder, bytesMax: MIB });
  const other = await openCache({ folder, bytesMax: MIB });
  await put(cache, "a", Buffer.from("content"), "a list");
  expect(await text(other, "a")).toBe("content");
  const entry = await other.find("a");
  expect(await entry?.list()).toBe("a list");
  expect(entry?.record).toMatchObject({ key: "a", bytes: 7, listBytes: 6, etag: '"x"' });
  await entry?.close();
  expect(await text(cache, "b")).toBeNull();
  await put(other, "a", Buffer.from("another"));
  expect(await text(cache, "a")).toBe("another");
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  expect(files("entries").map((path) => statSync(path).mode & 0o777)).toEqual([0o600]);
});

test("does not serve a truncated, extended, damaged or misplaced file", async () => {
  const cache = await openCache({ folder, bytesMax: MIB });
  const damages: ((path: string) => void)[] = [
    (path) => truncateSync(path, 3),
    (path) => truncateSync(path, statSync(path).size - 1),
    (path) => truncateSync(path, 0),
    (path) => appendFileSync(path, "x"),
    (path) => writeFileSync(path, readFileSync(path).subarray(1)),
    (path) => writeFileSync(path, readFileSync(path, "latin1").replace('"key":"a"', '"key":"b"'), "latin1"),
    (path) => writeFileSync(path, readFileSync(path, "latin1").replace('"status":200', '"status":999'), "latin1"),
  ];
  for (const damage of damages) {
    await put(cache, "a", Buffer.from("content"));
    damage(files("entries")[0] as string);
    expect(await text(cache, "a")).toBeNull();
  }
});

test("never finds an incomplete file", async () => {
  const cache = await openCache({ folder, bytesMax: MIB });
  const draft = await cache.begin();
  await draft.write(Buffer.from("half"));
  expect(await text(cache, "a")).toBeNull();
  const program = `
    const { openCache } = await import(${JSON.stringify(join(import.meta.dirname, "cache.ts"))});
    const draft = await (await openCache({ folder: ${JSON.stringify(folder)}, bytesMax: 1e6 })).begin();
    await draft.write(Buffer.from("half"));
    console.log("written");
    setInterval(() => {}, 1000);`;
  const child = spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: ["ignore", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  await once(child.stdout, "data");
  expect(files("tmp")).toHaveLength(2);
  // Files of living processes stay.
  await openCache({ folder, bytesMax: MIB });
  expect(files("tmp")).toHaveLength(2);
  child.kill("SIGKILL");
  await once(child, "exit");
  await openCache({ folder, bytesMax: MIB });
  expect(files("tmp")).toHaveLength(1);
  expect(files("entries")).toEqual([]);
  await draft.close();
  expect(files("tmp")).toEqual([]);
});

test("evicts the least recently used entries, but keeps open ones readable", async () => {
  const cache = await openCache({ folder, bytesMax: MIB });
  const content = Buffer.alloc(200 * KIB, "c");
  const keys = ["a", "b", "c", "d"];
  for (const key of keys) await put(cache, key, content);
  await cache.close();
  // Each is some hours older than the next.
  const hours = 3 * 3_600_000;
  for (const path of files("entries")) {
    const age = keys.findIndex((key) => readFileSync(path, "latin1").includes(`"key":"${key}"`)) - keys.length;
    utimesSync(path, new Date(Date.now() + age * hours), new Date(Date.now() + age * hours));
  }
  expect(await text(cache, "a")).not.toBeNull();
  const reading = await openCache({ folder, bytesMax: MIB }).then((other) => other.find("d"));
  await put(cache, "e", content);
  await cache.close();
  expect(await Promise.all([...keys, "e"].map(async (key) => (await text(cache, key)) !== null))).toEqual([true, false, true, true, true]);
  rmSync(join(folder, "entries"), { recursive: true });
  expect((await reading?.read(0, content.length))?.equals(content)).toBe(true);
  await reading?.close();
});

test("notes a use at most once an hour, and does not make the entry look newer", async () => {
  const hour = 3_600_000;
  let nowMs = Date.now();
  const cache = await openCache({ folder, bytesMax: MIB, now: () => nowMs });
  await put(cache, "a", Buffer.from("content"));
  const [path = ""] = files("entries");
  const { mtimeMs } = statSync(path);
  const usedAfter = async (ms: number) => {
    nowMs += ms;
    await text(cache, "a");
    return Math.round((statSync(path).atimeMs - mtimeMs) / hour);
  };
  expect([await usedAfter(10 * hour), await usedAfter(hour / 4), await usedAfter(2 * hour)]).toEqual([10, 10, 12]);
  expect(Math.abs(statSync(path).mtimeMs - mtimeMs)).toBeLessThan(2);
});

test("stays within its limit with several writers and tiny entries", async () => {
  const bytesMax = 2 * MIB;
  const caches = await Promise.all([1, 2].map(() => openCache({ folder, bytesMax })));
  for (let index = 0; index < 150; index++)
    await put(caches[index % 2] as Cache, `key ${index}`, Buffer.alloc(index % 3 === 0 ? 100 * KIB : 1));
  for (const cache of caches) await cache.close();
  // Each process recounts at the latest after it has added a twentieth of the limit itself.
  expect(files("entries").reduce((sum, path) => sum + statSync(path).size, 0)).toBeLessThan(bytesMax * 1.1);
  expect(files("entries").length).toBeLessThan(150);
});

test("limits one entry, and all that are written at the same time", async () => {
  const cache = await openCache({ folder, bytesMax: MIB, entryBytesMax: 400 * KIB });
  const draft = await cache.begin();
  await expect(draft.write(Buffer.alloc(401 * KIB))).rejects.toMatchObject({ code: "too_large" });
  await draft.close();
  const drafts = await Promise.all([1, 2, 3].map(() => cache.begin()));
  for (const one of drafts.slice(0, 2)) await one.write(Buffer.alloc(400 * KIB));
  await expect(drafts[2]?.write(Buffer.alloc(300 * KIB))).rejects.toMatchObject({ code: "no_space" });
  await drafts[0]?.close();
  await drafts[2]?.write(Buffer.alloc(300 * KIB));
  for (const one of drafts) await one.close();
  expect(files("tmp")).toEqual([]);
});

test("reports an unwritable folder as denied", async () => {
  const cache = await openCache({ folder, bytesMax: MIB });
  rmSync(join(folder, "tmp"), { recursive: true });
  await expect(cache.begin()).rejects.toMatchObject({ code: "denied" });
});
