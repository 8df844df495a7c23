import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { expect, test } from "vitest";
import { useRunsCli } from "../support/runs-cli.ts";

const cli = useRunsCli();
const identity = { GIT_AUTHOR_NAME: "u", GIT_AUTHOR_EMAIL: "u@x", GIT_COMMITTER_NAME: "u", GIT_COMMITTER_EMAIL: "u@x" };
const git = (folder: string, ...args: string[]) =>
  execFileSync("git", ["-C", folder, ...args], { encoding: "utf8", env: { ...process.env, ...identity } }).trim();
const ok = async (argv: readonly string[], cwd: string) => {
  const result = await cli.run(argv, { cwd });
  expect(result.code, result.stderr + result.text).toBe(0);
  return result;
};
const bash = (command: string) => [{ calls: [{ tool: "bash", arguments: { command } }] }, { say: "Done." }];
/** Runs one command in a run, and resolves with the run's id. */
async function work(command: string, argv: readonly string[], cwd: string): Promise<string> {
  const model = await cli.script({ turns: bash(command) });
  const { text } = await ok(["run", "do it", "--model", model, "--runtime", "oci", ...argv], cwd);
  return /run_[a-z0-9]+/.exec(text)?.[0] ?? "";
}
const diff = async (name: string, cwd: string, ...argv: string[]) => (await ok(["diff", name, ...argv], cwd)).text;
const ranges = () => {
  const folder = join(cli.home(), "oci", "ranges");
  return existsSync(folder) ? readdirSync(folder) : [];
};

test("a fork of the current state or of a step is independent of its session", async () => {
  const folder = await cli.folder({ "a.txt": "zero\n" });
  const model = await cli.script({
    turns: [...bash("echo one > a.txt; mkdir d; ln -s ../a.txt d/link"), ...bash("echo two > a.txt; rm d/link; chmod +x a.txt")],
  });
  await ok(["run", "first", "--model", model, "--runtime", "oci", "--session", "mine"], folder);
  await ok(["run", "--continue", "second"], folder);
  expect((await ok(["session", "fork", "mine", "--name", "now"], folder)).text).toBe("now\n");
  await ok(["session", "fork", "mine@2", "--name", "then"], folder);
  expect(await diff("now", folder)).toBe(await diff("mine", folder));
  expect(await diff("mine", folder)).toContain("+two");
  const before = await diff("then", folder);
  expect(before).toContain("+one");
  expect(before).toContain("d/link");
  expect(await diff("mine", folder, "--at", "2")).toBe(before);
  expect(await diff("mine", folder, "--at", "0")).toBe("");
  const refused = await cli.run(["session", "fork", "mine@9"], { cwd: folder });
  expect([refused.code, refused.stderr]).toEqual([125, expect.stringContaining("They were stored after these steps: 0, 1, 2, 3")]);
  // The sandbox's user can write the copied files.
  const other = await work("echo three >> a.txt; echo four > d/new; rm d/link", ["--session", "then"], folder);
  expect(await diff(other, folder)).toContain("+three");
  expect(await diff("mine", folder)).not.toContain("+three");
  // The session that first had the user id range is removed first. The others keep the range and stay writable.
  await ok(["session", "rm", "--yes", "mine"], folder);
  await work("echo five > e.txt", ["--session", "now"], folder);
  expect(await diff("now", folder)).toContain("+five");
  expect(await diff("then", folder)).toContain("+three");
  await ok(["session", "rm", "--yes", "now", "then"], folder);
  expect(ranges()).toEqual([]);
});

test("a run can start from another's files, and apply protects later edits", async () => {
  const folder = await cli.folder({ "a.txt": "zero\n", "b.txt": "zero\n" });
  const first = await work("echo one >> a.txt; echo one >> b.txt", [], folder);
  writeFileSync(join(folder, "b.txt"), "by hand\n");
  const soon = new Date(Date.now() + 1000);
  utimesSync(join(folder, "b.txt"), soon, soon);
  const second = await work("echo two >> a.txt", ["--from", first], folder);
  expect(await diff(second, folder)).toContain("+one\n+two");
  const stat = await ok(["diff", second, "--stat", "--json"], folder);
  expect(JSON.parse(stat.text).files).toMatchObject([
    { path: "a.txt", changedOutside: false },
    { path: "b.txt", changedOutside: true },
  ]);
  await ok(["apply", second, "a.txt"], folder);
  expect(readFileSync(join(folder, "a.txt"), "utf8")).toBe("zero\none\ntwo\n");
  const refused = await cli.run(["apply", second, "b.txt"], { cwd: folder });
  expect(refused.text + refused.stderr).toContain("b.txt");
  expect(readFileSync(join(folder, "b.txt"), "utf8")).toBe("by hand\n");
});

test("a git workspace is forked with its commit, and can be branched", async () => {
  const origin = await cli.folder({ "a.txt": "zero\n", "b.txt": "zero\n" });
  git(origin, "init", "-q", "-b", "main");
  git(origin, "add", "-A");
  git(origin, "commit", "-qm", "first");
  const here = await cli.folder();
  const url = pathToFileURL(origin).href;
  const first = await work("echo one >> a.txt; git status --short > status", ["--repo", url, "--session", "clone"], here);
  const second = await work("echo two >> b.txt; git status --short > status", ["--from", first], here);
  const text = await diff(second, here);
  for (const line of ["+one", "+two", "+ M a.txt", "+ M b.txt"]) expect(text).toContain(line);
  expect(await diff(first, here)).not.toContain("+two");
  await ok(["branch", second, "--to", origin, "--name", "both"], here);
  expect(git(origin, "show", "both:b.txt")).toBe("zero\ntwo");
});
