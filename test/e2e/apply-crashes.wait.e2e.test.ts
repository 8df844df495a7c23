import { execFileSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { beforeEach, describe, expect, test } from "vitest";
import { isThroughStation } from "../support/station-modes.ts";
import { readTree } from "../support/tree-on-disk.ts";
import { useWorkspaceCli } from "../support/workspace-cli.ts";

const { cli, work, ok } = useWorkspaceCli();
const identity = { GIT_AUTHOR_NAME: "u", GIT_AUTHOR_EMAIL: "u@x", GIT_COMMITTER_NAME: "u", GIT_COMMITTER_EMAIL: "u@x" };
const git = (folder: string, ...args: string[]) =>
  execFileSync("git", ["-C", folder, ...args], { encoding: "utf8", env: { ...process.env, ...identity } }).trim();

/** A folder whose files the run changes, removes and moves; one folder becomes a file, and one file a folder. */
const before = {
  "d/x": "1\n",
  f: "was a file\n",
  "m.txt": "old\n",
  "o/gone.txt": "gone\n",
  "p.txt": "moved\nby\nname\n",
};
const command = "rm -r d o; echo now a file > d; rm f; mkdir f; echo 2 > f/y; echo new > m.txt; mkdir -p q/r; mv p.txt q/r/p.txt";

async function workedOn() {
  const folder = await cli.folder();
  for (const [path, text] of Object.entries(before)) {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  }
  git(folder, "init", "-q", "-b", "main");
  git(folder, "add", "-A");
  git(folder, "commit", "-qm", "first");
  const copy = `${folder}-copy`;
  cpSync(folder, copy, { recursive: true, preserveTimestamps: true });
  const { run } = await work(command, [], folder);
  /** Restores the folder to its state before any apply, with the files' original times. */
  const reset = () => {
    for (const name of readdirSync(folder)) if (name !== ".git") rmSync(join(folder, name), { recursive: true });
    for (const name of readdirSync(copy))
      if (name !== ".git") cpSync(join(copy, name), join(folder, name), { recursive: true, preserveTimestamps: true });
  };
  return { folder, run, reset };
}

const filesIn = (folder: string) => Object.fromEntries(Object.entries(readTree(folder)).filter(([path]) => !path.startsWith(".git/")));

beforeEach(({ skip }) => skip(isThroughStation, "the station applies, so killing the command interrupts nothing"));

describe("an apply that is killed at any operation", () => {
  test("leaves the next apply, diff, branch, count and exec complete", async () => {
    const { folder, run, reset } = await workedOn();
    const untouched = filesIn(folder);
    const list = join(cli.base(), "points");
    const unapplied = async () =>
      (JSON.parse((await ok(["ps", "--all", "--json"], folder)).text) as { unappliedFiles: number }[]).map((row) => row.unappliedFiles);
    const whole = {
      count: await unapplied(),
      diff: (await ok(["diff", run], folder)).text,
      branch: await ok(["branch", run, "--name", "whole"], folder).then(() => git(folder, "rev-parse", "whole^{tree}")),
      apply: (await cli.run(["apply", run], { cwd: folder, env: { CAISSON_CRASH_LIST: list } })).text,
      files: filesIn(folder),
    };
    const points = readFileSync(list, "utf8")
      .split("\n")
      .filter((name) => name.startsWith("apply:"));
    expect(points.length).toBeGreaterThan(12);
    expect(whole.count[0]).toBeGreaterThan(4);
    expect(filesIn(folder)).toMatchObject({ d: "file 644 now a file\n", "q/r/p.txt": "file 644 moved\nby\nname\n" });
    const verbs = ["apply", "diff", "apply", "branch", "apply", "count", "apply", "exec"] as const;
    for (const [index, point] of points.entries()) {
      reset();
      const killed = await cli.run(["apply", run], { cwd: folder, env: { CAISSON_CRASH_AT: point } });
      expect(killed.signal, `${point}: ${killed.stderr}`).toBe("SIGKILL");
      const isDone = point === "apply:done:after";
      const verb = isDone ? "apply" : (verbs[index % verbs.length] ?? "apply");
      if (verb === "apply") {
        const { text } = await ok(["apply", run], folder);
        if (!isDone) expect(text, point).toBe(whole.apply);
      }
      if (verb === "diff") expect((await ok(["diff", run], folder)).text, point).toBe(whole.diff);
      if (verb === "branch") {
        await ok(["branch", run, "--name", `at-${index}`], folder);
        expect(git(folder, "rev-parse", `at-${index}^{tree}`), point).toBe(whole.branch);
      }
      if (verb === "count") expect(await unapplied(), point).toEqual(whole.count);
      if (verb === "exec") expect((await ok(["exec", "--", "cat", "m.txt", "p.txt"], folder)).text, point).toBe("old\nmoved\nby\nname\n");
      expect(filesIn(folder), point).toEqual(verb === "apply" ? whole.files : untouched);
      expect(existsSync(join(folder, "o")), point).toBe(verb !== "apply");
      expect(readdirSync(folder).filter((name) => name.startsWith(".caisson"))).toEqual([]);
    }
  });
});
