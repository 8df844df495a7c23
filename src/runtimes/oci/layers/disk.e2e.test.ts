import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { mountSmallDisk, type SmallDisk } from "../../../../test/support/small-disk.ts";
import { SandboxConfig, type SandboxConfigInput } from "../../../contract/sandbox/sandbox.ts";
import { runCommand } from "../../../sandbox/run-command.ts";
import type { OwnedSandbox } from "../../../sandbox/sandbox.ts";
import { detailsOf } from "../details.ts";
import { createOciRuntime, type OciOptions, type OciRuntime } from "../runtime.ts";

const MIB = 1024 * 1024;
const guestPath = join(import.meta.dirname, "../../../../guest/build/caisson-guest");
const settings: OciOptions = { home: "/root", path: process.env.PATH ?? "" };
const asRoot = process.getuid?.() === 0;

let base: string;
let stateDir: string;
let runtime: OciRuntime;
let folder: string;
let layer: string;
const create = (input: SandboxConfigInput = {}) => runtime.create(SandboxConfig.parse(input));
const sh = async (sandbox: OwnedSandbox, script: string) => {
  const { stdout, stderr } = await runCommand(sandbox, { argv: ["sh", "-c", script] });
  return stdout + stderr;
};
const onLayer = (limits: SandboxConfigInput["limits"] = {}): SandboxConfigInput => ({
  workspace: { kind: "folder", path: folder, layer },
  limits,
});
const asInsideRoot = async (sandbox: OwnedSandbox, script: string) =>
  await runCommand(sandbox, { argv: ["sh", "-c", script], user: "root" });
/** Lists what a test may change. */
const look = (sandbox: OwnedSandbox) =>
  sh(
    sandbox,
    "cd /; find workspace home/user usr/local etc/caisson-test -printf '%p %y %m %U %l\\n' 2>/dev/null | sort; find workspace home/user etc/caisson-test -type f -exec md5sum {} + 2>/dev/null | sort; ls -d usr/share/doc usr/share/moved 2>/dev/null",
  );
const fail = (isDue: boolean) => {
  if (isDue) throw new Error("crashed");
};
const guestPid = (id: string) =>
  detailsOf(JSON.parse(readFileSync(join(stateDir, "sandboxes", id, "sandbox.json"), "utf8"))).guest?.pid ?? -1;

describe.skipIf(!asRoot)("without a disk limit, on a small disk", () => {
  let disk: SmallDisk;
  beforeEach(() => {
    disk = mountSmallDisk();
    stateDir = join(disk.folder, "state");
    runtime = createOciRuntime({ stateDir, guestPath }, settings);
  });
  afterEach(async () => {
    await runtime[Symbol.asyncDispose]();
    for (const { id } of await runtime.list()) await (await runtime.open(id)).destroy();
    disk.remove();
  });

  it("ends work that fills the disk while space remains; removing files frees space", async () => {
    const before = disk.freeBytes();
    const sandbox = await create();
    const fill = (script: string) => runCommand(sandbox, { argv: ["sh", "-c", script] });
    const { ended } = await fill("head -c 4000000000 /dev/zero > big");
    expect(ended).toMatchObject({ kind: "killed", why: "disk" });
    expect(disk.freeBytes()).toBeGreaterThan(before / 4);
    // Repeatedly: with unlinked files, from several processes at once, and by allocating space without writing.
    await fill("exec 3> gone; rm gone; cat /dev/zero >&3").catch(() => undefined);
    await fill("for i in 1 2 3 4 5 6; do cat /dev/zero > f$i & done; wait").catch(() => undefined);
    await fill("fallocate -l 4G all").catch(() => undefined);
    for (let i = 0; i < 12; i++) await fill("cat /dev/zero >> more").catch(() => undefined);
    expect(disk.freeBytes()).toBeGreaterThan(before / 8);
    await expect(sandbox.spawn({ argv: ["true"] })).rejects.toMatchObject({ code: "no_space" });
    for (const name of ["big", "more", "f1", "f2", "f3", "f4", "f5", "f6"])
      await sandbox.remove(`/workspace/${name}`).catch(() => undefined);
    expect((await fill("echo again > file; cat file")).stdout).toBe("again\n");
  });

  it("ends a sandbox even if not a byte is free", async () => {
    const sandbox = await create({ keep: true });
    await sh(sandbox, "head -c 1000000 /dev/urandom > file");
    expect(() => execFileSync("sh", ["-c", 'cat /dev/zero > "$1"', "fill", join(disk.folder, "fill")], { stdio: "pipe" })).toThrow(
      "No space",
    );
    await sandbox.destroy();
    expect(await runtime.list()).toEqual([]);
    expect(readdirSync(join(stateDir, "sandboxes"))).toEqual([]);
  });

  it("counts files without content as well", async () => {
    const sandbox = await create();
    const many =
      "i=0; while [ $i -lt 30000 ]; do mkdir d$i; cd d$i; set -- ; for j in 1 2 3 4 5 6 7 8 9; do : > $j; done; cd ..; i=$((i+1)); done";
    const { ended } = await runCommand(sandbox, { argv: ["sh", "-c", many] });
    expect(ended).toMatchObject({ kind: "killed", why: "disk" });
    expect(disk.freeFiles()).toBeGreaterThan(100);
  });
});

