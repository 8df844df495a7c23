import { lstat, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createFakeRuntime } from "../runtimes/fake/runtime.ts";
import { copyIn, copyOut } from "./copy.ts";
import { runCommand } from "./run-command.ts";
import type { OwnedSandbox } from "./sandbox.ts";
import { parseSandboxConfig } from "./sandbox-config.ts";
import { stageIn, stageOut } from "./stage.ts";
import { encodeTarHeader, tarEnd } from "./tar/tar-header.ts";
import { readText, writeText } from "./text.ts";

let folder: string;
let sandbox: OwnedSandbox;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "caisson-test-copy-"));
  sandbox = await createFakeRuntime().create(parseSandboxConfig({}));
});
afterEach(async () => {
  await sandbox.destroy();
  await rm(folder, { recursive: true, force: true });
});

test("run collects both streams, feeds the input, and reports truncated output", async () => {
  const echoed = await runCommand(sandbox, { argv: ["cat"], input: Buffer.from("in and out") });
  expect(echoed).toMatchObject({ ended: { kind: "exited", exitCode: 0 }, truncated: false });
  expect(echoed.stdout).toBe("in and out");
  const failed = await runCommand(sandbox, { argv: ["sh", "-c", "echo no >&2; exit 3"] });
  expect([failed.stderr, failed.ended]).toEqual(["no\n", expect.objectContaining({ exitCode: 3 })]);
  const cut = await runCommand(sandbox, { argv: ["echo", "123456789"], collectBytesMax: 4 });
  expect([cut.stdout, cut.truncated, cut.ended.stdoutBytes]).toEqual(["1234", true, 10]);
  const bytes = Buffer.from([0x68, 0xff, 0x69]);
  const binary = await runCommand(sandbox, { argv: ["cat"], input: bytes });
  expect([binary.stdout, binary.stdoutBytes, binary.stderrBytes]).toEqual(["h\ufffdi", bytes, Buffer.alloc(0)]);
});

test("readText and writeText round-trip text and limit its size", async () => {
  await writeText(sandbox, "notes/a.txt", "grüße", { parents: true });
  expect(await readText(sandbox, "notes/a.txt")).toBe("grüße");
  await expect(readText(sandbox, "notes/a.txt", { bytesMax: 3 })).rejects.toMatchObject({ code: "too_large" });
});

