import { mkdirSync, mkdtempSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createSqliteLog } from "../../log/sqlite/log.ts";
import { createDiskShares } from "../../sandbox/disk-shares.ts";
import { packFolder } from "../../sandbox/tar/pack-folder.ts";
import { unpackFolder } from "../../sandbox/tar/unpack-folder.ts";
import { backUp, restore } from "./backup.ts";

let base = "";
let stateDir = "";
let file = "";
const CONTENT = "the text that a user worked on\n".repeat(200);

const event = (n: number) => ({ type: "test.happened", version: 1, data: { n } });

beforeEach(async () => {
  base = mkdtempSync(join(tmpdir(), "caisson-test-"));
  [stateDir, file] = [join(base, "state"), join(base, "backup.tar")];
  mkdirSync(join(stateDir, "tokens"), { recursive: true, mode: 0o700 });
  writeFileSync(join(stateDir, "tokens", "t.json"), CONTENT);
  const log = createSqliteLog({ path: join(stateDir, "log.db") });
  await log.append("run/parent", [1, 2].map(event));
  await log.append("run/fork", [event(3)], { inherits: { stream: "run/parent", seq: 1 } });
  await log.remove("run/parent");
  await log[Symbol.asyncDispose]();
  const pieces: Uint8Array[] = [];
  for await (const piece of backUp({
    stateDir,
    runtime: null,
    version: "1",
    compressed: false,
    disk: createDiskShares({ stateDir }),
  } as never))
    pieces.push(Uint8Array.from(piece));
  writeFileSync(file, Buffer.concat(pieces));
  renameSync(stateDir, `${stateDir}-before`);
  mkdirSync(stateDir, { mode: 0o700 });
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

test("rejects a backup with changed bytes before it writes anything", async () => {
  const bytes = readFileSync(file);
  const at = bytes.indexOf(CONTENT.slice(0, 100)) + 500;
  expect(at).toBeGreaterThan(600);
  bytes.fill("x", at, at + 64);
  writeFileSync(file, bytes);
  await expect(restore(file, { stateDir, runtime: null })).rejects.toMatchObject({
    code: "invalid",
    message: expect.stringContaining("is damaged"),
  });
  expect(readdirSync(stateDir)).toEqual([]);
});

test("restores a fork with the events of its removed parent", async () => {
  await restore(file, { stateDir, runtime: null });
  await using log = createSqliteLog({ path: join(stateDir, "log.db") });
  expect((await log.read("run/fork")).map(({ data }) => data)).toEqual([{ n: 1 }, { n: 3 }]);
  expect(await log.check()).toEqual([]);
});

test("verifies a backup on restore, except one of an older version", async () => {
  expect(await restore(file, { stateDir, runtime: null })).toMatchObject({ version: "1", isVerified: true });
  expect(readFileSync(join(stateDir, "tokens", "t.json"), "utf8")).toBe(CONTENT);
  const parts = join(base, "parts");
  mkdirSync(parts);
  await unpackFolder(
    parts,
    (async function* () {
      yield readFileSync(file);
    })(),
    { bytesMax: Number.MAX_SAFE_INTEGER },
  );
  const { digests: _, ...old } = JSON.parse(readFileSync(join(parts, "manifest.json"), "utf8")) as Record<string, unknown>;
  writeFileSync(join(parts, "manifest.json"), JSON.stringify(old));
  const pieces: Uint8Array[] = [];
  for await (const piece of packFolder(parts)) pieces.push(Uint8Array.from(piece));
  writeFileSync(file, Buffer.concat(pieces));
  rmSync(stateDir, { recursive: true });
  mkdirSync(stateDir, { mode: 0o700 });
  expect(await restore(file, { stateDir, runtime: null })).toMatchObject({ isVerified: false });
});
