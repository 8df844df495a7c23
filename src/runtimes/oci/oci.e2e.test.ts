import { chownSync, existsSync, lstatSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { SandboxConfigInput } from "../../contract/sandbox/sandbox.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import { detailsOf } from "./details.ts";
import { createOciRuntime, type OciRuntime } from "./runtime.ts";
import { asRoot, configOf, guestPath, nothing, recordIn, remainsOf, settings, sh } from "./testing-oci.ts";

let base: string;
let stateDir: string;
let runtime: OciRuntime;
const create = (input?: SandboxConfigInput): Promise<OwnedSandbox> => runtime.create(configOf(input));
const remains = () => remainsOf(stateDir);
const recordOf = (id: string) => recordIn(stateDir, id);

describe.skipIf(!asRoot)("oci as root", () => {
  beforeEach(() => {
    base = mkdtempSync(join(tmpdir(), "caisson-test-"));
    stateDir = join(base, "state");
    runtime = createOciRuntime({ stateDir, guestPath }, settings);
  });
  afterEach(async () => {
    await runtime[Symbol.asyncDispose]();
    await runtime.sweep();
    for (const { id } of await runtime.list()) await (await runtime.open(id)).destroy();
    rmSync(base, { recursive: true, force: true });
  });

  describe("a workspace of another owner", () => {
    let folder: string;
    beforeEach(() => {
      folder = join(base, "their-folder");
      mkdirSync(folder);
      writeFileSync(join(folder, "file"), "theirs");
      for (const path of [folder, join(folder, "file")]) chownSync(path, 501, 502);
    });

    it("rw: belongs to the sandbox's user inside; new files belong to the owner", async () => {
      const sandbox = await create({ workspace: { kind: "folder", path: folder, access: "rw" } });
      expect((await sh(sandbox, "stat -c %u:%g . file")).text).toBe("1000:1000\n1000:1000");
      await sh(sandbox, "echo new > made; mkdir sub; echo more >> file");
      expect(lstatSync(join(folder, "made"))).toMatchObject({ uid: 501, gid: 502 });
      expect(readFileSync(join(folder, "file"), "utf8")).toBe("theirsmore\n");
      await sandbox.destroy();
    });

    it("rw: lets no code inside create a set-user-id file, not even root", async () => {
      const sandbox = await create({ workspace: { kind: "folder", path: folder, access: "rw" }, allowRoot: true });
      expect((await sh(sandbox, "chmod 4755 file || chmod g+s file")).ended).toMatchObject({ exitCode: 1 });
      expect((await sh(sandbox, "cp /bin/true x && chmod u+s x", "root")).ended).toMatchObject({ kind: "exited", exitCode: 1 });
      const empty = "import os, stat; os.mknod('made-empty', stat.S_IFREG | 0o4755)";
      expect((await sh(sandbox, `python3 -c "${empty}"`)).complaint).toContain("PermissionError");
      expect((await sh(sandbox, "chmod 755 file && touch y && mkdir -m 700 z")).ended).toMatchObject({ exitCode: 0 });
      expect(lstatSync(join(folder, "x")).uid).not.toBe(0);
      await sandbox.destroy();
    });

    it("overlay: can be changed inside and stays the same outside", async () => {
      const sandbox = await create({ workspace: { kind: "folder", path: folder } });
      expect((await sh(sandbox, "stat -c %u . file; echo changed > file; rm -f file; touch added; ls")).text).toBe("1000\n1000\nadded");
      await sandbox.destroy();
      expect(readdirSync(folder)).toEqual(["file"]);
    });

    it("is refused before anything is created if it is missing or a file", async () => {
      await expect(create({ workspace: { kind: "folder", path: join(folder, "no") } })).rejects.toMatchObject({ code: "not_found" });
      await expect(create({ workspace: { kind: "folder", path: join(folder, "file") } })).rejects.toMatchObject({ code: "invalid" });
      expect(remains()).toEqual(nothing);
    });
  });

  it.runIf(asRoot)("finds a workspace below any folder, even where the launcher mounts its stage", async () => {
    for (const parent of ["/mnt", "/srv", "/opt"]) {
      const folder = mkdtempSync(join(parent, "caisson-test-"));
      try {
        writeFileSync(join(folder, "mine.txt"), "mine\n");
        await using sandbox = await create({ workspace: { kind: "folder", path: folder } });
        expect((await sh(sandbox, "cat mine.txt")).text).toBe("mine");
      } finally {
        rmSync(folder, { recursive: true });
      }
    }
  });

  it("works with a state folder longer than a socket address", async () => {
    const deep = join(stateDir, "x".repeat(90), "y".repeat(60));
    mkdirSync(deep, { recursive: true, mode: 0o700 });
    const far = createOciRuntime({ stateDir: deep, guestPath }, settings);
    const sandbox = await far.create(configOf());
    expect((await sh(sandbox, "echo here")).text).toBe("here");
    await sandbox.destroy();
    await far[Symbol.asyncDispose]();
  });

  it("lets root inside install into /usr, which stays the same outside", async () => {
    const sandbox = await create({ allowRoot: true });
    expect((await sh(sandbox, "touch /usr/bin/new-program && sudo id -u && ls /usr/bin/new-program", "root")).text).toBe(
      "0\n/usr/bin/new-program",
    );
    expect(existsSync("/usr/bin/new-program")).toBe(false);
    await sandbox.destroy();
  });

  describe("the pool", () => {
    let pooled: OciRuntime;
    beforeEach(async () => {
      pooled = createOciRuntime({ stateDir, guestPath }, { ...settings, pool: { sandboxes: 1, networkNamespaces: 1 } });
      await pooled.warm();
    });

    const waiting = () => readdirSync(join(stateDir, "sandboxes")).filter((id) => id.startsWith("sb_") && detailsOf(recordOf(id)).waiting);

    it("hands out a waiting sandbox with the requested limits and workspace", async () => {
      const folder = join(base, "folder");
      mkdirSync(folder);
      writeFileSync(join(folder, "file"), "content");
      const [ready] = waiting();
      expect(await pooled.list()).toEqual([]);
      const sandbox = await pooled.create(
        configOf({
          workspace: { kind: "folder", path: folder },
          limits: { pids: 33, cpus: 0.5, memoryBytes: 67_108_864 },
          labels: { a: "b" },
        }),
      );
      expect(sandbox.id).toBe(ready);
      expect(sandbox.info).toMatchObject({
        limits: { pids: 33, cpus: 0.5, memoryBytes: 67_108_864 },
        labels: { a: "b" },
        workspace: { path: folder },
      });
      expect((await sh(sandbox, "cat file; echo changed > file; stat -c %u file .")).text).toBe("content1000\n1000");
      expect(readFileSync(join(folder, "file"), "utf8")).toBe("content");
      const { cgroups } = detailsOf(recordOf(sandbox.id));
      const limit = (controller: string, file: string) =>
        readFileSync(join(cgroups.find(({ controllers }) => controllers.includes(controller))?.dir ?? "", "work", file), "utf8").trim();
      expect(limit("pids", "pids.max")).toBe("33");
      await sandbox.destroy();
      await pooled[Symbol.asyncDispose]();
      expect(remains()).toEqual({ ...nothing });
    });

    it("starts a new sandbox for a config that the waiting one does not fit", async () => {
      const [ready] = waiting();
      const sandbox = await pooled.create(configOf({ allowRoot: true }));
      expect(sandbox.id).not.toBe(ready);
      expect((await sh(sandbox, "id -u", "root")).text).toBe("0");
      await sandbox.destroy();
      await pooled[Symbol.asyncDispose]();
      expect(remains()).toEqual(nothing);
    });
  });

  it("restores snapshots of an overlay and of /usr, and removes a fork's snapshot", async () => {
    const folder = join(base, "folder");
    mkdirSync(folder);
    for (const name of ["changed", "removed", "kept"]) writeFileSync(join(folder, name), name);
    const first = await create({ workspace: { kind: "folder", path: folder }, allowRoot: true });
    await sh(
      first,
      "touch /usr/bin/new-program; echo more >> changed; rm removed; mkfifo pipe; ln changed linked; touch /home/user/x; chown -R user /workspace",
      "root",
    );
    const look = "cat changed; ls -i changed linked | awk '{print $1}' | uniq | wc -l; ls; ls /usr/bin/new-program /home/user";
    const expected = "changedmore\n1\nchanged\nkept\nlinked\npipe\n/usr/bin/new-program\n\n/home/user:\nx";
    const id = await first.snapshot({ name: "one" });
    const fork = await first.fork();
    await first.destroy();
    expect((await sh(fork, look)).text).toBe(expected);
    const again = await create({ template: { kind: "snapshot", id }, allowRoot: true });
    expect((await sh(again, look)).text).toBe(expected);
    await runtime.removeSnapshot(id);
    expect(await runtime.snapshots()).toEqual([]);
    expect((await sh(again, look)).text).toBe(expected);
    expect((await sh(await again.fork(), look)).text).toBe(expected);
    await again.destroy();
    await fork.destroy();
    for (const { id } of await runtime.list()) await (await runtime.open(id)).destroy();
    expect(readdirSync(join(stateDir, "layers"))).toEqual([]);
    expect(readdirSync(folder).sort()).toEqual(["changed", "kept", "removed"]);
    expect(remains()).toEqual(nothing);
  });

  it.each(["crun", "runc"])("%s: shows only the control groups of the work, read-only, with its limits", async (ociRuntime) => {
    await runtime[Symbol.asyncDispose]();
    runtime = createOciRuntime({ stateDir, guestPath }, { ...settings, ociRuntime });
    await using sandbox = await create({ limits: { memoryBytes: 256 * 1024 * 1024, pids: 77, cpus: 1.5 }, allowRoot: true });
    const unified = existsSync("/sys/fs/cgroup/cgroup.controllers");
    const files = unified ? "memory.max pids.max cpu.max" : "memory/memory.limit_in_bytes pids/pids.max cpu/cpu.cfs_quota_us";
    const { text } = await sh(sandbox, `cd /sys/fs/cgroup; cut -d: -f3 /proc/self/cgroup | sort -u; cat ${files}`);
    expect(text.split("\n")).toEqual(["/", String(256 * 1024 * 1024), "77", unified ? "150000 100000" : "150000"]);
    const write = `cd /sys/fs/cgroup; for file in . ${files}; do [ -d $file ] && file=new; echo 1 >> $file && echo "$file is writable"; done`;
    for (const user of ["user", "root"]) expect((await sh(sandbox, write, user)).text).toBe("");
    await sandbox.destroy();
    expect(remains()).toEqual(nothing);
  });

  it("a pause freezes only the work, so that another process can resume it", async () => {
    const sandbox = await create({ keep: true });
    await sandbox.pause();
    const other = createOciRuntime({ stateDir, guestPath }, settings);
    const opened = await other.open(sandbox.id);
    expect(opened.info.state).toBe("paused");
    await opened.resume();
    expect((await sh(opened, "echo awake")).text).toBe("awake");
    await opened.destroy();
    expect(remains()).toEqual(nothing);
  });
});
