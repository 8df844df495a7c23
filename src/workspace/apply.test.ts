import {
  chmodSync,
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { changesBetween, edited } from "../../test/support/random-trees.ts";
import { tries } from "../../test/support/thorough.ts";
import { describeTree, readTree, writeTree } from "../../test/support/tree-on-disk.ts";
import { isProcessAlive } from "../sandbox/process-identity.ts";
import { type ApplyOptions, applyChanges } from "./apply.ts";
import type { Change, FileSide } from "./change.ts";

const self = { pid: process.pid, startTicks: 1, bootId: "b" };
const file = (content: string, mode = 0o644): FileSide => ({ kind: "file", mode, content: Buffer.from(content) });
const link = (target: string): FileSide => ({ kind: "link", mode: 0o777, content: Buffer.from(target) });
const change = (path: string, before: FileSide | null, after: FileSide | null, more: Partial<Change> = {}): Change => ({
  path,
  from: null,
  before,
  after,
  changedOutside: false,
  ...more,
});

let base = "";
let folder = "";
beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "caisson-test-"));
  folder = join(base, "folder");
  mkdirSync(folder);
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

const apply = (changes: readonly Change[], options: Partial<ApplyOptions> = {}) =>
  applyChanges(changes, { folder, stateDir: join(base, "state"), alive: () => false, ...options });
const put = (path: string, content: string) => {
  mkdirSync(join(folder, path, ".."), { recursive: true });
  writeFileSync(join(folder, path), content);
};

/** Links that lead out are refused as a whole; the property is about what is applied. */
const staysInside = (side: FileSide) => side.kind === "file" || !/^\/|\.\./.test(side.content.toString());

describe("applying", () => {
  test("makes the new tree of the old one, whatever they are, or nothing of it", { timeout: 300_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(edited, fc.nat(40), async ({ before, after: wild }, failAt) => {
        const after = new Map([...wild].filter(([path, side]) => staysInside(side) && !path.includes("\n")));
        const old = new Map([...before].filter(([path]) => !path.includes("\n")));
        rmSync(folder, { recursive: true, force: true });
        mkdirSync(folder);
        writeTree(folder, old);
        const changes = changesBetween(old, after);
        let steps = 0;
        const crashpoint = (name: string) => {
          if (steps++ === failAt && name !== "apply:done:after") throw Object.assign(new Error("disk"), { code: "ENOSPC" });
        };
        const failed = await apply(changes, { crashpoint }).then(
          () => false,
          (error: unknown) => {
            expect(error).toMatchObject({ code: "no_space" });
            return true;
          },
        );
        expect(readTree(folder)).toEqual(describeTree(failed ? old : after));
        if (failed) await apply(changes);
        expect(readTree(folder)).toEqual(describeTree(after));
        expect(readdirSync(folder).filter((name) => name.startsWith(".caisson-apply"))).toEqual([]);
      }),
      {
        numRuns: tries(40, 10),
        // A folder in the place of a link that moves, interrupted before anything was done.
        examples: [
          [
            {
              before: new Map<string, FileSide>([["x", { kind: "link", mode: 0o777, content: Buffer.from("a") }]]),
              after: new Map<string, FileSide>([
                ["x/a/a", file("new")],
                ["x.moved", { kind: "link", mode: 0o777, content: Buffer.from("a") }],
              ]),
            },
            0,
          ],
        ],
      },
    );
  });

  test("keeps the user's permissions and adds only the right to execute", async () => {
    put("secret", "old\n");
    chmodSync(join(folder, "secret"), 0o600);
    put("tool", "old\n");
    chmodSync(join(folder, "tool"), 0o4750);
    await apply([
      change("secret", file("old\n"), file("new\n", 0o755)),
      change("tool", file("old\n", 0o755), file("new\n", 0o755)),
      change("fresh", null, file("x", 0o6755)),
    ]);
    expect(statSync(join(folder, "secret")).mode & 0o7777).toBe(0o700);
    expect(statSync(join(folder, "tool")).mode & 0o7777).toBe(0o750);
    expect(statSync(join(folder, "fresh")).mode & 0o7000).toBe(0);
  });

  test.runIf(process.getuid?.() === 0)("gives what root applies to whoever has the folder, and leaves others' files theirs", async () => {
    chownSync(folder, 1234, 1235);
    put("theirs", "1\n");
    chownSync(join(folder, "theirs"), 77, 78);
    await apply([
      change("theirs", file("1\n"), file("2\n")),
      change("new/deep/file", null, file("x")),
      change("new/link", null, link("deep/file")),
    ]);
    const owner = (path: string) => [lstatSync(join(folder, path)).uid, lstatSync(join(folder, path)).gid];
    expect(["theirs", "new", "new/deep", "new/deep/file", "new/link"].map(owner)).toEqual([
      [77, 78],
      [1234, 1235],
      [1234, 1235],
      [1234, 1235],
      [1234, 1235],
    ]);
  });

  test("leaves the user's other files and empty folders alone", async () => {
    put("d/gone", "1");
    put("d/mine", "2");
    mkdirSync(join(folder, "empty"));
    put("e/f/gone", "3");
    await apply([change("d/gone", file("1"), null), change("e/f/gone", file("3"), null)]);
    expect(readdirSync(folder).sort()).toEqual(["d", "empty"]);
    expect(readTree(folder)).toEqual({ "d/mine": "file 644 2" });
  });

  test("takes what is named, and of a move the end that is named", async () => {
    put("a/old", "moved\n");
    const changes = [change("b/new", file("moved\n"), file("moved\n"), { from: "a/old" }), change("c", null, file("c"))];
    expect((await apply(changes, { paths: ["b/"] })).applied).toEqual(["b/new"]);
    expect(Object.keys(readTree(folder))).toEqual(["a/old", "b/new"]);
    expect((await apply(changes, { paths: ["a"] })).applied).toEqual(["a/old"]);
    expect(Object.keys(readTree(folder))).toEqual(["b/new"]);
    await expect(apply(changes, { paths: ["nowhere"] })).rejects.toMatchObject({
      code: "invalid",
      message: expect.stringContaining("nowhere"),
    });
  });
});

