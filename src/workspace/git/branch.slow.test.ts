import { execFileSync } from "node:child_process";
import {
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Change, FileSide } from "../change.ts";
import { type BranchOptions, commitToBranch } from "./branch.ts";

let base = "";
let folder = "";
const path = process.env.PATH ?? "";
const git = (...args: string[]) =>
  execFileSync("git", ["-C", folder, ...args], {
    encoding: "utf8",
    env: {
      PATH: path,
      HOME: base,
      GIT_CONFIG_NOSYSTEM: "1",
      GIT_AUTHOR_NAME: "u",
      GIT_AUTHOR_EMAIL: "u@x",
      GIT_COMMITTER_NAME: "u",
      GIT_COMMITTER_EMAIL: "u@x",
    },
    stdio: ["ignore", "pipe", "pipe"],
  }).trim();
const put = (name: string, content: string) => {
  mkdirSync(join(folder, name, ".."), { recursive: true });
  writeFileSync(join(folder, name), content);
};
const file = (content: string, mode = 0o644): FileSide => ({ kind: "file", mode, content: Buffer.from(content) });
const change = (name: string, before: FileSide | null, after: FileSide | null, from: string | null = null): Change => ({
  path: name,
  from,
  before,
  after,
  changedOutside: false,
});
const branch = (changes: readonly Change[], more: Partial<BranchOptions> = {}) =>
  commitToBranch(changes, {
    folder,
    name: "caisson/x",
    message: "What it did\n",
    author: { name: "Ann", email: "ann@x" },
    git: { path },
    locks: { stateDir: join(base, "state") },
    ...more,
  });
const filesOf = (ref: string) => git("ls-tree", "-r", "-z", "--name-only", ref).split("\0").filter(Boolean);

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "caisson-test-"));
  folder = join(base, "repo");
  mkdirSync(folder);
  git("init", "-q", "-b", "main");
  put("a", "one\n");
  put("d/b", "two\n");
  git("add", ".");
  git("commit", "-qm", "first");
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

