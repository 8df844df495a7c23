import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { SandboxConfig, type SandboxConfigInput } from "../../contract/sandbox/sandbox.ts";
import { runCommand } from "../../sandbox/run-command.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import type { SandboxRecord } from "../../sandbox/store.ts";
import { isFrozen } from "./cgroups/cgroup.ts";
import { detailsOf } from "./details.ts";
import { createOciRuntime, type OciOptions, type OciRuntime } from "./runtime.ts";

const guestPath = join(import.meta.dirname, "../../../guest/build/caisson-guest");
const settings: OciOptions = { home: "/root", path: process.env.PATH ?? "" };

let stateDir: string;
let runtime: OciRuntime;
const create = (input: SandboxConfigInput): Promise<OwnedSandbox> => runtime.create(SandboxConfig.parse(input));
const sh = async (sandbox: OwnedSandbox, script: string) => {
  const { stdout } = await runCommand(sandbox, { argv: ["sh", "-c", script] });
  return { text: stdout.trim() };
};
const recordOf = (id: string) => JSON.parse(readFileSync(join(stateDir, "sandboxes", id, "sandbox.json"), "utf8")) as SandboxRecord;
const guestPid = (id: string) => detailsOf(recordOf(id)).guest?.pid ?? -1;

/** Starts another Node process that takes a snapshot of the sandbox. */
function startSnapshot(id: string) {
  const program = `
    import { createOciRuntime } from ${JSON.stringify(join(import.meta.dirname, "runtime.ts"))};
    const runtime = createOciRuntime(${JSON.stringify({ stateDir, guestPath })}, ${JSON.stringify(settings)});
    await (await runtime.open(${JSON.stringify(id)})).snapshot();`;
  return spawn(process.execPath, ["--input-type=module", "-e", program], { stdio: "inherit" });
}

describe.skipIf(process.getuid?.() !== 0)("a frozen or stopped sandbox", () => {
  beforeEach(() => {
    stateDir = mkdtempSync(join(tmpdir(), "caisson-test-still-"));
    runtime = createOciRuntime({ stateDir, guestPath }, settings);
  });
  afterEach(async () => {
    for (const { id } of await runtime.list()) await (await runtime.open(id)).destroy();
    rmSync(stateDir, { recursive: true, force: true });
  });

  it("is thawed by the next process after kill -9 in the middle of a snapshot", async () => {
    const sandbox = await create({ keep: true });
    await sh(sandbox, "head -c 300m /dev/zero >/home/user/large");
    const { cgroups } = detailsOf(recordOf(sandbox.id));
    const killWhileCopying = async () => {
      const child = startSnapshot(sandbox.id);
      while (!isFrozen(cgroups)) await new Promise((resolve) => setTimeout(resolve, 1));
      await expect(sandbox.resume()).rejects.toMatchObject({ code: "busy" });
      child.kill("SIGKILL");
      await new Promise((resolve) => child.once("exit", resolve));
      expect(isFrozen(cgroups)).toBe(true);
    };
    await killWhileCopying();
    const opened = await createOciRuntime({ stateDir, guestPath }, settings).open(sandbox.id);
    expect((await sh(opened, "echo awake")).text).toBe("awake");
    // A process that already had it open need not open it again.
    await killWhileCopying();
    await sandbox.resume();
    expect((await sh(sandbox, "echo awake")).text).toBe("awake");
    expect(detailsOf(recordOf(sandbox.id)).frozenBy).toBe(null);
    await sandbox.destroy();
    await runtime.sweep();
  });

  it("reports a stopped guest on every call, and continues when resumed", async () => {
    const sandbox = await create({ keep: true });
    const running = await sandbox.spawn({ argv: ["sleep", "300"], timeoutMs: 1_000 });
    running.discardOutput();
    process.kill(guestPid(sandbox.id), "SIGSTOP");
    const stopped = { code: "timeout", details: { guest: "stopped" } };
    await Promise.all([
      expect(sandbox.stat("/")).rejects.toMatchObject(stopped),
      expect(sandbox.writeFile("f", Buffer.from("x"))).rejects.toMatchObject(stopped),
      expect(sandbox.spawn({ argv: ["true"] })).rejects.toMatchObject(stopped),
      expect(createOciRuntime({ stateDir, guestPath }, settings).open(sandbox.id)).rejects.toMatchObject(stopped),
      expect(running.ended).resolves.toMatchObject({ kind: "lost" }),
    ]);
    process.kill(guestPid(sandbox.id), "SIGCONT");
    expect((await sh(sandbox, "echo awake")).text).toBe("awake");
    process.kill(guestPid(sandbox.id), "SIGSTOP");
    await sandbox.destroy();
    expect(await runtime.list()).toEqual([]);
  });
});
