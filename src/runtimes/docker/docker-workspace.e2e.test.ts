import { execFileSync } from "node:child_process";
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
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { sh, useDockerHarness } from "../../../test/support/docker-harness.ts";
import { mountSmallDisk } from "../../../test/support/small-disk.ts";

const _MIB = 1024 * 1024;
const docker = useDockerHarness();

describe("workspace", () => {
  test("overlay: copies the folder for the sandbox's user", async () => {
    const folder = docker.newFolder("workspace");
    mkdirSync(join(folder, "sub"));
    writeFileSync(join(folder, "sub/file"), "before", { mode: 0o600 });
    await using sandbox = await docker.runtime.create(docker.configOf({ workspace: { kind: "folder", path: folder } }));
    const { stdout } = await sh(sandbox, "cat sub/file; echo after > sub/file; cat sub/file; rm -r sub; ls");
    expect(stdout).toBe("beforeafter\n");
    expect(readFileSync(join(folder, "sub/file"), "utf8")).toBe("before");
  });

  test("copies the repository of a linked work tree, or warns that git will not work", async () => {
    const git = (place: string, ...args: string[]) =>
      execFileSync("git", ["-c", "user.name=me", "-c", "user.email=me@x", "-C", place, ...args], { encoding: "utf8" });
    // Not in the temporary folder: sandboxes mount their own there.
    const place = mkdtempSync("/srv/caisson-test-");
    const hidden = docker.newFolder("repository");
    const create = (path: string) => docker.runtime.create(docker.configOf({ workspace: { kind: "folder", path } }));
    try {
      for (const at of [place, hidden]) {
        git(at, "init", "-q", "main");
        git(join(at, "main"), "commit", "-q", "--allow-empty", "-m", "first");
        git(join(at, "main"), "worktree", "add", "-q", "../tree");
      }
      await using sandbox = await create(join(place, "tree"));
      expect(sandbox.info.warnings.join()).not.toContain("git");
      const look = 'at=$(sed "s/gitdir: //" .git); cat $at/HEAD $at/commondir; ls $at/../../objects | wc -l; echo x > $at/made && echo ok';
      expect((await sh(sandbox, look)).stdout).toMatch(/^ref: refs\/heads\/tree\n\.\.\/\.\.\n[1-9]\d*\nok\n$/);
      expect(existsSync(join(place, "main/.git/worktrees/tree/made"))).toBe(false);

      await using other = await create(join(hidden, "tree"));
      expect(other.info.warnings.join()).toMatch(/git does not work in this workspace: its repository would be at /);
    } finally {
      rmSync(place, { recursive: true, force: true });
    }
  });

  test("rw: changes belong to the folder's owner", async () => {
    const folder = docker.newFolder("workspace", 12_345);
    await using sandbox = await docker.runtime.create(docker.configOf({ workspace: { kind: "folder", path: folder, access: "rw" } }));
    expect((await sh(sandbox, "id -u; echo made > made; mkdir sub")).stdout).toBe("12345\n");
    await sandbox.writeFile("/workspace/by-host", Buffer.from("x"));
    expect(statSync(join(folder, "made")).uid).toBe(12_345);
    expect(statSync(join(folder, "by-host")).uid).toBe(12_345);
    expect(statSync(folder)).toMatchObject({ uid: 12_345, mode: 0o40700 });
    await expect(sandbox.snapshot()).rejects.toMatchObject({ code: "unsupported" });
    await expect(sandbox.fork()).rejects.toMatchObject({ code: "unsupported" });
  });

  test("rw: blocks set-user-id files in the folder, and refuses root", async () => {
    const folder = docker.newFolder("workspace", 12_345);
    const config = { workspace: { kind: "folder" as const, path: folder, access: "rw" as const } };
    await expect(docker.runtime.create(docker.configOf({ ...config, allowRoot: true }))).rejects.toMatchObject({
      code: "unsupported",
      hint: expect.stringContaining("--allow-root"),
    });
    await using sandbox = await docker.runtime.create(docker.configOf(config));
    const { stdout } = await sh(sandbox, "cp /bin/busybox s; chmod 4755 s 2>&1; chmod g+s s 2>&1; chmod 755 s && stat -c %a s");
    expect(stdout).toMatch(/not permitted[\s\S]*not permitted[\s\S]*755\n$/);
    expect(statSync(join(folder, "s")).mode & 0o7777).toBe(0o755);
  });

  test("rw: kills programs that fill the folder's disk before it is full", async () => {
    const disk = mountSmallDisk({ uid: 12_345, gid: 12_345 });
    try {
      const workspace = { kind: "folder" as const, path: disk.folder, access: "rw" as const };
      const before = disk.freeBytes();
      await using sandbox = await docker.runtime.create(docker.configOf({ workspace }));
      expect((await sh(sandbox, "cat /dev/zero > big")).ended).toMatchObject({ kind: "killed", why: "disk" });
      expect(disk.freeBytes()).toBeGreaterThan(before / 8);
      await expect(docker.runtime.create(docker.configOf({ workspace, limits: { diskBytes: 2 ** 24 } }))).rejects.toMatchObject({
        code: "unsupported",
      });
    } finally {
      disk.remove();
    }
  });

  test("rw: refuses a folder that belongs to root, with a hint", async () => {
    const refused = docker.runtime.create(
      docker.configOf({ workspace: { kind: "folder", path: docker.newFolder("workspace"), access: "rw" } }),
    );
    await expect(refused).rejects.toMatchObject({ code: "unsupported", hint: expect.stringContaining("overlay") });
  });

  test("ro: allows only reads, and refuses a folder that the sandbox's user cannot read", async () => {
    const folder = docker.newFolder("workspace");
    writeFileSync(join(folder, "file"), "x");
    const config = docker.configOf({ workspace: { kind: "folder", path: folder, access: "ro" } });
    await expect(docker.runtime.create(config)).rejects.toMatchObject({ code: "denied", hint: expect.stringContaining("chmod") });
    expect(await docker.runtime.list()).toEqual([]);
    chmodSync(folder, 0o777);
    await using sandbox = await docker.runtime.create(config);
    expect((await sh(sandbox, "cat file; touch made 2>&1")).stdout).toMatch(/^xtouch: .*Read-only/);
    expect(readdirSync(folder)).toEqual(["file"]);
  });

  test("enforces read-only and denied paths, even ones that did not exist", async () => {
    await using sandbox = await docker.runtime.create(
      docker.configOf({ readOnlyPaths: ["/home/user/fixed"], deniedPaths: ["/etc/passwd", "/workspace/no"] }),
    );
    const { stdout } = await sh(
      sandbox,
      "cat /etc/passwd; touch /home/user/fixed/x /workspace/no/x 2>&1; mv /workspace/no /workspace/yes 2>&1",
    );
    expect(stdout.match(/Read-only/g)).toHaveLength(2);
    expect(stdout).toContain("busy");
    expect(stdout).not.toContain("root:");
  });

  test("hides the state folder in a shared folder, and refuses to share it", async () => {
    const home = docker.newFolder("home", 1234);
    chmodSync(home, 0o755);
    const stateDir = join(home, ".state", "caisson");
    mkdirSync(stateDir, { recursive: true, mode: 0o755 });
    for (const path of [join(home, ".state"), stateDir]) chownSync(path, 1234, 1234);
    writeFileSync(join(stateDir, "log.db"), "precious", { mode: 0o666 });
    const runtime = docker.runtimeWith({ stateDir });
    for (const access of ["overlay", "ro", "rw"] as const) {
      await using sandbox = await runtime.create(docker.configOf({ workspace: { kind: "folder", path: home, access } }));
      const { stdout } = await sh(
        sandbox,
        "find . -name log.db -o -name guest.sock -o -name token; touch .state/caisson/x; mv .state moved; ls -A",
      );
      expect({ access, stdout: stdout.replace(/.*: .*\n/g, "") }).toEqual({
        access,
        stdout: access === "overlay" ? "moved\n" : ".state\n",
      });
    }
    expect(readdirSync(stateDir)).toEqual(expect.not.arrayContaining(["x"]));
    for (const [path, access] of [
      [stateDir, "ro"],
      [join(stateDir, "sandboxes"), "overlay"],
    ] as const) {
      mkdirSync(join(stateDir, "sandboxes", "some"), { recursive: true });
      const config = docker.configOf({ workspace: { kind: "folder", path, access } });
      await expect(runtime.create(config)).rejects.toMatchObject({ code: "invalid" });
    }
  });

  test("copies thousands of files completely, and leaves nothing when cancelled", async () => {
    const folder = docker.newFolder("workspace");
    for (let i = 0; i < 3000; i += 1) writeFileSync(join(folder, `file-${i}`), Buffer.alloc(10_000, i % 256));
    const config = docker.configOf({ workspace: { kind: "folder", path: folder } });
    await using sandbox = await docker.runtime.create(config);
    expect((await sh(sandbox, "ls | wc -l; du -sk . | cut -f1")).stdout).toMatch(/^3000\n3\d{4}\n/);
    for (const afterMs of [20, 60, 120, 200, 300]) {
      const created = docker.runtime.create(config, { signal: AbortSignal.timeout(afterMs) });
      await created.then(
        (newSandbox) => newSandbox.destroy(),
        (error) => expect(error).toMatchObject({ code: "cancelled" }),
      );
      expect((await docker.runtime.list()).map(({ id }) => id)).toEqual([sandbox.id]);
      expect(docker.containers()).toEqual([`caisson-${sandbox.id}`]);
    }
  });
});
