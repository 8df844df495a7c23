import { chmodSync, chownSync, lstatSync, mkdirSync, readdirSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { changesBetween, edited } from "../../test/support/random-trees.ts";
import { tries } from "../../test/support/thorough.ts";
import { describeTree, readTree, writeTree } from "../../test/support/tree-on-disk.ts";
import { isProcessAlive } from "../sandbox/process-identity.ts";
import type { FileSide } from "./change.ts";
import { type ApplyPlace, change, file, link, makeApplyPlace, recordsLeft } from "./testing-apply.ts";

const self = { pid: process.pid, startTicks: 1, bootId: "b" };

let base = "";
let folder = "";
let apply: ApplyPlace["apply"];
let put: ApplyPlace["put"];
beforeEach(() => {
  ({ base, folder, apply, put } = makeApplyPlace());
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

/** A link that leads outside fails the whole apply, and this property is about applied changes. */
const staysInside = (side: FileSide) => side.kind === "file" || !/^\/|\.\./.test(side.content.toString());

describe("applying", () => {
  test("turns any old tree into the new one, or changes nothing", { timeout: 300_000 }, async () => {
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
        // A folder replaces a link that moves, interrupted before the first operation.
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

  test("keeps the user's permissions and only adds execute permission", async () => {
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

  test.runIf(process.getuid?.() === 0)("gives root's new files to the folder's owner, and keeps other owners", async () => {
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

  test("applies only the named paths, even just one end of a move", async () => {
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
  ])("the path %j", async (path) => {
    const result = await apply([change(path, null, file("x")), change("ok", null, file("ok"))]);
    expect(result).toMatchObject({ applied: ["ok"], skipped: [{ path, reason: expect.any(String) }] });
    expect(Object.keys(readTree(base))).toEqual(["folder/ok"]);
  });

  test("files that tools act on, unless they are named or allowed", async () => {
    const changes = [".envrc", ".vscode/tasks.json", ".github/workflows/x.yml", "a/.npmrc"].map((path) => change(path, null, file("x")));
    expect(await apply(changes)).toMatchObject({ applied: [], skipped: [{}, {}, {}, {}] });
    expect((await apply(changes, { paths: [".", ".envrc"] })).applied).toEqual([".envrc"]);
    expect((await apply(changes.slice(1), { includeConfiguration: true })).applied).toHaveLength(3);
  });

  test("to overwrite the user's own edits", async () => {
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

  test("while another apply is running", async () => {
    const { dev, ino } = statSync(folder);
    const record = join(base, "state/applies", `${dev}-${ino}`);
    const staging = `.caisson-apply-${"a".repeat(32)}`;
    mkdirSync(record, { recursive: true });
    writeFileSync(join(record, "apply.json"), JSON.stringify({ staging, folder }));
    writeFileSync(join(record, "applier-0.json"), JSON.stringify(self));
    put(`${staging}/new-0`, "half");
    await expect(apply([change("a", null, file("x"))], { alive: () => true })).rejects.toMatchObject({ code: "conflict" });
    expect(readdirSync(folder)).toEqual([staging]);
    // After that process dies, one of the next applies takes the folder over.
    const names = ["a", "b", "c", "d"];
    const results = await Promise.allSettled(names.map((path) => apply([change(path, null, file("x"))], { alive: isProcessAlive })));
    for (const result of results) if (result.status === "rejected") expect(result.reason).toMatchObject({ code: "conflict" });
    const applied = names.filter((_, index) => results[index]?.status === "fulfilled");
    expect(applied.length).toBeGreaterThan(0);
    expect(readdirSync(folder)).toEqual(applied);
    expect(recordsLeft(base)).toEqual([]);
  });

  test("to obey a journal in the folder, which is data like any other file", async () => {
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

  test("a folder that does not exist", async () => {
    await expect(apply([change("a", null, file("x"))], { folder: join(base, "no") })).rejects.toMatchObject({ code: "not_found" });
  });
});
