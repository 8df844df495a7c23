import { lstat, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { copyIn, copyOut } from "./copy.ts";
import { run } from "./run.ts";
import { createFakeRuntime } from "./runtimes/fake/runtime.ts";
import type { OwnedSandbox } from "./sandbox.ts";
import { parseSpec } from "./spec.ts";
import { stageIn, stageOut } from "./stage.ts";
import { encodeTarHeader, tarEnd } from "./tar/tar-header.ts";
import { readText, writeText } from "./text.ts";

let folder: string;
let sandbox: OwnedSandbox;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "caisson-test-copy-"));
  sandbox = await createFakeRuntime().create(parseSpec({}));
});
afterEach(async () => {
  await sandbox.destroy();
  await rm(folder, { recursive: true, force: true });
});

test("run collects both streams, feeds the input, and says what was dropped", async () => {
  const echoed = await run(sandbox, { argv: ["cat"], input: Buffer.from("in and out") });
  expect(echoed).toMatchObject({ ended: { kind: "exited", exitCode: 0 }, truncated: false });
  expect(echoed.stdout.toString()).toBe("in and out");
  const failed = await run(sandbox, { argv: ["sh", "-c", "echo no >&2; exit 3"] });
  expect([failed.stderr.toString(), failed.ended]).toEqual(["no\n", expect.objectContaining({ exitCode: 3 })]);
  const cut = await run(sandbox, { argv: ["echo", "123456789"], collectBytesMax: 4 });
  expect([cut.stdout.toString(), cut.truncated, cut.ended.stdoutBytes]).toEqual(["1234", true, 10]);
});

test("text goes in and out, and too much of it is refused", async () => {
  await writeText(sandbox, "notes/a.txt", "grüße", { parents: true });
  expect(await readText(sandbox, "notes/a.txt")).toBe("grüße");
  await expect(readText(sandbox, "notes/a.txt", { bytesMax: 3 })).rejects.toMatchObject({ code: "too_large" });
});

test("a folder goes in and comes out again", async () => {
  await mkdir(join(folder, "from", "sub"), { recursive: true });
  await writeFile(join(folder, "from", "sub", "deep"), "deep", { mode: 0o600 });
  await writeFile(join(folder, "from", "skip"), "x");
  expect(await copyIn(sandbox, join(folder, "from"), "/workspace/in", { exclude: ["skip"] })).toMatchObject({ files: 2, bytes: 4 });
  expect(await readText(sandbox, "/workspace/in/sub/deep")).toBe("deep");
  await expect(sandbox.stat("/workspace/in/skip")).rejects.toMatchObject({ code: "not_found" });
  await copyOut(sandbox, "/workspace/in", join(folder, "back"));
  expect(await readFile(join(folder, "back", "sub", "deep"), "utf8")).toBe("deep");
  expect((await lstat(join(folder, "back", "sub", "deep"))).mode & 0o777).toBe(0o600);
});

test("a file becomes the target, or goes into it", async () => {
  await writeFile(join(folder, "a"), "one", { mode: 0o755 });
  await copyIn(sandbox, join(folder, "a"), "/workspace/b");
  expect((await sandbox.stat("/workspace/b")).mode & 0o777).toBe(0o755);
  await copyIn(sandbox, join(folder, "a"), "/workspace");
  expect(await readText(sandbox, "/workspace/a")).toBe("one");
  await copyOut(sandbox, "/workspace/b", join(folder, "c"));
  await copyOut(sandbox, "/workspace/b", folder);
  expect((await readdir(folder)).sort()).toEqual(["a", "b", "c"]);
});

test("a link where the file is to be is replaced, not followed", async () => {
  await writeFile(join(folder, "victim"), "untouched");
  await symlink("victim", join(folder, "target"));
  await writeText(sandbox, "/workspace/x", "new");
  await copyOut(sandbox, "/workspace/x", join(folder, "target"));
  expect(await readFile(join(folder, "victim"), "utf8")).toBe("untouched");
  expect(await readFile(join(folder, "target"), "utf8")).toBe("new");
});

test("a sandbox that lies in its archive gets nothing out of the folder", async () => {
  const evil = encodeTarHeader({ kind: "file", name: "../evil", mode: 0o644, sizeBytes: 0, modifiedMs: 0, linkTarget: "" });
  const lying: OwnedSandbox = {
    ...sandbox,
    tarOut: async () =>
      (async function* () {
        yield Buffer.concat([evil, tarEnd]);
      })(),
  };
  await expect(copyOut(lying, "/workspace", join(folder, "out"))).rejects.toMatchObject({ code: "unsafe" });
  expect(await readdir(folder)).toEqual(["out"]);
});

test("links that lead out are left out and told", async () => {
  const away = encodeTarHeader({ kind: "link", name: "away", mode: 0o777, sizeBytes: 0, modifiedMs: 0, linkTarget: "/etc/shadow" });
  await sandbox.tarIn("/workspace", Buffer.concat([away, tarEnd]));
  const copied = await copyOut(sandbox, "/workspace", join(folder, "out"));
  expect(copied.skipped).toEqual([{ name: "away", reason: "it is a link to /etc/shadow" }]);
  expect(await readdir(join(folder, "out"))).toEqual([]);
});

test("a copy that fails leaves no temporary file", async () => {
  await writeText(sandbox, "/workspace/x", "12345");
  await expect(copyOut(sandbox, "/workspace/x", join(folder, "x"), { bytesMax: 2 })).rejects.toMatchObject({ code: "too_large" });
  await expect(copyIn(sandbox, join(folder, "nothing"), "/workspace/y")).rejects.toMatchObject({ code: "not_found" });
  expect(await readdir(folder)).toEqual([]);
});

test("staging copies where nothing is shared and does nothing where it is", async () => {
  await writeFile(join(folder, "a"), "host");
  expect(await stageIn(sandbox, folder)).toMatchObject({ files: 1 });
  await writeText(sandbox, "a", "sandbox");
  expect(await stageOut(sandbox, folder)).toMatchObject({ files: 1 });
  expect(await readFile(join(folder, "a"), "utf8")).toBe("sandbox");
  const overlay = await createFakeRuntime().create(parseSpec({ workspace: { kind: "folder", path: folder } }));
  expect(await stageIn(overlay, folder)).toBe(null);
  await writeText(overlay, "a", "overlay");
  expect(await stageOut(overlay, folder)).toMatchObject({ files: 1 });
  await overlay.destroy();
  const shared: OwnedSandbox = { ...sandbox, info: { ...sandbox.info, workspace: { kind: "folder", path: folder, access: "rw" } } };
  expect(await stageOut(shared, folder)).toBe(null);
});