describe.skipIf(!asRoot)("a disk limit, as root", () => {
  beforeEach(() => {
    base = mkdtempSync(join(tmpdir(), "caisson-test-"));
    stateDir = join(base, "state");
    folder = join(base, "folder");
    layer = join(base, "layer");
    mkdirSync(folder);
    mkdirSync(layer);
    writeFileSync(join(folder, "theirs"), "theirs");
    runtime = createOciRuntime({ stateDir, guestPath }, settings);
  });
  afterEach(async () => {
    await runtime[Symbol.asyncDispose]();
    await runtime.sweep();
    for (const { id } of await runtime.list()) await (await runtime.open(id)).destroy();
    rmSync(base, { recursive: true, force: true });
  });

  it("covers a workspace that outlives its sandbox, and all other files in it", async () => {
    const sandbox = await create(onLayer({ diskBytes: 32 * MIB }));
    expect(sandbox.info.limits.diskBytes).toBe(32 * MIB);
    expect(await sh(sandbox, "head -c 83886080 /dev/zero > /workspace/big")).toContain("No space left");
    expect(Number(await sh(sandbox, "stat -c %s /workspace/big"))).toBeLessThan(32 * MIB);
    expect(await sh(sandbox, "head -c 8388608 /dev/zero > ~/more")).toContain("No space left");
    await sandbox.destroy();
    expect(statSync(join(layer, "disk.ext4")).blocks * 512).toBeLessThan(33 * MIB);
    expect(readdirSync(layer).sort()).toEqual(["disk-parts.json", "disk.ext4", "first-id", "view.json"]);
  });

  it("workspace files survive a killed sandbox, with and without a disk limit", async () => {
    const first = await create({ ...onLayer({ diskBytes: 32 * MIB }), keep: true });
    await sh(first, "echo kept > /workspace/mine; rm /workspace/theirs; echo known > ~/login; echo gone > /tmp/other; sync");
    process.kill(guestPid(first.id), "SIGKILL");
    // Right away: what remains of the first may still hold the disk.
    const second = await create(onLayer());
    expect(await sh(second, "cat /workspace/* ~/*; ls /tmp")).toBe("kept\nknown\n");
    expect(second.info.limits.diskBytes).toBe(32 * MIB);
    expect(await sh(second, "head -c 83886080 /dev/zero > /workspace/big")).toContain("No space left");
    await second.destroy();
    await first.destroy();
    expect(readdirSync(folder)).toEqual(["theirs"]);
    await runtime.removeLayer?.(layer);
    expect(existsSync(join(layer, "disk.ext4"))).toBe(false);
  });

  it("restores points of a session, and forks it with its limit", async () => {
    const { points } = runtime;
    if (points === undefined) throw new Error("no points");
    const bytesMax = 1024 ** 3;
    const first = await create({ ...onLayer({ diskBytes: 64 * MIB }), allowRoot: true });
    await sh(first, "head -c 20971520 /dev/urandom > big; mkdir -p a/b; echo one > a/b/file; rm theirs; echo home > ~/.config");
    await asInsideRoot(first, "echo set > /etc/caisson-test; rm -rf /usr/local/bin");
    const before = await look(first);
    const point = await points.take(layer, { sandbox: first.id, bytesMax });
    expect(point).toMatchObject({ isNew: true });
    expect(await points.take(layer, { sandbox: first.id, bytesMax })).toEqual({ id: point.id, files: 0, bytes: 0, isNew: false });
    await sh(first, "rm -rf big ~/.config; mv a z; echo two >> z/b/file; echo new > new");
    await asInsideRoot(first, "rm /etc/caisson-test; mv /usr/share/doc /usr/share/moved");
    const broken = await look(first);
    const second = await points.take(layer, { sandbox: first.id, bytesMax });
    await first.destroy();
    // Without a sandbox, and through a view.
    expect(await points.take(layer, { bytesMax })).toEqual({ id: second.id, files: 0, bytes: 0, isNew: false });
    const now = await create({ workspace: { kind: "folder", path: folder, layer, view: "now" } });
    expect(await sh(now, "cat z/b/file; ls")).toBe("one\ntwo\nnew\nz\n");
    await now.destroy();
    await points.restore(layer, point.id);
    const again = await create({ ...onLayer(), allowRoot: true });
    expect(again.info.limits.diskBytes).toBe(64 * MIB);
    expect(await look(again)).toBe(before);
    expect(await sh(again, "head -c 83886080 /dev/zero > more")).toContain("No space left");
    await again.destroy();
    const fork = join(base, "fork");
    mkdirSync(fork);
    await points.fork(layer, fork, { point: second.id ?? "", bytesMax });
    await runtime.removeLayer?.(layer);
    const forked = await create({ workspace: { kind: "folder", path: folder, layer: fork }, allowRoot: true });
    expect(forked.info.limits.diskBytes).toBe(64 * MIB);
    expect(await look(forked)).toBe(broken);
    await forked.destroy();
    await runtime.removeLayer?.(fork);
    expect(readdirSync(join(stateDir, "layers"))).toEqual([]);
    expect(readdirSync(fork)).toEqual([]);
  });

  it("finishes a restore that was interrupted, with an empty disk of the same size", async () => {
    const { points } = runtime;
    const first = await create(onLayer({ diskBytes: 32 * MIB }));
    await sh(first, "echo one > file");
    const point = await points?.take(layer, { sandbox: first.id, bytesMax: 1024 ** 3 });
    await sh(first, "echo two > file");
    await first.destroy();
    for (const step of ["machine.written:before", "machine.written:after"]) {
      const crashing = createOciRuntime({ stateDir, guestPath, crashpoint: (name) => fail(name === step) }, settings);
      await expect(crashing.points?.restore(layer, point?.id ?? null)).rejects.toThrow("crashed");
      const next = await create(onLayer());
      expect(await sh(next, "cat file; echo three > file")).toBe(step.endsWith("before") ? "two\n" : "one\n");
      expect(next.info.limits.diskBytes).toBe(32 * MIB);
      await next.destroy();
    }
    expect(readdirSync(layer).filter((name) => name.startsWith("old-"))).toEqual([]);
    await runtime.removeLayer?.(layer);
  });

  it("snapshots and forks a live sandbox; the forks keep the limit", async () => {
    const sandbox = await create({ limits: { diskBytes: 32 * MIB }, allowRoot: true });
    await sh(sandbox, "echo mine > file; echo home > ~/known");
    await asInsideRoot(sandbox, "echo set > /etc/caisson-test");
    const snapshot = await sandbox.snapshot({});
    const fork = await sandbox.fork({});
    await sh(sandbox, "echo later > file");
    await sandbox.destroy();
    for (const each of [fork, await create({ template: { kind: "snapshot", id: snapshot }, limits: { diskBytes: 32 * MIB } })]) {
      expect(each.info.limits.diskBytes).toBe(32 * MIB);
      expect(await sh(each, "cat file ~/known /etc/caisson-test")).toBe("mine\nhome\nset\n");
      expect(await sh(each, "head -c 83886080 /dev/zero > more")).toContain("No space left");
      await each.destroy();
    }
    await runtime.removeSnapshot(snapshot);
    expect(readdirSync(join(stateDir, "layers"))).toEqual([]);
  });

  it("never gives two sandboxes the same disk", async () => {
    await using first = await create(onLayer({ diskBytes: 32 * MIB }));
    await expect(create(onLayer())).rejects.toMatchObject({ code: "conflict" });
    expect(await sh(first, "echo still > file; cat file")).toBe("still\n");
  });

  it("is refused if it would not hold, and then creates nothing", async () => {
    await (await create(onLayer())).destroy();
    await expect(create(onLayer({ diskBytes: 32 * MIB }))).rejects.toMatchObject({ code: "unsupported", details: { limit: "diskBytes" } });
    await expect(
      create({ workspace: { kind: "folder", path: folder, access: "rw" }, limits: { diskBytes: 32 * MIB } }),
    ).rejects.toMatchObject({ code: "unsupported", details: { limit: "diskBytes" } });
    await expect(create({ limits: { diskBytes: 2 ** 50 } })).rejects.toMatchObject({ code: "no_space" });
    expect(await runtime.list()).toEqual([]);
  });
});
