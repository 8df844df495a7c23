import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { linkedRepository } from "./linked-repository.ts";

let base: string;
beforeEach(() => {
  base = realpathSync(mkdtempSync(join(tmpdir(), "linked-repository-")));
  git("init", "-q", "main");
  git("-C", "main", "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m", "first");
  git("-C", "main", "worktree", "add", "-q", "../tree");
});
afterEach(() => rmSync(base, { recursive: true }));
const git = (...args: string[]) =>
  execFileSync("git", args, { cwd: base, stdio: "pipe", env: { PATH: process.env.PATH, HOME: base, GIT_CONFIG_NOSYSTEM: "1" } });
const at = (path: string) => join(base, path);
const point = (folder: string, to: string) => {
  mkdirSync(at(folder), { recursive: true });
  writeFileSync(at(`${folder}/.git`), `gitdir: ${to}\n`);
};
const refused = (why: RegExp) => ({ kind: "refused", why: expect.stringMatching(why) });

test("finds a work tree's repository, even through a relative path", () => {
  expect(linkedRepository(at("tree"))).toEqual({ kind: "linked", source: at("main/.git"), target: at("main/.git") });
  point("tree", "../main/.git/worktrees/tree");
  expect(linkedRepository(at("tree"))).toEqual({ kind: "linked", source: at("main/.git"), target: "/main/.git" });
});

test("finds nothing to link for a plain repository or a folder without one", () => {
  expect(linkedRepository(at("main"))).toEqual({ kind: "none" });
  expect(linkedRepository(base)).toEqual({ kind: "none" });
  mkdirSync(at("main/own/real"), { recursive: true });
  point("main/own", "real");
  expect(linkedRepository(at("main/own"))).toEqual({ kind: "none" });
});

test("rejects a .git file whose repository does not know this work tree", () => {
  // Another work tree's repository, and folders that are not repositories.
  point("other", at("main/.git/worktrees/tree"));
  expect(linkedRepository(at("other"))).toEqual(refused(/does not know this work tree/));
  point("other", at("main/.git"));
  expect(linkedRepository(at("other"))).toEqual(refused(/does not know/));
  point("other", "/etc");
  expect(linkedRepository(at("other"))).toEqual(refused(/does not know/));
  point("other", "/nowhere");
  expect(linkedRepository(at("other"))).toEqual(refused(/does not exist/));
  // A work tree that was moved without Git's knowledge.
  renameSync(at("tree"), at("moved"));
  expect(linkedRepository(at("moved"))).toEqual(refused(/does not know/));
});

test("rejects a planted worktrees folder and a forged commondir", () => {
  mkdirSync(at("victim/worktrees/x"), { recursive: true });
  point("lure", at("victim/worktrees/x"));
  writeFileSync(at("victim/worktrees/x/gitdir"), `${at("lure/.git")}\n`);
  writeFileSync(at("victim/worktrees/x/commondir"), "../..\n");
  expect(linkedRepository(at("lure"))).toEqual(refused(/not in a repository/));
  writeFileSync(at("victim/worktrees/x/commondir"), `${at("main/.git")}\n`);
  expect(linkedRepository(at("lure"))).toEqual(refused(/does not know/));
  mkdirSync(at("linked"));
  symlinkSync(at("victim"), at("linked/worktrees"));
  point("lure", at("linked/worktrees/worktrees/x"));
  writeFileSync(at("victim/worktrees/x/commondir"), "../..\n");
  expect(linkedRepository(at("lure"))).toMatchObject({ kind: "refused" });
});

test("rejects a world-writable repository", () => {
  chmodSync(at("main/.git"), 0o777);
  expect(linkedRepository(at("tree"))).toEqual(refused(/other users/));
});
