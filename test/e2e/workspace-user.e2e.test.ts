import { execFileSync, spawnSync } from "node:child_process";
import { chownSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type OrdinaryUser, ordinaryUser } from "../support/ordinary-user.ts";
import { launcher } from "./caisson-process.ts";

describe("an ordinary user's workspace", () => {
  let user: OrdinaryUser;
  let base = "";
  const project = () => join(base, "project");
  beforeAll(() => {
    execFileSync(launcher, ["--version"], { stdio: "ignore" });
    user = ordinaryUser();
    base = mkdtempSync(join(tmpdir(), "caisson-test-"));
    mkdirSync(project());
    writeFileSync(join(project(), "a"), "1\n");
    mkdirSync(join(project(), "d"));
    writeFileSync(join(project(), "d", "b"), "2\n");
    for (const path of ["", "project", "project/a", "project/d", "project/d/b"]) chownSync(join(base, path), user.uid, user.gid);
  });
  afterAll(() => {
    run("sandbox", "rm", "--all", "--yes");
    rmSync(base, { recursive: true, force: true });
    user.remove();
  });
  function run(...argv: string[]) {
    const env = { HOME: base, PATH: "/usr/local/bin:/usr/bin:/bin", CAISSON_HOME: join(base, "home"), LANG: "C.UTF-8" };
    const { status, stdout, stderr } = spawnSync(launcher, argv, {
      cwd: project(),
      env,
      uid: user.uid,
      gid: user.gid,
      encoding: "utf8",
      input: "",
    });
    return { code: status, stdout, stderr };
  }
  function work(command: string, ...argv: string[]) {
    const script = join(base, `script-${Math.random().toString(36).slice(2)}.json`);
    writeFileSync(script, JSON.stringify({ turns: [{ calls: [{ tool: "bash", arguments: { command } }] }, { say: "Done." }] }));
    const result = run("run", "go", "--model", `scripted:${script}`, "--runtime", "oci", ...argv);
    expect(result.code, result.stderr + result.stdout).toBe(0);
  }

  test("is restored by undo, with files that were removed, replaced or closed", () => {
    const script = join(base, "undo.json");
    const bash = (command: string) => ({ calls: [{ tool: "bash", arguments: { command } }] });
    const second = "echo two >> a; rm one; rm -r d; mkdir d shut; echo n > d/n; echo s > shut/s; chmod 000 shut";
    writeFileSync(script, JSON.stringify({ turns: [bash("echo one > one"), { say: "One." }, bash(second), { say: "Two." }] }));
    const firstRun = run("run", "go", "--model", `scripted:${script}`, "--runtime", "oci", "--session", "undone", "--json");
    const id = /"run":"(run_\w+)"/.exec(firstRun.stdout)?.[1] ?? "";
    expect(run("run", "--continue", id, "more").code).toBe(0);
    expect(run("diff", "--stat", id).stdout).toMatch(/modified +a[\s\S]*removed +d\/b[\s\S]*added +d\/n/);
    const undone = run("undo", id);
    expect([undone.code, undone.stdout], undone.stderr).toEqual([0, expect.stringMatching(/:\n {2}a\n {2}d\/b\n {2}d\/n\n {2}one\n/)]);
    expect(run("diff", "--stat", id).stdout.trim()).toMatch(/^added +one +\S+ \S+$/);
    expect(run("undo", id).stdout).toMatch(/:\n {2}one\n$/);
    expect(run("undo", id)).toMatchObject({ code: 125, stderr: expect.stringContaining("no turn") });
    expect(run("session", "rm", "undone").code).toBe(0);
    expect(existsSync(join(base, "home", "sessions", "undone"))).toBe(false);
  });

  test("can be diffed, reused, applied and removed with any modes in it", () => {
    work(
      "echo more >> a; rm -r d; mkdir d shut; echo n > d/n; echo s > shut/s; chmod 000 shut; echo x > none; chmod 000 none",
      "--session",
      "mine",
    );
    const diff = run("diff", "mine");
    expect(diff.stdout).toContain("+more");
    expect(diff.stderr).toMatch(/left out none[\s\S]*left out shut/);
    work("test -e d/n && grep more a && chmod 700 shut && echo two >> a", "--session", "mine");
    const applied = run("apply", "mine");
    expect(applied.code, applied.stderr).toBe(0);
    expect(readFileSync(join(project(), "a"), "utf8")).toBe("1\nmore\ntwo\n");
    expect(readdirSync(project()).sort()).toEqual(["a", "d", "shut"]);
    expect(["a", "d/n", "shut/s"].map((name) => statSync(join(project(), name)).uid)).toEqual([user.uid, user.uid, user.uid]);
    const removed = run("session", "rm", "mine", "--yes");
    expect(removed.code, removed.stderr).toBe(0);
    expect(existsSync(join(base, "home", "sessions", "mine"))).toBe(false);
  });
});
