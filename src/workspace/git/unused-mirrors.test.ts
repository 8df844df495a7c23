import { mkdirSync, readdirSync, utimesSync, writeFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Session } from "../../contract/session/session.ts";
import { createMemoryLog } from "../../log/memory/log.ts";
import { mirrorFolder, mirrorStream } from "./git-mirror.ts";
import { type MirrorsOptions, removeMirror, unusedMirrors } from "./unused-mirrors.ts";

const url = "https://git.test/team/project.git";
let stateDir = "";
beforeEach(async () => {
  stateDir = await mkdtemp(join(tmpdir(), "caisson-test-mirrors-"));
});
afterEach(() => rm(stateDir, { recursive: true, force: true }));

/** Writes the parts of a mirror that matter here. Returns the name of its folder. */
function mirrorOf(address: string, owner = "local"): string {
  const folder = mirrorFolder(stateDir, { url: address, owner });
  mkdirSync(join(folder, "objects"), { recursive: true });
  writeFileSync(join(folder, "config"), `[remote "origin"]\n\turl = ${address}\n`);
  return basename(folder);
}

type Source = Partial<Session> & { url?: string; submodules?: boolean };
function options(sessions: Source[], more: Partial<MirrorsOptions> & { damaged?: number } = {}): MirrorsOptions {
  const all = sessions.map(({ url: address = url, submodules = false, ...session }) => ({
    ...{ owner: "local", source: { kind: "git", url: address, submodules } },
    ...session,
  }));
  const damaged = Array.from({ length: more.damaged ?? 0 }, () => ({ id: "x" }));
  const listAll = async () => ({ sessions: all, damaged }) as never;
  return { stateDir, log: createMemoryLog(), sessions: { listAll }, holder: "me", holderGone: () => false, ...more };
}
const namesOf = async (of: MirrorsOptions) => (await unusedMirrors(of)).map(({ name }) => name).sort();
const stored = () => readdirSync(join(stateDir, "mirrors")).sort();

describe("unused mirrors", () => {
  test("are mirrors without a session, with their address and last fetch", async () => {
    expect(await unusedMirrors(options([]))).toEqual([]);
    const used = mirrorOf(url);
    const unused = mirrorOf("https://user:secret@git.test/old.git");
    const fetched = new Date("2026-01-01");
    const folder = join(stateDir, "mirrors", unused);
    writeFileSync(join(folder, "FETCH_HEAD"), "");
    for (const path of [join(folder, "FETCH_HEAD"), folder]) utimesSync(path, fetched, fetched);
    expect(await unusedMirrors(options([{}]))).toEqual([
      { name: unused, url: "https://git.test/old.git", lastFetchedMs: fetched.getTime() },
    ]);
    expect(await namesOf(options([{ source: { kind: "empty" } }]))).toEqual([used, unused].sort());
  });

  test("are kept per owner, except the one that all owners shared in older versions", async () => {
    const shared = mirrorOf(url);
    const ofAda = mirrorOf(url, "ada");
    const ofBob = mirrorOf(url, "bob");
    expect(await namesOf(options([{ owner: "ada" }]))).toEqual([ofBob]);
    expect(await namesOf(options([{}]))).toEqual([ofAda, ofBob].sort());
    expect(await namesOf(options([]))).toEqual([shared, ofAda, ofBob].sort());
  });

  test("are unknown while a record is damaged or a session has submodules", async () => {
    const name = mirrorOf(url);
    expect(await namesOf(options([], { damaged: 1 }))).toEqual([]);
    expect(await namesOf(options([{ url: "https://git.test/other.git", submodules: true }]))).toEqual([]);
    expect(await removeMirror(name, options([], { damaged: 1 }))).toBe(false);
    expect(stored()).toEqual([name]);
  });

  test("do not include a mirror that a ship borrows from", async () => {
    const name = mirrorOf(url);
    const info = join(stateDir, "ships", "ship_a", "repository.git", "objects", "info");
    mkdirSync(info, { recursive: true });
    writeFileSync(join(info, "alternates"), `${join(stateDir, "mirrors", name, "objects")}\n`);
    expect(await namesOf(options([]))).toEqual([]);
    await rm(join(stateDir, "ships"), { recursive: true });
    expect(await namesOf(options([]))).toEqual([name]);
  });

  test("are removed under their fetch lock, with the leftovers of a crash", async () => {
    const [name, other] = [mirrorOf(url), mirrorOf("https://git.test/other.git")];
    const remains = `${other}.new`;
    mkdirSync(join(stateDir, "mirrors", remains, "objects"), { recursive: true });
    const none = options([]);
    expect(await namesOf(none)).toEqual([name, other, remains].sort());
    const lease = await none.log.acquire(mirrorStream(name), { holder: "fetching", ttlMs: 60_000, holderGone: () => false });
    expect(await removeMirror(name, none)).toBe(false);
    await none.log.release(lease as NonNullable<typeof lease>);
    expect(await removeMirror(name, options([{}]))).toBe(false);
    expect(stored()).toEqual([name, other, remains].sort());
    expect(await removeMirror(name, none)).toBe(true);
    expect(await removeMirror(name, none)).toBe(false);
    expect(await removeMirror(remains, none)).toBe(true);
    expect(await removeMirror(remains, none)).toBe(false);
    expect(await removeMirror("../sessions", none)).toBe(false);
    expect(stored()).toEqual([other]);
  });
});
