import { execFileSync } from "node:child_process";
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { LocalVerbs } from "../compose/station.ts";
import { fakeStationParts } from "../compose/testing-compose.ts";
import { CaissonError } from "../contract/error/error.ts";
import { SandboxConfig } from "../contract/sandbox/sandbox.ts";
import { resolveMounts } from "../sandbox/shared-folders.ts";
import { viewState } from "../sandbox/state-places.ts";
import { packFolder } from "../sandbox/tar/pack-folder.ts";
import { uploadedTree } from "../sandbox/uploaded-tree.ts";
import type { Station } from "../verbs/station.ts";
import { readChangesArchive } from "../workspace/changes-archive.ts";
import { applyAndDie } from "../workspace/testing-apply.ts";
import { createCallerMachine } from "./caller-machine.ts";
import { withClientSideFolders } from "./transfer-folders.ts";

let base: string;
let folder: string;
let station: LocalVerbs;
const notices: string[] = [];
let puts = 0;

beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), "caisson-elsewhere-"));
  station = (await fakeStationParts(join(base, "there"))).openStation();
  folder = join(base, "here", "project");
  await mkdir(folder, { recursive: true });
  await mkdir(join(base, "here", "state"), { mode: 0o700 });
  for (const [name, text] of Object.entries({ "a.txt": "old\n", "b.txt": "same\n", ".env": "KEY=1\n", "gone.txt": "x\n" }))
    await writeFile(join(folder, name), text);
  notices.length = 0;
  puts = 0;
});
afterEach(async () => {
  await station[Symbol.asyncDispose]();
  await rm(base, { recursive: true, force: true });
});

/** The station as seen from another machine. */
function atHome(
  of: Station = station,
  {
    state = "state",
    at = "http://one.test",
    agree = async () => {},
  }: { state?: string; at?: string; agree?: (folder: string) => Promise<void> } = {},
): Station {
  const stateDir = join(base, "here", state);
  const counted: Station = {
    ...of,
    uploads: {
      ...of.uploads,
      put: async (...args) => {
        puts += 1;
        return await of.uploads.put(...args);
      },
    },
  };
  return withClientSideFolders(counted, {
    machine: createCallerMachine({ stateDir, station: at }),
    agree,
    places: { home: join(base, "here"), stateDir, configDir: join(base, "here", "config") },
    notice: (text) => void notices.push(text),
    git: { path: process.env.PATH ?? "" },
    author: { name: "Somebody", email: "somebody@example.org" },
  });
}

const hiding = { hide: [], show: [] };

/** Runs an agent that changes some files of the folder. */
async function run(home: Station): Promise<string> {
  const script = join(base, "model.json");
  const write = (path: string, content: string) => ({ tool: "write", arguments: { path, content } });
  const calls = [write("a.txt", "new\n"), write("deep/c.txt", "one\n"), write(".envrc", "x\n"), write(".env", "KEY=2\n")];
  await writeFile(script, JSON.stringify({ turns: [{ calls }, { say: "Done." }] }));
  const view = await home.runs.start({ task: "do it", model: `scripted:${script}`, source: { kind: "folder", path: folder, hiding } });
  expect(await home.runs.wait(view.run)).toMatchObject({ finish: "done", folder });
  return view.run;
}

const text = (path: string) => readFile(join(folder, path), "utf8");