describe("a branch of changes", () => {
  test("is a commit on HEAD by the configured author; work tree and index stay", async () => {
    put("mine", "untracked\n");
    put("a", "edited by me\n");
    git("add", "a");
    const before = [git("status", "--porcelain"), readFileSync(join(folder, ".git/index")).toString("hex")];
    const changes = [
      change("a", file("edited by me\n"), file("agent\n", 0o755)),
      change("e/b", file("two\n"), file("two\n"), "d/b"),
      change("link", null, { kind: "link", mode: 0o777, content: Buffer.from("a") }),
      change('new\nline "q" ü', null, file("\0bin")),
    ].filter(({ path: name }) => !name.includes("\n"));
    const result = await branch([...changes, change('q" ü', null, file("\0bin"))], { message: "Fix\n\nAll of it.\n" });
    expect(git("log", "-1", "--format=%an <%ae> %cn%n%B", "caisson/x")).toBe("Ann <ann@x> Ann\nFix\n\nAll of it.");
    expect(git("rev-parse", "caisson/x^")).toBe(git("rev-parse", "main"));
    expect(git("rev-parse", "caisson/x")).toBe(result.commit);
    expect(filesOf("caisson/x")).toEqual(["a", "e/b", "link", 'q" ü']);
    expect(git("ls-tree", "caisson/x", "a", "link")).toMatch(/^100755 .*\n120000 /);
    expect([git("status", "--porcelain"), readFileSync(join(folder, ".git/index")).toString("hex")]).toEqual(before);
    expect(git("symbolic-ref", "HEAD")).toBe("refs/heads/main");
    git("fsck", "--strict");
  });

  test("replaces a file with a folder and vice versa", async () => {
    await branch([
      change("d", null, file("x")),
      change("d/b", file("two\n"), null),
      change("a", file("one\n"), null),
      change("a/in", null, file("y")),
    ]);
    expect(filesOf("caisson/x")).toEqual(["a/in", "d"]);
  });

  test("replaces a link that leads outside with a folder", async () => {
    symlinkSync("..", join(folder, "away"));
    git("add", "away");
    git("commit", "-qm", "link");
    const link: FileSide = { kind: "link", mode: 0o777, content: Buffer.from("..") };
    await branch([change("away", link, null), change("away/deep/new.txt", null, file("x\n"))]);
    expect(filesOf("caisson/x")).toContain("away/deep/new.txt");
    expect(filesOf("caisson/x")).not.toContain("away");
  });

  test("leaves out ignored files and git's own, and reports them", async () => {
    put(".gitignore", "*.log\nbuild/\n!keep.log\n");
    const result = await branch([
      change("x.log", null, file("x")),
      change("keep.log", null, file("x")),
      change("build/out", null, file("x")),
      change("sub/.git/config", null, file("x")),
      change("ok", null, file("x")),
    ]);
    expect([result.skipped.map((each) => each.path), result.ignored]).toEqual([["sub/.git/config"], 2]);
    expect(filesOf("caisson/x")).toEqual(["a", "d/b", "keep.log", "ok"]);
    await expect(branch([change("y.log", null, file("x"))], { name: "other" })).rejects.toMatchObject({ code: "conflict" });
  });

  test("works in empty repositories, detached HEADs, linked work trees and subfolders", async () => {
    const addition = change("n", null, file("n"));
    git("checkout", "-q", "--detach");
    await branch([addition], { name: "detached" });
    expect(filesOf("detached")).toEqual(["a", "d/b", "n"]);
    git("worktree", "add", "-q", "-b", "side", join(base, "linked"));
    writeFileSync(join(base, "linked", "s"), "s");
    execFileSync("git", ["-C", join(base, "linked"), "add", "s"]);
    execFileSync("git", ["-C", join(base, "linked"), "-c", "user.name=u", "-c", "user.email=u@x", "commit", "-qm", "side"]);
    await branch([addition], { name: "linked", folder: join(base, "linked") });
    expect(filesOf("linked")).toEqual(["a", "d/b", "n", "s"]);
    await branch([addition], { name: "below", folder: join(folder, "d") });
    expect(filesOf("below")).toEqual(["a", "d/b", "d/n"]);
    folder = join(base, "empty");
    mkdirSync(folder);
    git("init", "-q");
    await branch([addition], { name: "first" });
    expect(filesOf("first")).toEqual(["n"]);
    expect(git("rev-list", "--count", "first")).toBe("1");
  });

  test("rejects existing branches, invalid names, other folders and missing bases", async () => {
    const some = [change("n", null, file("n"))];
    await expect(branch(some, { name: "main" })).rejects.toMatchObject({ code: "exists" });
    for (const name of ["", "-d", "a..b", "a b", "x.lock", "@{-1}", "a/", "HEAD", "x\ny", "~"])
      await expect(branch(some, { name }), name).rejects.toMatchObject({ code: "invalid" });
    await expect(branch(some, { folder: base })).rejects.toMatchObject({ code: "not_found", hint: expect.stringContaining("apply") });
    await expect(branch(some, { base: "0123456789012345678901234567890123456789" })).rejects.toMatchObject({ code: "not_found" });
    await branch(some, { name: "feature/ü-1" });
    expect(git("branch", "--list", "feature/*")).toContain("feature/ü-1");
  });

  test.runIf(process.getuid?.() === 0)("gives what root creates to the repository's owner", async () => {
    execFileSync("chown", ["-R", "1234:1234", folder]);
    chownSync(base, 1234, 1234);
    await branch([change("n", null, file("n")), change("sub/m", null, file("m"))]);
    const foreign = execFileSync("find", [folder, "!", "-uid", "1234"], { encoding: "utf8" });
    expect(foreign).toBe("");
    expect(statSync(join(folder, ".git/refs/heads/caisson/x")).uid).toBe(1234);
  });
});

