import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type BuildContext, openBuildContext } from "./build-context.ts";
import { contextPath } from "./context-path.ts";

let outer: string;
let folder: string;
let context: BuildContext;
const write = (path: string, text = path) => {
  mkdirSync(join(folder, path, ".."), { recursive: true });
  writeFileSync(join(folder, path), text);
};
const find = async (source: string, excludes: string[] = []) =>
  (await context.find([source], { excludes })).sources.flatMap(({ entries }) =>
    entries.map(({ path, kind }) => (kind === "directory" ? `${path}/` : path)),
  );

beforeEach(() => {
  outer = mkdtempSync(join(tmpdir(), "caisson-test-"));
  folder = join(outer, "context");
  mkdirSync(folder);
  writeFileSync(join(outer, "outside"), "outside");
  context = openBuildContext(folder, { hiding: { hide: [], show: [] } });
});
afterEach(() => {
  context[Symbol.dispose]();
  rmSync(outer, { recursive: true });
});

test("finds files, folders with everything below, and wildcards", async () => {
  for (const path of ["a.txt", "b.txt", "src/x", "src/deep/y"]) write(path);
  expect(await find("a.txt")).toEqual(["a.txt"]);
  expect(await find("./src/")).toEqual(["src/deep/", "src/deep/y", "src/x"]);
  expect(await find("*.txt")).toEqual(["a.txt", "b.txt"]);
  expect(await find("src/*/y")).toEqual(["src/deep/y"]);
  expect(await find(".", ["**/y"])).toEqual(["a.txt", "b.txt", "src/", "src/deep/", "src/x"]);
});

test("leaves out what .dockerignore names, with its exceptions", async () => {
  for (const path of ["a", "src/x", "src/keep", "Dockerfile"]) write(path);
  write(".dockerignore", "src\n!src/keep\nDockerfile\n.dockerignore");
  await context.useIgnoreFile("Dockerfile");
  expect(await find(".")).toEqual(["a", "src/keep"]);
  await expect(find("Dockerfile")).rejects.toMatchObject({ code: "not_found" });
  write("other.dockerignore", "a");
  await context.useIgnoreFile("other");
  expect(await find("src/*")).toEqual(["src/keep", "src/x"]);
});

test("leaves out files that look like credentials", async () => {
  for (const path of [".env", "id_rsa", "a"]) write(path);
  expect(await find(".")).toEqual(["a"]);
  await expect(find(".env")).rejects.toMatchObject({ code: "not_found", hint: expect.stringContaining("--show") });
});

test("does not leave the folder, by a path or through a link", async () => {
  write("a");
  symlinkSync("../outside", join(folder, "link"));
  symlinkSync("..", join(folder, "up"));
  await expect(find("../outside")).rejects.toMatchObject({ code: "unsafe" });
  expect(() => contextPath("a/../../outside")).toThrow("leaves the context");
  expect(contextPath("/a/./b/../c")).toBe("a/c");
  await expect(find("up/outside")).rejects.toMatchObject({ code: "not_found" });
  expect(await context.readText("link")).toBeNull();
  const { sources } = await context.find(["link"], { excludes: [] });
  expect(sources[0]?.entries).toMatchObject([{ kind: "link", linkTarget: "../outside" }]);
});

test("leaves out FIFOs, which would never end", async () => {
  write("a");
  execFileSync("mkfifo", [join(folder, "pipe")]);
  expect((await context.find(["."], { excludes: [] })).leftOut).toEqual(['"pipe" is a FIFO, which cannot be copied']);
  expect(await find(".")).toEqual(["a"]);
  await expect(find("pipe")).rejects.toMatchObject({ code: "unsupported", message: '"pipe" is a FIFO, which cannot be copied' });
});

test("refuses names and links that are not UTF-8, unless they are ignored", async () => {
  write("a");
  writeFileSync(Buffer.concat([Buffer.from(`${folder}/bad`), Buffer.from([0xff])]), "x");
  await expect(find(".")).rejects.toMatchObject({ code: "unsupported", message: expect.stringContaining("is not UTF-8") });
  write(".dockerignore", "bad*\n.dockerignore");
  await context.useIgnoreFile(null);
  expect(await find(".")).toEqual(["a"]);
  symlinkSync(Buffer.from([0xfe]), join(folder, "link"));
  await expect(find(".")).rejects.toMatchObject({ code: "unsupported", message: 'the target of the link "link" is not UTF-8' });
});

test("the sources of one instruction share their bounds", async () => {
  write("a");
  const sources = Array<string>(10_001).fill("a");
  await expect(context.find(sources, { excludes: [] })).rejects.toMatchObject({ code: "too_large" });
  await expect(context.find(["a"], { excludes: ["x".repeat(4000), ...Array<string>(16).fill("y".repeat(4000))] })).rejects.toThrow(
    "--exclude has more than",
  );
});

test("a digest depends on the content and the mode, not on times", async () => {
  const digest = async () => context.digest((await context.find(["a"], { excludes: [] })).sources[0]?.entries[0] as never);
  write("a", "one");
  const first = await digest();
  write("a", "one");
  expect(await digest()).toBe(first);
  write("a", "two");
  expect(await digest()).not.toBe(first);
});

test("an ignore file that is too large is refused", async () => {
  write(".dockerignore", "#".repeat(1024 * 1024 + 1));
  await expect(context.useIgnoreFile(null)).rejects.toMatchObject({ code: "too_large" });
});