describe("a run of a remote station on a local folder", () => {
  test("changes nothing here until it is applied, and gets no credentials", async () => {
    const home = atHome();
    const name = await run(home);
    expect(await text("a.txt")).toBe("old\n");
    expect(notices).toEqual([expect.stringContaining("1 file that looks like a credential is not sent")]);
    const [{ id } = { id: "" }] = await station.uploads.list();
    expect((await readdir(join(base, "there", "state", "uploads", id, "tree"))).sort()).toEqual(["a.txt", "b.txt", "gone.txt"]);
    const diff = await home.sessions.diff(name);
    expect(diff.files.map(({ path, kind, heldBack }) => [path, kind, heldBack !== null])).toEqual([
      [".envrc", "added", true],
      ["a.txt", "modified", false],
      ["deep/c.txt", "added", false],
    ]);
    const { applied, skipped, folder: to } = await home.sessions.apply(name);
    expect([applied, skipped.map(({ path }) => path), to]).toEqual([["a.txt", "deep/c.txt"], [".envrc"], folder]);
    expect([await text("a.txt"), await text("deep/c.txt"), await text(".env")]).toEqual(["new\n", "one\n", "KEY=1\n"]);
    expect((await home.sessions.diff(name)).files.map(({ path }) => path)).toEqual([".envrc"]);
    const { history, source } = await home.sessions.get(name);
    expect(history.at(-1)).toMatchObject({ type: "session.applied", data: { folder, count: 2 } });
    expect(source).toMatchObject({ kind: "folder", path: folder });
    // A file that was applied and has since been edited belongs to the user again.
    await writeFile(join(folder, "a.txt"), "mine\n");
    await expect(home.sessions.apply(name)).rejects.toMatchObject({ code: "conflict" });
  });

  test("is applied completely after a killed apply, and the station learns of both", async () => {
    const home = atHome();
    const name = await run(home);
    const stateDir = join(base, "here", "state");
    const files = { "a.txt": ["old\n", "new\n"], "deep/c.txt": [null, "one\n"] } as Record<string, [string | null, string | null]>;
    const paths = async () => (await home.sessions.diff(name)).files.map(({ path }) => path);
    const whole = await paths();
    for (const at of [1, 2, 3, 4]) {
      applyAndDie({ folder, stateDir, at, files });
      expect(await paths(), `killed at ${at}`).toEqual(whole);
      expect(await text("a.txt")).toBe("old\n");
    }
    const known = async () =>
      (await readChangesArchive(station.sessions.changes(name))).manifest.files.map(({ applied }) => applied !== null);
    expect(await known()).toEqual([false, false, false, false]);
    // Killed after its last effect, but before the report to the station.
    applyAndDie({ folder, stateDir, at: 5, files });
    expect((await home.sessions.apply(name)).applied).toEqual([]);
    expect([await text("a.txt"), await text("deep/c.txt"), await known()]).toEqual(["new\n", "one\n", [false, false, true, true]]);
    await writeFile(join(folder, "a.txt"), "old\n");
    await rm(join(folder, "deep"), { recursive: true });
    applyAndDie({ folder, stateDir, at: 3, files });
    expect((await home.sessions.apply(name, { force: true })).applied).toEqual(["a.txt", "deep/c.txt"]);
    expect([await text("a.txt"), await text("deep/c.txt")]).toEqual(["new\n", "one\n"]);
  });

  test("does not apply over local edits unless it is forced", async () => {
    const home = atHome();
    const name = await run(home);
    await writeFile(join(folder, "a.txt"), "mine\n");
    const changed = (await home.sessions.diff(name)).files.filter(({ changedOutside }) => changedOutside);
    expect(changed.map(({ path }) => path)).toEqual(["a.txt"]);
    await expect(home.sessions.apply(name)).rejects.toMatchObject({ code: "conflict", details: { paths: ["a.txt"] } });
    expect(await text("a.txt")).toBe("mine\n");
    let patch = "";
    for await (const piece of home.sessions.patch(name, { paths: ["a.txt"] }))
      if (piece.kind === "patch") patch += Buffer.from(piece.bytes).toString();
    expect(patch).toContain("-mine\n+new\n");
    await home.sessions.apply(name, { force: true });
    expect(await text("a.txt")).toBe("new\n");
  });

  test("can be committed on a branch of the local repository", async () => {
    const git = (...args: string[]) => execFileSync("git", ["-C", folder, ...args], { encoding: "utf8" }).trim();
    git("init", "-q", "-b", "main");
    git("-c", "user.name=x", "-c", "user.email=x@example.org", "add", "a.txt", "b.txt");
    git("-c", "user.name=x", "-c", "user.email=x@example.org", "commit", "-qm", "first");
    const home = atHome();
    const name = await run(home);
    const { branch, repository } = await home.sessions.branch(name, { name: "work" });
    expect([branch, repository]).toEqual(["work", folder]);
    expect(git("show", "work:a.txt")).toBe("new");
    expect(git("log", "-1", "--format=%an", "work")).toBe("Somebody");
    expect(await text("a.txt")).toBe("old\n");
    expect((await home.sessions.get(name)).history.at(-1)).toMatchObject({ type: "session.branched" });
  });

  test("is found by its folder from this machine only, and sends a folder once", async () => {
    const home = atHome();
    const name = await run(home);
    await mkdir(join(folder, "below"));
    await rm(join(folder, "below"), { recursive: true });
    const second = await run(home);
    expect(puts).toBe(1);
    expect((await home.runs.list({ folder: join(folder, "deeper", "still") })).runs.map((each) => each.run).sort()).toEqual(
      [name, second].sort(),
    );
    expect((await atHome(station, { state: "other-state" }).runs.list({ folder })).runs).toEqual([]);
    expect((await station.runs.list({ folder })).runs).toEqual([]);
    await writeFile(join(folder, "b.txt"), "changed\n");
    await run(home);
    expect(puts).toBe(2);
  });

  test("does not touch a folder of another machine, or one that was never sent", async () => {
    const name = await run(atHome());
    await mkdir(join(base, "here", "stranger"), { mode: 0o700 });
    const stranger = atHome(station, { state: "stranger" });
    await expect(stranger.sessions.apply(name)).rejects.toMatchObject({ code: "invalid", hint: expect.stringContaining("--to DIR") });
    const target = join(base, "target");
    await mkdir(target);
    await writeFile(join(target, "a.txt"), "old\n");
    await stranger.sessions.apply(name, { folder: target, paths: ["a.txt"] });
    expect(await readFile(join(target, "a.txt"), "utf8")).toBe("new\n");
    // The station knows this machine's id, but has made up the folder.
    const lying: Station = {
      ...station,
      sessions: {
        ...station.sessions,
        async get(sessionName) {
          const session = await station.sessions.get(sessionName);
          if (session.source.kind !== "upload") throw new Error("not sent");
          return { ...session, source: { ...session.source, origin: { ...session.source.origin, folder: join(base, "target") } } };
        },
      },
    };
    await expect(atHome(lying).sessions.apply(name)).rejects.toMatchObject({ code: "invalid" });
  });

  test("does not touch a folder that was sent to another station", async () => {
    const name = await run(atHome());
    const elsewhere = atHome(station, { at: "http://two.test" });
    for (const verb of ["apply", "branch"] as const) await expect(elsewhere.sessions[verb](name)).rejects.toBeInstanceOf(CaissonError);
    expect(await text("a.txt")).toBe("old\n");
    // The records of earlier versions name no station, so every station may use the folder.
    const dir = join(base, "here", "state", "elsewhere");
    await writeFile(join(dir, "folders.json"), JSON.stringify([folder]));
    await rm(join(dir, "sent-folders.json"));
    await elsewhere.sessions.apply(name, { paths: ["a.txt"] });
  });

  test("is applied only if the caller confirms or names the folder", async () => {
    const agree = (to: string) => Promise.reject(new CaissonError("conflict", to));
    const name = await run(atHome());
    const home = atHome(station, { agree });
    for (const verb of ["apply", "branch"] as const) await expect(home.sessions[verb](name)).rejects.toMatchObject({ message: folder });
    await home.sessions.apply(name, { folder, paths: ["a.txt"] });
    expect(await text("a.txt")).toBe("new\n");
  });
});

