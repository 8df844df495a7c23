import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SandboxSpec, type SandboxSpecInput } from "../../../contract/sandbox.ts";
import { run } from "../../run.ts";
import type { OwnedSandbox } from "../../sandbox.ts";
import { detailsOf } from "./details.ts";
import { createOciRuntime, type OciOptions, type OciRuntime } from "./runtime.ts";

const MIB = 1024 * 1024;
const guestPath = join(import.meta.dirname, "../../../../guest/build/caisson-guest");
const settings: OciOptions = { home: "/root", path: process.env.PATH ?? "" };
const asRoot = process.getuid?.() === 0;

let stateDir: string;
let runtime: OciRuntime;
let folder: string;
let layer: string;
const create = (input: SandboxSpecInput = {}) => runtime.create(SandboxSpec.parse(input));
const sh = async (sandbox: OwnedSandbox, script: string) => {
  const { stdout, stderr } = await run(sandbox, { argv: ["sh", "-c", script] });
  return stdout.toString() + stderr.toString();
};
const onLayer = (limits: SandboxSpecInput["limits"] = {}): SandboxSpecInput => ({
  workspace: { kind: "folder", path: folder, layer },
  limits,
});
const guestPid = (id: string) =>
  detailsOf(JSON.parse(readFileSync(join(stateDir, "sandboxes", id, "sandbox.json"), "utf8"))).guest?.pid ?? -1;

describe.skipIf(!asRoot)("a disk limit, as root", () => {
  beforeEach(() => {
    stateDir = mkdtempSync(join(tmpdir(), "caisson-test-"));
    folder = join(stateDir, "folder");
    layer = join(stateDir, "layer");
    mkdirSync(folder);
    mkdirSync(layer);
    writeFileSync(join(folder, "theirs"), "theirs");
    runtime = createOciRuntime({ stateDir, guestPath }, settings);
  });
  afterEach(async () => {
    await runtime[Symbol.asyncDispose]();
    await runtime.sweep();
    for (const { id } of await runtime.list()) await (await runtime.open(id)).destroy();
    rmSync(stateDir, { recursive: true, force: true });
  });

  it("holds for a workspace that outlives its sandbox, and with it for everything else in the sandbox", async () => {
    const sandbox = await create(onLayer({ diskBytes: 32 * MIB }));
    expect(sandbox.info.limits.diskBytes).toBe(32 * MIB);
    expect(await sh(sandbox, "head -c 83886080 /dev/zero > /workspace/big")).toContain("No space left");
    expect(Number(await sh(sandbox, "stat -c %s /workspace/big"))).toBeLessThan(32 * MIB);
    expect(await sh(sandbox, "head -c 8388608 /dev/zero > ~/more")).toContain("No space left");
    await sandbox.destroy();
    expect(statSync(join(layer, "disk.ext4")).blocks * 512).toBeLessThan(33 * MIB);
    expect(readdirSync(layer)).toEqual(["disk.ext4"]);
  });

  it("the files are there again after the sandbox was killed, for a sandbox that asks for no limit as well; the rest is not", async () => {
    const first = await create({ ...onLayer({ diskBytes: 32 * MIB }), keep: true });
    await sh(first, "echo kept > /workspace/mine; rm /workspace/theirs; echo gone > ~/other; sync");
    process.kill(guestPid(first.id), "SIGKILL");
    // At once: what is left of the first may still have the disk.
    const second = await create(onLayer());
    expect(await sh(second, "cat /workspace/*; ls ~")).toBe("kept\n");
    expect(second.info.limits.diskBytes).toBe(32 * MIB);
    expect(await sh(second, "head -c 83886080 /dev/zero > /workspace/big")).toContain("No space left");
    await second.destroy();
    await first.destroy();
    expect(readdirSync(folder)).toEqual(["theirs"]);
    await runtime.removeLayer?.(layer);
    expect(existsSync(join(layer, "disk.ext4"))).toBe(false);
  });

  it("two sandboxes never have the same disk", async () => {
    await using first = await create(onLayer({ diskBytes: 32 * MIB }));
    await expect(create(onLayer())).rejects.toMatchObject({ code: "conflict" });
    expect(await sh(first, "echo still > file; cat file")).toBe("still\n");
  }, 30_000);

  it("is refused where it would not hold, and nothing is made", async () => {
    await (await create(onLayer())).destroy();
    await expect(create(onLayer({ diskBytes: 32 * MIB }))).rejects.toMatchObject({ code: "unsupported", details: { limit: "diskBytes" } });
    await expect(
      create({ workspace: { kind: "folder", path: folder, access: "rw" }, limits: { diskBytes: 32 * MIB } }),
    ).rejects.toMatchObject({ code: "unsupported", details: { limit: "diskBytes" } });
    expect(await runtime.list()).toEqual([]);
  });
});