describe("applying refuses", () => {
  const unsafe = (promise: Promise<unknown>) => expect(promise).rejects.toMatchObject({ code: "unsafe" });

  test.each([
    "../out",
    "/abs",
    "a/../../b",
    ".git/hooks/pre-commit",
    "sub/.GIT/config",
    "git~1/config",
    "a//b",
    "x\ny",
    ".caisson-apply/journal.json",
  ])("%j", async (path) => {
    const result = await apply([change(path, null, file("x")), change("ok", null, file("ok"))]);
    expect(result).toMatchObject({ applied: ["ok"], skipped: [{ path, reason: expect.any(String) }] });
    expect(Object.keys(readTree(base))).toEqual(["folder/ok"]);
  });

  test("links that lead out or into git, and nothing else is applied either", async () => {
    for (const target of ["/etc/passwd", "../out", "a/../../out", ".git/config", "d/.GIT/hooks", "git~1/config", "d/../.git./x"]) {
      await unsafe(apply([change("ok", null, file("x")), change("l", null, link(target))]));
      expect(readdirSync(folder)).toEqual([]);
    }
    await apply([change("d/l", null, link("../ok"))]);
  });

  test("links that lead out by way of another, which comes with them or was there", async () => {
    const up = change("a/b/c/l", null, link("../../.."));
    const out = change("m", null, link("a/b/c/l/../outside.txt"));
    await unsafe(apply([up, out]));
    await unsafe(apply([out, change("a/b/c/l", null, link("../../../a/.."))]));
    expect(readdirSync(folder)).toEqual([]);
    await apply([up]);
    await unsafe(apply([out]));
    symlinkSync("/etc", join(folder, "mine"));
    await unsafe(apply([change("n", null, link("mine/passwd"))]));
    await unsafe(apply([change("n", null, link("a/b/c/l/mine/passwd"))]));
    expect((await apply([change("n", null, link("a/b/c/l/a/b"))])).applied).toEqual(["n"]);
  });

  test("links that make one lead out which did not: the one on its way comes later, or goes", async () => {
    await apply([change("m", null, link("deep/er/l/../x"))]);
    await unsafe(apply([change("deep/er/l", null, link("../.."))]));
    await apply([change("deep/er/l", null, link("../../y"))]);
    symlinkSync("deep/er/f", join(folder, "short"));
    await unsafe(apply([change("u", null, link("short/../../../../x"))]));
    await apply([change("u", null, link("short/../../../x"))]);
    // Where `short` leads is two deeper than `short` itself.
    await unsafe(apply([change("short", link("deep/er/f"), null)]));
    await unsafe(apply([change("short", link("deep/er/f"), link("deep"))]));
    await unsafe(apply([change("short", link("deep/er/f"), file("x"))]));
    await unsafe(apply([change("short", link("deep/er/f"), null), change("short/x", null, file("x"))]));
    await apply([change("short", link("deep/er/f"), link("deep/er/g"))]);
  });

  test.runIf(process.platform === "linux")("links whose names are not UTF-8 count as well", async () => {
    const name = Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0xff])]);
    symlinkSync("deep/../x", name);
    await unsafe(apply([change("deep", null, link("."))]));
    expect(readdirSync(folder, "buffer")).toEqual([Buffer.from([0xff])]);
  });

  test("to go through a link of the user's", async () => {
    mkdirSync(join(base, "elsewhere"));
    symlinkSync(join(base, "elsewhere"), join(folder, "d"));
    await unsafe(apply([change("d/x", null, file("x"))]));
    expect(readdirSync(join(base, "elsewhere"))).toEqual([]);
    await apply([change("d", link(join(base, "elsewhere")), null), change("d/x", null, file("x"))]);
    expect(readTree(folder)).toEqual({ "d/x": "file 644 x" });
    expect(readdirSync(join(base, "elsewhere"))).toEqual([]);
  });

  test("to be led outside by a folder that becomes a link between any two steps, and takes back what it did", async () => {
    const files = (place: string) => {
      for (const name of ["d/same", "d/gone", "d/sub/gone", "d/sub/moved"]) {
        mkdirSync(join(place, name, ".."), { recursive: true });
        writeFileSync(join(place, name), "1");
      }
    };
    files(join(base, "victim"));
    const changes = [
      change("d/same", file("1"), file("2")),
      change("d/made/new", null, file("2")),
      change("d/gone", file("1"), null),
      change("d/sub/gone", file("1"), null),
      change("d/to", file("1"), file("1"), { from: "d/sub/moved" }),
    ];
    const before = readTree(join(base, "victim"));
    const run = async (at: number) => {
      rmSync(folder, { recursive: true, force: true });
      files(folder);
      let steps = 0;
      const swap = () => {
        if (steps++ !== at) return;
        renameSync(join(folder, "d"), join(folder, "aside"));
        symlinkSync("../victim/d", join(folder, "d"));
      };
      await apply(changes, { crashpoint: swap }).catch((error: unknown) => expect(error).toMatchObject({ code: "unsafe" }));
      return steps;
    };
    const last = (await run(-1)) - 1;
    expect(last).toBeGreaterThan(8);
    for (let at = 0; at < last; at++) {
      await run(at);
      expect(readTree(join(base, "victim")), `exchanged before step ${at}`).toEqual(before);
      // Once the link is gone again, the next apply puts back what this one could not.
      rmSync(join(folder, "d"));
      renameSync(join(folder, "aside"), join(folder, "d"));
      await apply([]);
      expect(readdirSync(folder)).toEqual(["d"]);
      if (at < last - 1) expect(readTree(folder), `exchanged before step ${at}`).toEqual(before);
      expect(readdirSync(join(base, "state/applies"))).toEqual([]);
    }
  });

  test("a repository that is not called .git", async () => {
    const planted = ["lib/HEAD", "lib/config", "lib/objects/x", "lib/refs/x"].map((path) => change(path, null, file("x")));
    const result = await apply([...planted, change("libs/HEAD", null, file("a heading"))]);
    expect(result.applied).toEqual(["libs/HEAD"]);
    expect(result.skipped.map(({ path }) => path)).toEqual(["lib/HEAD", "lib/config", "lib/objects/x", "lib/refs/x"]);
    put("two/objects/x", "x");
    put("two/refs/x", "x");
    expect((await apply([change("two/HEAD", null, file("x"))])).applied).toEqual([]);
  });

  const parts = ["HEAD", "config", "objects/k", "refs/k"];
  const orders = parts.flatMap((_, at) => [
    [...parts.slice(at), ...parts.slice(0, at)],
    [...parts.slice(at), ...parts.slice(0, at)].reverse(),
  ]);
  test.each(orders.map((order) => [order.join(" "), order] as const))("a repository in several steps: %s", async (_, order) => {
    for (const part of order) await apply([change(`sub/${part}`, null, file("x"))]);
    expect(order.filter((part) => existsSync(join(folder, "sub", part)))).not.toEqual(
      expect.arrayContaining(["HEAD", "objects/k", "refs/k"]),
    );
  });

  test("a repository made of links, of a worktree's parts, at the top, in another case, by a move or by what goes", async () => {
    const applied = async (...changes: Change[]) => (await apply(changes)).applied;
    await apply([change("objs/x", null, file("x")), change("r/HEAD", null, file("x")), change("r/refs", null, link("../objs"))]);
    expect(await applied(change("r/objects", null, link("../objs")))).toEqual([]);
    await apply([change("w/commondir", null, file("../objs"))]);
    expect(await applied(change("w/HEAD", null, file("x")))).toEqual([]);
    await apply([change("HEAD", null, file("x")), change("objects/x", null, file("x"))]);
    expect(await applied(change("refs/x", null, file("x")))).toEqual([]);
    expect(
      await applied(change("c/head", null, file("x")), change("c/Objects/x", null, file("x")), change("c/REFS/x", null, file("x"))),
    ).toEqual([]);
    put("v/refs/x", "x");
    put("v/HEAD", "x");
    put("elsewhere", "moved");
    expect(await applied(change("v/objects", file("moved"), file("moved"), { from: "elsewhere" }))).toEqual([]);
    put("mine.git/HEAD", "x");
    put("mine.git/objects/x", "x");
    put("mine.git/refs/x", "x");
    expect(await applied(change("mine.git/config", null, file("[core]\nfsmonitor=x\n")), change("ok", null, file("x")))).toEqual(["ok"]);
    await unsafe(apply([change("mine.git/config", null, file("x"))], { paths: ["mine.git/config"] }));
  });

  test("what tools act on, unless it is named or asked for", async () => {
    const changes = [".envrc", ".vscode/tasks.json", ".github/workflows/x.yml", "a/.npmrc"].map((path) => change(path, null, file("x")));
    expect(await apply(changes)).toMatchObject({ applied: [], skipped: [{}, {}, {}, {}] });
    expect((await apply(changes, { paths: [".", ".envrc"] })).applied).toEqual([".envrc"]);
    expect((await apply(changes.slice(1), { includeConfiguration: true })).applied).toHaveLength(3);
  });

  test("to go over the user's own edits", async () => {
    put("a", "mine\n");
    await expect(apply([change("ok", null, file("x")), change("a", file("theirs\n"), file("new\n"))])).rejects.toMatchObject({
      code: "conflict",
    });
    const edits = [change("a", file("mine\n"), file("new\n"), { changedOutside: true })];
    await expect(apply(edits)).rejects.toMatchObject({
      code: "conflict",
      message: expect.stringContaining("a in "),
      details: { paths: ["a"] },
    });
    expect(readTree(folder)).toEqual({ a: "file 644 mine\n" });
    await apply(edits, { force: true });
    expect(readTree(folder)).toEqual({ a: "file 644 new\n" });
  });

  test("while another one is at work", async () => {
    const { dev, ino } = statSync(folder);
    const record = join(base, "state/applies", `${dev}-${ino}`);
    const staging = `.caisson-apply-${"a".repeat(32)}`;
    mkdirSync(record, { recursive: true });
    writeFileSync(join(record, "apply.json"), JSON.stringify({ staging, folder }));
    writeFileSync(join(record, "applier-0.json"), JSON.stringify(self));
    put(`${staging}/new-0`, "half");
    await expect(apply([change("a", null, file("x"))], { alive: () => true })).rejects.toMatchObject({ code: "conflict" });
    expect(readdirSync(folder)).toEqual([staging]);
    // Dead, its folder is taken by one of those that come next.
    const names = ["a", "b", "c", "d"];
    const results = await Promise.allSettled(names.map((path) => apply([change(path, null, file("x"))], { alive: isProcessAlive })));
    for (const result of results) if (result.status === "rejected") expect(result.reason).toMatchObject({ code: "conflict" });
    const applied = names.filter((_, index) => results[index]?.status === "fulfilled");
    expect(applied.length).toBeGreaterThan(0);
    expect(readdirSync(folder)).toEqual(applied);
    expect(readdirSync(join(base, "state/applies"))).toEqual([]);
  });

  test("a journal that came with the folder: it is data like any other", async () => {
    mkdirSync(join(base, "victim"));
    writeFileSync(join(base, "victim", "authorized_keys"), "mine");
    mkdirSync(join(base, "victim", "empty"));
    for (const staging of [".caisson-apply", `.caisson-apply-${"0".repeat(32)}`]) {
      put(`${staging}/old-0`, "evil");
      put(`${staging}/applier.json`, JSON.stringify(self));
      put(`${staging}/applier-0.json`, JSON.stringify(self));
      put(`${staging}/apply.json`, JSON.stringify({ staging, folder }));
      put(
        `${staging}/journal.json`,
        JSON.stringify([
          { kind: "keep", path: "lnk/authorized_keys", kept: "old-0", replaced: false },
          { kind: "put", path: "lnk/authorized_keys", fresh: "new-1", replaces: false },
          { kind: "rmdir", path: "lnk/made", mode: 0o777, uid: 0, gid: 0 },
          { kind: "mkdir", path: "lnk/empty" },
          { kind: "keep", path: "../victim/authorized_keys", kept: "old-0", replaced: true },
        ]),
      );
    }
    symlinkSync("../victim", join(folder, "lnk"));
    const before = readTree(base);
    await apply([change("a", null, file("x"))]);
    expect(readTree(base)).toEqual({ ...before, "folder/a": "file 644 x" });
    expect(readdirSync(join(base, "victim"))).toEqual(["authorized_keys", "empty"]);
  });

  test("a folder that is not there", async () => {
    await expect(apply([change("a", null, file("x"))], { folder: join(base, "no") })).rejects.toMatchObject({ code: "not_found" });
  });
});