describe("a branch in a deceptive repository", () => {
  const changes = [change("n", null, file("n"))];

  test("writes nothing through links in git's own files", async () => {
    mkdirSync(join(base, "outside"));
    for (const name of ["objects", "refs"]) {
      rmSync(join(folder, ".git", name), { recursive: true });
      symlinkSync("../../outside", join(folder, ".git", name));
    }
    await expect(branch(changes)).rejects.toMatchObject({ code: "unsupported" });
    expect(readdirSync(join(base, "outside"))).toEqual([]);
  });

  test("writes no branch through a link, and respects another process's lock", async () => {
    mkdirSync(join(base, "outside"));
    symlinkSync("../../../../outside", join(folder, ".git/refs/heads/caisson"));
    await expect(branch(changes)).rejects.toMatchObject({ code: "exists" });
    rmSync(join(folder, ".git/refs/heads/caisson"));
    expect(readdirSync(join(base, "outside"))).toEqual([]);
    put(".git/refs/heads/held.lock", "");
    await expect(branch(changes, { name: "held" })).rejects.toMatchObject({ code: "busy", hint: expect.stringContaining("held.lock") });
    expect(existsSync(join(folder, ".git/refs/heads/held.lock"))).toBe(true);
  });

  test("rejects names that conflict with packed branches", async () => {
    git("branch", "packed/deep");
    git("pack-refs", "--all");
    for (const [name, message] of [
      ["packed/deep", "the branch packed/deep already exists"],
      ["packed", "the branch packed conflicts with the branches below it"],
      ["packed/deep/er", "the branch packed/deep/er conflicts with the branch packed/deep"],
    ] as const)
      await expect(branch(changes, { name })).rejects.toMatchObject({ code: "exists", message });
    await branch(changes, { name: "packed/other" });
    expect(filesOf("packed/other")).toEqual(["a", "d/b", "n"]);
  });

  test("does not follow a .git file to a repository that does not know it", async () => {
    const clone = join(base, "clone");
    mkdirSync(clone);
    writeFileSync(join(clone, ".git"), `gitdir: ${join(folder, ".git")}\n`);
    await expect(branch(changes, { folder: clone })).rejects.toMatchObject({ code: "unsafe" });
    expect(git("branch", "--list")).toBe("* main");
  });

  test("does not borrow objects through the repository's alternates", async () => {
    put(".git/objects/info/alternates", "/elsewhere/objects\n");
    await expect(branch(changes)).rejects.toMatchObject({ code: "unsupported", hint: expect.stringContaining("repack") });
  });

  test("rejects an incomplete commit and fetches nothing", async () => {
    const tree = git("rev-parse", "HEAD^{tree}");
    rmSync(join(folder, ".git/objects", tree.slice(0, 2), tree.slice(2)));
    await expect(branch(changes)).rejects.toMatchObject({ code: expect.stringMatching(/not_found|internal/) });
    expect(git("branch", "--list")).toBe("* main");
  });

  test("works with sha256 and in a submodule", async () => {
    folder = join(base, "long");
    mkdirSync(folder);
    git("init", "-q", "--object-format=sha256");
    put("a", "1");
    git("add", ".");
    git("commit", "-qm", "first");
    expect((await branch(changes)).commit).toHaveLength(64);
    expect(filesOf("caisson/x")).toEqual(["a", "n"]);
    const around = join(base, "around");
    const sub = join(around, "sub");
    mkdirSync(around);
    const plain = (...args: string[]) =>
      execFileSync("git", ["-c", "protocol.file.allow=always", "-C", around, ...args], { stdio: "pipe" });
    plain("init", "-q");
    plain("submodule", "--quiet", "add", join(base, "repo"), "sub");
    await branch(changes, { folder: sub, name: "in-sub" });
    folder = sub;
    expect(filesOf("in-sub")).toEqual(["a", "d/b", "n"]);
  });
});