test("copies a folder in and back out", async () => {
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

test("copies a file to the target path, or into the target folder", async () => {
  await writeFile(join(folder, "a"), "one", { mode: 0o755 });
  await copyIn(sandbox, join(folder, "a"), "/workspace/b");
  expect((await sandbox.stat("/workspace/b")).mode & 0o777).toBe(0o755);
  await copyIn(sandbox, join(folder, "a"), "/workspace");
  expect(await readText(sandbox, "/workspace/a")).toBe("one");
  await copyOut(sandbox, "/workspace/b", join(folder, "c"));
  await copyOut(sandbox, "/workspace/b", folder);
  expect((await readdir(folder)).sort()).toEqual(["a", "b", "c"]);
});

test("replaces a link at the target instead of following it", async () => {
  await writeFile(join(folder, "victim"), "untouched");
  await symlink("victim", join(folder, "target"));
  await writeText(sandbox, "/workspace/x", "new");
  await copyOut(sandbox, "/workspace/x", join(folder, "target"));
  expect(await readFile(join(folder, "victim"), "utf8")).toBe("untouched");
  expect(await readFile(join(folder, "target"), "utf8")).toBe("new");
});

test("rejects a forged archive that would write outside the folder", async () => {
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

test("skips and reports links that lead outside", async () => {
  const away = encodeTarHeader({ kind: "link", name: "away", mode: 0o777, sizeBytes: 0, modifiedMs: 0, linkTarget: "/etc/shadow" });
  await sandbox.tarIn("/workspace", Buffer.concat([away, tarEnd]));
  const copied = await copyOut(sandbox, "/workspace", join(folder, "out"));
  expect(copied.skipped).toEqual([{ name: "away", reason: "it is a link to /etc/shadow" }]);
  expect(await readdir(join(folder, "out"))).toEqual([]);
});

test("leaves no temporary file after a failed copy", async () => {
  await writeText(sandbox, "/workspace/x", "12345");
  await expect(copyOut(sandbox, "/workspace/x", join(folder, "x"), { bytesMax: 2 })).rejects.toMatchObject({ code: "too_large" });
  await expect(copyIn(sandbox, join(folder, "nothing"), "/workspace/y")).rejects.toMatchObject({ code: "not_found" });
  expect(await readdir(folder)).toEqual([]);
});

test("stages only for workspaces that are not shared", async () => {
  await writeFile(join(folder, "a"), "host");
  expect(await stageIn(sandbox, folder)).toMatchObject({ files: 1 });
  await writeText(sandbox, "a", "sandbox");
  expect(await stageOut(sandbox, folder)).toMatchObject({ files: 1 });
  expect(await readFile(join(folder, "a"), "utf8")).toBe("sandbox");
  const overlay = await createFakeRuntime().create(parseSandboxConfig({ workspace: { kind: "folder", path: folder } }));
  expect(await stageIn(overlay, folder)).toBe(null);
  await writeText(overlay, "a", "overlay");
  expect(await stageOut(overlay, folder)).toMatchObject({ files: 1 });
  await overlay.destroy();
  const shared: OwnedSandbox = { ...sandbox, info: { ...sandbox.info, workspace: { kind: "folder", path: folder, access: "rw" } } };
  expect(await stageOut(shared, folder)).toBe(null);
});

test("skips and reports names and link targets that are not UTF-8, in both directions", async () => {
  const bytes = (...codes: number[]) => Buffer.concat([Buffer.from(`${folder}/from/`), Buffer.from(codes)]);
  await mkdir(join(folder, "from"));
  for (const name of [bytes(0xff), bytes(0xfe), bytes(0x61)]) await writeFile(name, "x");
  await symlink(Buffer.from([0xfd]), join(folder, "from", "link"));
  const { skipped } = await copyIn(sandbox, join(folder, "from"), "/workspace/in");
  expect(skipped.map(({ reason }) => reason)).toEqual(["its name is not UTF-8", "its name is not UTF-8", "its link target is not UTF-8"]);
  expect((await sandbox.list("/workspace/in")).entries.map(({ name }) => name)).toEqual(["a"]);
  const header = (name: string) => {
    const block = Buffer.from(encodeTarHeader({ name: "AAAA", kind: "file", mode: 0o644, modifiedMs: 0, sizeBytes: 0, linkTarget: "" }));
    const at = block.length - 512;
    block.write(name, at, "latin1");
    block.write("        ", at + 148, "latin1");
    const sum = block.subarray(at).reduce((total, byte) => total + byte, 0);
    block.write(`${sum.toString(8).padStart(6, "0")}\0 `, at + 148, "latin1");
    return block;
  };
  const archive = Buffer.concat([header("\xffAAA"), header("\xfeAAA"), header("goodAAA".slice(0, 4)), tarEnd]);
  const liar = Object.assign(Object.create(sandbox), {
    tarOut: async () =>
      (async function* () {
        yield archive;
      })(),
    stat: async () => ({ kind: "directory", mode: 0o755, sizeBytes: 0 }),
  }) as OwnedSandbox;
  const copied = await copyOut(liar, "/workspace", join(folder, "out"));
  expect(copied.skipped).toHaveLength(2);
  expect(await readdir(join(folder, "out"))).toEqual(["good"]);
});

test("rejects files that exceed the limit or the disk, even if their size is forged", async () => {
  await writeText(sandbox, "/workspace/x", "12345");
  await expect(copyOut(sandbox, "/workspace/x", join(folder, "x"), { bytesMax: 4 })).rejects.toMatchObject({ code: "too_large" });
  const terabytes = 8 * 2 ** 40;
  const sparse = (sizeBytes: number, lies: number) =>
    Object.assign(Object.create(sandbox), {
      stat: async () => ({ kind: "file", mode: 0o644, sizeBytes }),
      readFile: async () =>
        (async function* () {
          for (let left = lies; left > 0; left--) yield Buffer.alloc(1024 * 1024);
        })(),
    }) as OwnedSandbox;
  const options = { bytesMax: 16 * 2 ** 40 };
  await expect(copyOut(sparse(terabytes, 0), "/workspace/x", join(folder, "x"), options)).rejects.toMatchObject({
    code: "no_space",
    message: expect.stringMatching(/is 8\.0 TiB, more than the .* available in /),
  });
  await expect(copyOut(sparse(terabytes, 0), "/workspace/x", join(folder, "x"))).rejects.toMatchObject({
    code: expect.stringMatching(/too_large|no_space/),
  });
  await expect(copyOut(sparse(0, 100), "/workspace/x", join(folder, "x"), { bytesMax: 3 * 2 ** 20 })).rejects.toMatchObject({
    code: "too_large",
  });
  expect(await readdir(folder)).toEqual([]);
});
