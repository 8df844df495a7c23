import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { LOCAL_OWNER } from "../../contract/token/owner.ts";
import { createMemoryLog } from "../../log/memory/log.ts";
import { createDiskShares, OWNED_NAME } from "../../sandbox/disk-shares.ts";
import { fetchMirror } from "./git-mirror.ts";

let base = "";
const path = process.env.PATH ?? "";

beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), "caisson-test-mirror-"));
  const remote = join(base, "remote");
  mkdirSync(remote);
  const git = (...args: string[]) =>
    execFileSync("git", ["-c", "user.name=t", "-c", "user.email=t@test", ...args], { cwd: remote, env: { PATH: path, HOME: base } });
  git("init", "-q", "-b", "main");
  writeFileSync(join(remote, "a"), randomBytes(100_000));
  git("add", ".");
  git("commit", "-qm", "one");
});
afterEach(() => rm(base, { recursive: true, force: true }));

const source = () => ({ kind: "git" as const, url: pathToFileURL(join(base, "remote")).href, submodules: false });
const options = (disk: { reserveBytes?: number } = {}) => ({
  stateDir: join(base, "state"),
  git: { path, home: base },
  log: createMemoryLog(),
  owner: LOCAL_OWNER,
  holder: "o",
  holderGone: () => false,
  disk: createDiskShares({ stateDir: join(base, "state"), ...disk }),
});

test("refuses a mirror that needs the station's disk reserve, and leaves nothing", async () => {
  const full = options({ reserveBytes: Number.MAX_SAFE_INTEGER });
  await expect(fetchMirror(source(), full)).rejects.toMatchObject({ code: "no_space", message: expect.stringContaining("the repository") });
  expect(readdirSync(join(base, "state", "mirrors"))).toEqual([]);
});

test("records the first owner who fetches a mirror", async () => {
  const first = await fetchMirror(source(), options());
  const noted = () => JSON.parse(readFileSync(join(first, OWNED_NAME), "utf8")) as unknown;
  expect(noted()).toEqual({ owner: "local", bytes: expect.any(Number) });
  await fetchMirror(source(), options());
  expect(noted()).toMatchObject({ owner: "local" });
});
