import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type OrdinaryUser, ordinaryUser } from "../support/ordinary-user.ts";
import { mountSmallDisk } from "../support/small-disk.ts";
import { launcher, until } from "./caisson-process.ts";

/** Root, which runs the tests, has set up the checkout. An ordinary user then only needs permission to read it. */
describe("an ordinary user", () => {
  let user: OrdinaryUser;
  let base = "";
  beforeAll(() => {
    execFileSync(launcher, ["--version"], { stdio: "ignore" });
    user = ordinaryUser();
    base = mkdtempSync(join(tmpdir(), "caisson-test-"));
    mkdirSync(join(base, "project"));
    writeFileSync(join(base, "project", "mine.txt"), "mine\n");
    writeFileSync(join(base, "project", "private.txt"), "private\n");
    chmodSync(join(base, "project", "private.txt"), 0o600);
    for (const path of ["", "project", "project/mine.txt", "project/private.txt"]) chownSync(join(base, path), user.uid, user.gid);
  });
  afterAll(() => {
    run("sandbox", "rm", "--all", "--yes");
    rmSync(base, { recursive: true, force: true });
    user.remove();
  });

  function asUser() {
    const env = { HOME: base, PATH: "/usr/local/bin:/usr/bin:/bin", CAISSON_HOME: join(base, "home"), LANG: "C.UTF-8" };
    return { cwd: join(base, "project"), env, uid: user.uid, gid: user.gid };
  }
  function run(...argv: string[]) {
    const { status, stdout, stderr } = spawnSync(launcher, argv, { ...asUser(), encoding: "utf8", input: "" });
    return { code: status, stdout, stderr };
  }
  /** Returns the first process of each of this user's sandboxes. They run as the first of the user's sub-ids. */
  function guests(): string[] {
    const first = new RegExp(`^${user.name}:(\\d+):`, "m").exec(readFileSync("/etc/subuid", "utf8"))?.[1];
    if (first === undefined) throw new Error(`${user.name} has no sub-ids`);
    return readdirSync("/proc").filter((name) => {
      try {
        return /^\d+$/.test(name) && new RegExp(`^Uid:\\s+${first}\\s`, "m").test(readFileSync(`/proc/${name}/status`, "latin1"));
      } catch {
        return false;
      }
    });
  }
  const left = () => (existsSync(join(base, "home", "sandboxes")) ? readdirSync(join(base, "home", "sandboxes")) : []);

  test("runs sandboxes without root, and is warned once about missing limits", () => {
    const first = run("exec", "--", "true");
    expect(first.stderr).toMatch(/^(?:caisson: [^\n]* not limited: [^\n]+; [^\n]+\n)?$/);
    expect(run("exec", "--", "true")).toEqual({ code: 0, stdout: "", stderr: "" });
    const result = run("exec", "--", "sh", "-c", "id -u; cat mine.txt private.txt; echo x > new; ls; cat /etc/shadow");
    expect(result.stdout).toBe("1000\nmine\nprivate\nmine.txt\nnew\nprivate.txt\n");
    expect(result.code).toBe(1);
    expect(readdirSync(join(base, "project"))).toEqual(["mine.txt", "private.txt"]);
    expect(left()).toEqual([]);
  });

  test("snapshots and forks a sandbox in memory; the fork keeps the limit", () => {
    const ok = (...argv: string[]) => {
      const { code, stdout, stderr } = run(...argv);
      expect([code, code === 0 ? "" : stderr], argv.join(" ")).toEqual([0, ""]);
      return stdout.trim();
    };
    const sandbox = ok("sandbox", "create", "--disk", "32M");
    ok("exec", "--sandbox", sandbox, "--", "sh", "-c", "echo own > new; rm mine.txt; echo home > ~/known; mkdir -p a/b; echo x > a/b/c");
    // Nothing inside sees the disk itself.
    expect(ok("exec", "--sandbox", sandbox, "--", "sh", "-c", "mv a z; ls -A /.caisson/disk; ! touch /.caisson/disk/x 2>&1")).toContain(
      "Read-only",
    );
    const snapshot = ok("sandbox", "snapshot", sandbox);
    const fork = ok("sandbox", "fork", sandbox);
    ok("exec", "--sandbox", sandbox, "--", "sh", "-c", "echo later > new");
    ok("sandbox", "rm", sandbox, "--yes");
    const look = ["--", "sh", "-c", "cat new ~/known z/b/c; ls; head -c 99999999 /dev/zero > big; stat -c %s big"];
    const seen = /^own\nhome\nx\nnew\nprivate.txt\nz\n(\d+)$/;
    for (const from of [
      ["--sandbox", fork],
      ["--snapshot", snapshot, "--disk", "32M"],
    ]) {
      const text = run("exec", ...from, ...look).stdout.trim();
      expect(text).toMatch(seen);
      expect(Number(seen.exec(text)?.[1])).toBeLessThan(33 * 1024 * 1024);
    }
    ok("sandbox", "rm", fork, "--yes");
    ok("snapshot", "rm", snapshot);
    expect(left()).toEqual([]);
  });

  test.skipIf(!existsSync("/var/lib/dpkg/status"))("cannot install packages as root inside, and learns what to do instead", () => {
    const asRoot = ["exec", "--allow-root", "--user", "root", "--"];
    const refused = run(...asRoot, "apt-get", "-y", "install", "hello");
    expect(refused.code).toBe(100);
    expect(refused.stderr).toContain("caisson image build debian --include");
    expect(run(...asRoot, "apt-get", "--version")).toMatchObject({ code: 0 });
  });

  test("commits in a linked work tree, and only inside", () => {
    // Not in the folder for temporary files, where sandboxes have a separate one.
    const place = mkdtempSync(process.getuid?.() === 0 ? "/srv/caisson-test-" : join(homedir(), ".caisson-test-"));
    try {
      chownSync(place, user.uid, user.gid);
      const git = (...args: string[]) =>
        execFileSync("git", ["-c", "user.name=me", "-c", "user.email=me@x", ...args], { ...asUser(), cwd: place, encoding: "utf8" });
      git("init", "-q", "main");
      git("-C", "main", "commit", "-q", "--allow-empty", "-m", "first");
      git("-C", "main", "worktree", "add", "-q", "../tree");
      const commit = "git -c user.name=me -c user.email=me@x commit -q --allow-empty -m second; git log --format=%s";
      expect(run("exec", "-w", join(place, "tree"), "--", "sh", "-c", commit)).toMatchObject({ stdout: "second\nfirst\n", code: 0 });
      expect(git("-C", "tree", "log", "--all", "--format=%s")).toBe("first\n");
    } finally {
      rmSync(place, { recursive: true, force: true });
    }
  });

  test("owns the files written to a shared folder", () => {
    expect(run("exec", "--workspace", ".:rw", "--", "sh", "-c", "echo y > shared").code).toBe(0);
    const stat = statSync(join(base, "project", "shared"));
    expect([stat.uid, stat.gid]).toEqual([user.uid, user.gid]);
    rmSync(join(base, "project", "shared"));
  });

  test("learns in one line that the state folder is not writable", () => {
    const { env, ...user } = asUser();
    const found = spawnSync(launcher, ["ps"], { ...user, env: { ...env, CAISSON_HOME: "/etc/caisson-state" }, encoding: "utf8" });
    expect(found.stderr).toMatch(/^caisson: the state folder \/etc\/caisson-state cannot be written: permission denied\nhint: .*\n$/);
    expect(found.status).toBe(125);
  });

  test("can share a folder around Caisson's state, which is never shared itself", () => {
    for (const access of ["", ":ro", ":rw"]) {
      const found = run(
        "exec",
        "--workspace",
        `${base}${access}`,
        "--allow-hooks",
        "--",
        "find",
        ".",
        "-name",
        "sandbox.json",
        "-o",
        "-name",
        "mine.txt",
      );
      expect({ access, found: found.stdout, code: found.code }).toEqual({ access, found: "./project/mine.txt\n", code: 0 });
    }
    expect(run("exec", "--workspace", join(base, "home"), "--", "true").stderr).toContain("Caisson keeps its own state");
    expect(left()).toEqual([]);
  });

  test("gets a sandbox with a network even if no inotify instance is left", async () => {
    const call = process.arch === "x64" ? 294 : 26;
    const program = `1 while syscall(${call}, 0) >= 0; $| = 1; print "$!\\n"; <STDIN>`;
    const taker = spawn("perl", ["-e", program], { ...asUser(), stdio: ["pipe", "pipe", "inherit"] });
    const [line] = await once(taker.stdout, "data");
    expect(String(line)).toBe("Too many open files\n");
    const result = run("exec", "--network", "example.com", "--", "echo", "works");
    taker.stdin.end();
    expect({ ...result, stderr: "" }).toEqual({ code: 0, stdout: "works\n", stderr: "" });
    await once(taker, "exit");
  });

  test("can keep a sandbox and remove it", () => {
    const id = run("sandbox", "create").stdout.trim();
    expect(run("exec", "--sandbox", id, "--", "sh", "-c", "echo kept > f; cat f").stdout).toBe("kept\n");
    expect(run("sandbox", "rm", id, "--yes").code).toBe(0);
    expect(left()).toEqual([]);
  });

  test("can clean up after kill -9 at any moment with the next command", async () => {
    const began = performance.now();
    run("exec", "--", "true");
    const wholeMs = performance.now() - began;
    const others = new Set(guests());
    for (let moment = 1; moment <= 12; moment++) {
      const child = spawn(launcher, ["exec", "--", "sleep", "300"], { ...asUser(), stdio: "ignore" });
      const exited = new Promise((resolve) => child.once("exit", resolve));
      await delay((moment * wholeMs) / 12);
      child.kill("SIGKILL");
      await exited;
      run("sandbox", "ls");
      expect(left(), `killed at moment ${moment}`).toEqual([]);
      // Without control groups, only the guest's process id leads to it.
      await until(`no guest is left of moment ${moment}`, () => guests().every((pid) => others.has(pid)));
    }
  });

  test("learns which limit cannot be enforced, instead of getting a weaker one", () => {
    const doctor = JSON.parse(run("doctor", "--json").stdout) as {
      chosen: string;
      runtimes: { name: string; capabilities: { limits: { memoryBytes: boolean } } }[];
    };
    expect(doctor.chosen).toBe("oci");
    const enforced = doctor.runtimes.find((runtime) => runtime.name === "oci")?.capabilities.limits.memoryBytes;
    const result = run("exec", "--memory", "64m", "--", "true");
    if (enforced === true) expect(result.code).toBe(0);
    else expect([result.code, result.stderr]).toEqual([125, expect.stringMatching(/memory[\s\S]*hint: /)]);
  });

  test("is refused limits that would not hold", () => {
    const refused = (...argv: string[]) => {
      const { code, stderr } = run(...argv);
      expect([argv, code, stderr]).toEqual([argv, 125, expect.stringMatching(/cannot be enforced[\s\S]*hint: /)]);
    };
    const groups = run("exec", "--json", "--pids", "60", "--", "true");
    expect(groups.code).toBe(0);
    if (groups.stdout.includes("no control group")) refused("exec", "--pids", "60", "--allow-root", "--", "true");
    refused("exec", "--disk", "32m", "--workspace", ".:rw", "--", "true");
    writeFileSync(join(base, "small.prompt"), "---\nsandbox:\n  disk: 32m\n---\nWork.\n");
    writeFileSync(join(base, "script.json"), JSON.stringify({ turns: [{ calls: [{ tool: "bash", arguments: { command: "true" } }] }] }));
    const { stdout, stderr } = run("run", join(base, "small.prompt"), "do it", "--model", `scripted:${join(base, "script.json")}`);
    expect(stdout + stderr).toContain("diskBytes cannot be enforced");
    expect(left()).toEqual([]);
  });

  test.runIf(process.getuid?.() === 0)("cannot fill a disk, because the command is ended first", () => {
    const disk = mountSmallDisk(user);
    try {
      const before = disk.freeBytes();
      const { code, stderr } = run("exec", "--workspace", `${disk.folder}:rw`, "--", "sh", "-c", "cat /dev/zero > big");
      expect([code, stderr]).toEqual([137, expect.stringContaining("disk is nearly full")]);
      expect(disk.freeBytes()).toBeGreaterThan(before / 8);
    } finally {
      disk.remove();
    }
  });
});
