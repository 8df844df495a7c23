import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createLocalSecrets, type LocalSecrets } from "./local-secrets.ts";

let stateDir = "";
let secrets: LocalSecrets;
let now = Date.parse("2030-01-01T00:00:00Z");
const value = "ghp_Zx81kQpW0vT5yLr7Nc2Md9Hs4Jg6Fb3A";

beforeEach(async () => {
  stateDir = await mkdtemp(join(tmpdir(), "caisson-test-secrets-"));
  secrets = createLocalSecrets({ stateDir, now: () => now });
});
afterEach(() => rm(stateDir, { recursive: true, force: true }));

/** Returns the value as a network reads it. */
async function valueNow(): Promise<string> {
  const { TOKEN: config } = (await secrets.configs("local")) as Record<string, { from: { file: string } }>;
  if (config === undefined) throw new Error("there is no such secret");
  return readFile(config.from.file, "utf8");
}

test("are readable by their user only, and listed without their values", async () => {
  const secret = await secrets.set("TOKEN", { value, hosts: ["GitHub.com"], git: {} });
  expect(secret).toEqual({
    name: "TOKEN",
    owner: "local",
    hosts: ["github.com"],
    ports: [443],
    git: { username: "x-access-token" },
    createdAt: "2030-01-01T00:00:00.000Z",
    updatedAt: "2030-01-01T00:00:00.000Z",
  });
  expect(await secrets.list()).toEqual([secret]);
  expect(JSON.stringify([await secrets.list(), await secrets.configs("local")])).not.toContain(value);
  const folder = join(stateDir, "secrets", "local");
  for (const name of await readdir(folder)) expect((await stat(join(folder, name))).mode & 0o777).toBe(0o600);
  expect((await stat(folder)).mode & 0o777).toBe(0o700);
  expect(await valueNow()).toBe(value);
});

test("are replaced under the same name and completely removed", async () => {
  await secrets.set("TOKEN", { value, hosts: ["github.com"] });
  now += 60_000;
  const again = await secrets.set("TOKEN", { value: "another-value", hosts: ["gitlab.com"], header: "X-Token" });
  expect(again).toMatchObject({ createdAt: "2030-01-01T00:00:00.000Z", updatedAt: "2030-01-01T00:01:00.000Z", header: "x-token" });
  expect(await valueNow()).toBe("another-value");
  await secrets.remove("TOKEN");
  expect(await secrets.list()).toEqual([]);
  expect(await readdir(join(stateDir, "secrets", "local"))).toEqual([]);
  await expect(secrets.remove("TOKEN")).rejects.toMatchObject({ code: "not_found" });
});

test("belong to one owner each", async () => {
  await secrets.set("TOKEN", { value, hosts: ["github.com"] }, { owner: "ada" });
  await secrets.set("TOKEN", { value: "of-somebody-else", hosts: ["example.com"] }, { owner: "ben" });
  expect((await secrets.list()).map(({ owner }) => owner)).toEqual(["ada", "ben"]);
  expect(await secrets.list({ owner: "ada" })).toHaveLength(1);
  expect(await secrets.configs("local")).toEqual({});
  await expect(secrets.remove("TOKEN")).rejects.toMatchObject({ code: "not_found" });
  await expect(secrets.list({ owner: "../ada" })).resolves.toEqual([]);
  await expect(secrets.set("TOKEN", { value, hosts: ["a.test"] }, { owner: "../ada" })).rejects.toMatchObject({ code: "invalid" });
});

test.each([
  ["too short", { value: "short", hosts: ["a.test"] }],
  ["containing a line break", { value: "two\nlines of it", hosts: ["a.test"] }],
  ["for no host", { value, hosts: [] }],
  ["for an invalid host", { value, hosts: ["a b"] }],
])("are rejected: %s", async (_what, request) => {
  const refused = secrets.set("TOKEN", request);
  await expect(refused).rejects.toMatchObject({ code: "invalid" });
  await expect(refused).rejects.not.toThrow(request.value);
  expect(await secrets.list()).toEqual([]);
});

test("a record that other users could have written is ignored", async () => {
  await secrets.set("TOKEN", { value, hosts: ["github.com"] });
  const file = join(stateDir, "secrets", "local", "TOKEN.json");
  const text = await readFile(file, "utf8");
  await rm(file);
  await writeFile(file, text.replace("github.com", "evil.test"), { mode: 0o666 });
  await chmod(file, 0o666);
  expect(await secrets.list()).toEqual([]);
  expect(await secrets.configs("local")).toEqual({});
});
