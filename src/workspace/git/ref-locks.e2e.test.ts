import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createBareRemote } from "./bare-remote.ts";

let base = "";
let bare = "";
let stateDir = "";
const author = { GIT_AUTHOR_NAME: "u", GIT_AUTHOR_EMAIL: "u@x", GIT_COMMITTER_NAME: "u", GIT_COMMITTER_EMAIL: "u@x" };
const git = (...args: string[]) =>
  execFileSync("git", ["-C", bare, ...args], { encoding: "utf8", env: { ...process.env, ...author } }).trim();

beforeEach(() => {
  base = mkdtempSync(join(tmpdir(), "caisson-test-"));
  [bare, stateDir] = [join(base, "bare.git"), join(base, "state")];
  execFileSync("git", ["init", "-q", "--bare", "-b", "main", bare]);
  const tree = git("mktree");
  git("update-ref", "refs/heads/main", git("commit-tree", "-m", "first", tree));
  git("update-ref", "refs/heads/next", git("commit-tree", "-m", "second", "-p", "main", tree));
});
afterEach(() => rmSync(base, { recursive: true, force: true }));

const path = process.env.PATH ?? "";
const push = (update: Parameters<ReturnType<typeof createBareRemote>["push"]>[0][number]) =>
  createBareRemote({ path: bare, hash: "sha1", git: { path }, locks: { stateDir } }).push([update], null);
const everything = () => readdirSync(bare, { recursive: true, encoding: "utf8" });

/** Starts a process that moves a ref and is killed at its Nth step. Returns whether it was killed. */
function pushAndDie(update: object, at: number): boolean {
  const program = `
    import { createBareRemote } from ${JSON.stringify(join(import.meta.dirname, "bare-remote.ts"))};
    const { bare, stateDir, update, at } = JSON.parse(process.argv[1]);
    let step = 0;
    const crashpoint = () => { if (step++ === at) process.kill(process.pid, "SIGKILL"); };
    await createBareRemote({ path: bare, hash: "sha1", git: { path: process.env.PATH }, locks: { stateDir, crashpoint } }).push([update], null);
  `;
  const order = JSON.stringify({ bare, stateDir, update, at });
  const { signal, stderr, status } = spawnSync(process.execPath, ["--input-type=module", "--eval", program, order], { encoding: "utf8" });
  expect([status, signal], stderr).toEqual(signal === null ? [0, null] : [null, "SIGKILL"]);
  return signal === "SIGKILL";
}

describe("a process killed while it moves a ref of a bare repository", () => {
  test.each(["makes", "moves", "removes"] as const)("leaves no lock behind when it %s the ref", async (what) => {
    const [main, next] = [git("rev-parse", "main"), git("rev-parse", "next")];
    const before = what === "makes" ? null : main;
    const update = { ref: "refs/heads/topic/x", from: before, to: what === "removes" ? null : next };
    let kills = 0;
    for (let at = 0; ; at++) {
      if (before === null) git("update-ref", "-d", "refs/heads/topic/x");
      else git("update-ref", "refs/heads/topic/x", before);
      if (what === "removes") git("pack-refs", "--all");
      if (!pushAndDie(update, at)) break;
      kills += 1;
      const isDone = (await createBareRemote({ path: bare, hash: "sha1", git: { path }, locks: { stateDir } }).refs()).refs;
      const now = isDone.get("refs/heads/topic/x") ?? null;
      expect([before, update.to], `killed at ${at}`).toContain(now);
      // Skips an update that has taken effect, as a ship does.
      if (now !== update.to) await push(update);
      expect(
        everything().filter((name) => name.includes("lock")),
        `killed at ${at}`,
      ).toEqual([]);
      expect(readdirSync(join(stateDir, "ref-locks"))).toEqual([]);
      // Other processes can push there as well.
      git("update-ref", "refs/heads/topic/x", main);
    }
    expect(kills).toBeGreaterThan(4);
    git("fsck", "--strict");
  });

  test("does not take another process's lock", async () => {
    const next = git("rev-parse", "next");
    const update = { ref: "refs/heads/x", from: null, to: next };
    expect(pushAndDie(update, 2)).toBe(true);
    // Our lock is gone, and git now has one with the same name and content.
    rmSync(join(bare, "refs/heads/x.lock"), { force: true });
    writeFileSync(join(bare, "refs/heads/x.lock"), `${next}\n`);
    await expect(push(update)).rejects.toMatchObject({ code: "busy" });
    expect(everything().filter((name) => name.includes("lock"))).toEqual(["refs/heads/x.lock"]);
  });
});