describe("a sandbox of a remote station on a local folder", () => {
  const config = (access: "overlay" | "ro" | "rw") =>
    SandboxConfig.parse({ workspace: { kind: "folder", path: folder, access }, keep: true });

  test("gets a copy of the folder without its credentials", async () => {
    const home = atHome();
    await using held = await home.sandboxes.create({ spec: config("overlay"), guard: { named: true, allowHooks: false, ...hiding } });
    const { entries } = await held.list("/workspace");
    expect(entries.map(({ name }) => name).sort()).toEqual(["a.txt", "b.txt", "gone.txt"]);
    await expect(home.sandboxes.create({ spec: config("rw") })).rejects.toMatchObject({ code: "unsupported" });
    const mounts = [{ path: folder, target: "/data", access: "rw" as const }];
    await expect(home.sandboxes.create({ spec: SandboxConfig.parse({ mounts }) })).rejects.toMatchObject({ code: "unsupported" });
  });

  test("gets further folders as read-only or overlay copies", async () => {
    const state = viewState(join(base, "there", "state"));
    const { id } = await station.uploads.put(packFolder(folder));
    const tree = uploadedTree(join(base, "there", "state"), id);
    const mount = { path: tree, target: "/data" };
    for (const access of ["ro", "overlay"] as const) expect(resolveMounts([{ ...mount, access }], { state: () => state })).toHaveLength(1);
    expect(() => resolveMounts([{ ...mount, access: "rw" }], { state: () => state })).toThrow("keeps its own state");
    const beside = { ...mount, path: join(tree, ".."), access: "ro" as const };
    expect(() => resolveMounts([beside], { state: () => state })).toThrow("keeps its own state");
  });

  test("rejects a folder that the caller did not name and that looks like a mistake", async () => {
    const home = atHome();
    const guard = { named: false, allowHooks: false, ...hiding };
    const there = SandboxConfig.parse({ workspace: { kind: "folder", path: join(base, "here") } });
    await expect(home.sandboxes.create({ spec: there, guard })).rejects.toMatchObject({ code: "invalid" });
    expect(puts).toBe(0);
  });
});

describe("hiding rules from a station", () => {
  /** A station that lies about a folder's rules. */
  const lying = (of: Station, rules: { hide: string[]; show: string[] }): Station => ({
    ...of,
    sessions: {
      ...of.sessions,
      get: async (...args) => {
        const view = await of.sessions.get(...args);
        const { source } = view;
        if (source.kind !== "upload") return view;
        return { ...view, source: { ...source, origin: { ...source.origin, hiding: rules } } };
      },
    },
  });

  test("do not make diff hang if they have many stars", async () => {
    const name = await run(atHome());
    await writeFile(join(folder, "a".repeat(200)), "x");
    const { session } = await atHome().runs.get(name);
    const home = atHome(lying(station, { hide: [`${"*a".repeat(40)}*b`], show: [] }));
    expect((await home.sessions.diff(session)).files.map(({ path }) => path)).toContain("a.txt");
  });

  test("are rejected if they exceed the usual count or length", async () => {
    const { session } = await atHome().runs.get(await run(atHome()));
    for (const hide of [Array.from({ length: 101 }, () => "x"), ["a".repeat(2000)]]) {
      const home = atHome(lying(station, { hide, show: [] }));
      await expect(home.sessions.diff(session)).rejects.toMatchObject({
        code: "invalid",
        message: expect.stringContaining("hiding rules"),
      });
    }
  });
});
