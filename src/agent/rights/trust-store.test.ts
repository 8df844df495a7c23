import { chmod, mkdir, mkdtemp, readdir, rename, rm, stat, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createTrustStore, trusts } from "./trust-store.ts";

let dir = "";
let file = "";
beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), "caisson-test-trust-"));
  await mkdir(join(dir, "clone"));
  file = join(dir, "clone", "a.prompt");
  await writeFile(file, "one");
});
afterEach(() => rm(dir, { recursive: true, force: true }));

const store = () => createTrustStore({ stateDir: join(dir, "state") });
const record = async () => join(dir, "state", "trust", (await readdir(join(dir, "state", "trust")))[0] ?? "");

test("trusts one version of one file, in a private record outside its folder", async () => {
  const rights = ["reach x.org"];
  expect(await store().get(file)).toBeNull();
  await store().record({ path: file, source: "one", rights });
  const trustRecord = await store().get(file);
  expect(trustRecord).toMatchObject({ path: file, rights });
  expect([trusts(trustRecord, "one"), trusts(trustRecord, "one "), trusts(null, "one")]).toEqual([true, false, false]);
  expect((await stat(await record())).mode & 0o777).toBe(0o600);
  expect((await stat(join(dir, "state", "trust"))).mode & 0o777).toBe(0o700);
  expect(await readdir(join(dir, "clone"))).toEqual(["a.prompt"]);
  const other = join(dir, "clone", "b.prompt");
  await writeFile(other, "one");
  expect(await store().get(other)).toBeNull();
});

test("follows links to the real file, but does not follow a moved folder", async () => {
  await store().record({ path: file, source: "one", rights: [] });
  await symlink(join(dir, "clone"), join(dir, "link"));
  expect(await store().get(join(dir, "link", "a.prompt"))).toMatchObject({ path: file });
  await rename(join(dir, "clone"), join(dir, "moved"));
  expect(await store().get(join(dir, "moved", "a.prompt"))).toBeNull();
});

test("replaces the first record of a file with the second, and lists all", async () => {
  await store().record({ path: file, source: "one", rights: ["a"] });
  await store().record({ path: file, source: "two", rights: ["b"] });
  expect(await store().list()).toMatchObject([{ path: file, rights: ["b"] }]);
  expect(await readdir(join(dir, "state", "trust"))).toHaveLength(1);
});

test("revokes trust even if the file no longer exists", async () => {
  await store().record({ path: file, source: "one", rights: [] });
  await rm(file);
  expect(await store().revoke(file)).toBe(true);
  expect([await store().revoke(file), await store().list()]).toEqual([false, []]);
});

test("ignores a record that is damaged or writable by others", async () => {
  await store().record({ path: file, source: "one", rights: [] });
  await chmod(await record(), 0o620);
  expect([await store().get(file), await store().list()]).toEqual([null, []]);
  await chmod(await record(), 0o600);
  expect(await store().get(file)).not.toBeNull();
  await writeFile(await record(), "{");
  expect([await store().get(file), await store().list()]).toEqual([null, []]);
});
