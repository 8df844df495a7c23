import { spawn } from "node:child_process";
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test, vi } from "vitest";
import { guestPath, sh, useDockerHarness } from "../../../test/support/docker-harness.ts";
import { waitForProcessEnd } from "../../../test/support/docker-remains.ts";

const _MIB = 1024 * 1024;
const docker = useDockerHarness();

describe("the life of a sandbox", () => {
  test("removes the images of snapshots and forks when nothing uses them", async () => {
    const sandbox = await docker.runtime.create(docker.configOf());
    await sandbox.writeFile("/workspace/file", Buffer.from("one"));
    const id = await sandbox.snapshot({ name: 'first "one" $HOME' });
    expect(await docker.runtime.snapshots()).toMatchObject([{ id, name: 'first "one" $HOME', sandbox: sandbox.id }]);
    const fork = await sandbox.fork();
    const grandchild = await fork.fork();
    await sandbox.destroy();
    await fork.destroy();
    expect((await sh(grandchild, "cat file; echo two > file; stat -c %U file")).stdout).toBe("oneuser\n");
    const restored = await docker.runtime.create(docker.configOf({ template: { kind: "snapshot", id } }));
    await expect(docker.runtime.removeSnapshot(id)).rejects.toMatchObject({ code: "conflict" });
    expect((await sh(restored, "cat file; touch new")).stdout).toBe("one");
    await restored.destroy();
    await grandchild.destroy();
    await docker.runtime.removeSnapshot(id);
    await expect(docker.runtime.removeSnapshot(id)).rejects.toMatchObject({ code: "not_found" });
    expect(docker.images().filter((name) => /caisson-(fork|snapshot)/.test(name))).toEqual([]);
    expect(docker.docker("images", "-q", "--filter", "dangling=true")).toBe("");
  });

  test("another process finds a kept sandbox, its files and its running command", async () => {
    const sandbox = await docker.runtime.create(docker.configOf({ keep: true }));
    const process = await sandbox.spawn({ argv: ["sh", "-c", "echo one; sleep 0.3; echo two"], ref: "job" });
    process.detach();
    await sandbox.release();
    const again = docker.runtimeWith();
    expect(await again.sweep()).toEqual([]);
    await using opened = await again.open(sandbox.id);
    const attached = await opened.attach("job", { stdoutOffset: 0 });
    let text = "";
    for await (const { data } of attached.output) text += Buffer.from(data).toString();
    expect(text).toBe("one\ntwo\n");
    await opened.destroy();
  });

  test("opens a paused sandbox as paused, and resumes it", async () => {
    const sandbox = await docker.runtime.create(docker.configOf({ keep: true }));
    await sandbox.pause();
    await sandbox.release();
    const opened = await docker.runtime.open(sandbox.id);
    expect(opened.info.state).toBe("paused");
    await expect(opened.stat("/")).rejects.toMatchObject({ code: "conflict" });
    await opened.resume();
    expect((await sh(opened, "echo on")).stdout).toBe("on\n");
    await opened.destroy();
  });

  test("sweeps what a killed creator left, finished or half-made, and nothing else", async () => {
    const mine = await docker.runtime.create(docker.configOf());
    const script = `
      import { createDockerRuntime } from ${JSON.stringify(join(import.meta.dirname, "runtime.ts"))};
      import { SandboxConfig } from ${JSON.stringify(join(import.meta.dirname, "../../contract/sandbox/sandbox.ts"))};
      const runtime = createDockerRuntime(${JSON.stringify({ stateDir: docker.stateDir, guestPath })}, ${JSON.stringify({ socketPath: docker.engine.socketPath })});
      const config = SandboxConfig.parse({ template: { kind: "image", reference: ${JSON.stringify(docker.image)} } });
      const { id } = await runtime.create(config);
      void runtime.create({ ...config, keep: true });
      console.log(id);`;
    const child = spawn(process.execPath, ["--input-type=module", "-e", script], { stdio: ["ignore", "pipe", "inherit"] });
    const id = (await new Promise<Buffer>((resolve) => child.stdout.once("data", resolve))).toString().trim();
    const records = () => readdirSync(join(docker.stateDir, "sandboxes")).filter((name) => name.startsWith("sb_"));
    await vi.waitFor(() => expect(records()).toHaveLength(3), { interval: 5, timeout: 30_000 });
    child.kill("SIGKILL");
    await waitForProcessEnd(child.pid ?? 0);
    const other = docker.runtimeWith({ stateDir: docker.newFolder("state") });
    expect(await other.sweep()).toEqual([]);
    const swept = await docker.runtime.sweep();
    expect(swept).toContain(id);
    expect(swept).not.toContain(mine.id);
    expect(docker.containers()).toEqual([`caisson-${mine.id}`]);
    expect(records()).toEqual([mine.id]);
    await mine.destroy();
  });

  test("sweeps a sandbox without a record by its label", async () => {
    const sandbox = await docker.runtime.create(docker.configOf());
    rmSync(join(docker.stateDir, "sandboxes", sandbox.id), { recursive: true });
    expect(await docker.runtime.sweep()).toEqual([sandbox.id]);
    expect(docker.containers()).toEqual([]);
  });

  test("reports a dead sandbox as failed, and removes its remains", async () => {
    const sandbox = await docker.runtime.create(docker.configOf());
    const running = await sandbox.spawn({ argv: ["sleep", "60"] });
    running.discardOutput();
    docker.docker("kill", `caisson-${sandbox.id}`);
    expect(await sandbox.closed).toEqual({ why: "lost" });
    expect(await running.ended).toMatchObject({ kind: "lost" });
    expect(await docker.runtime.list()).toMatchObject([{ id: sandbox.id, state: "failed" }]);
    await expect(docker.runtime.open(sandbox.id)).rejects.toMatchObject({ code: "lost" });
    await sandbox.destroy();
    expect(await docker.runtime.list()).toEqual([]);
  });

  test("a restart keeps the files, ends the processes and drops a planted socket", async () => {
    const sandbox = await docker.runtime.create(docker.configOf({ allowRoot: true, keep: true }));
    await sandbox.writeFile("/workspace/file", Buffer.from("kept"));
    await sh(sandbox, "touch /etc/of-root; cd /.caisson/private/socket && ln -s /etc/passwd guest.sock; mkdir token", { user: "root" });
    const running = await sandbox.spawn({ argv: ["sleep", "600"] });
    running.discardOutput();
    await docker.runtime.restart?.(sandbox.id);
    expect(await running.ended).toMatchObject({ kind: "lost" });
    await sandbox.detach();
    const again = await docker.runtime.open(sandbox.id);
    expect(again.info).toMatchObject({ id: sandbox.id, state: "running" });
    expect((await sh(again, "cat /workspace/file; ls /etc/of-root; pgrep sleep; true")).stdout).toBe("kept/etc/of-root\n");
    expect((await sh(again, "ls -A /.caisson/private/socket", { user: "root" })).stdout).toBe("");
    await again.detach();
    // A killed and a frozen sandbox can be restarted as well.
    await docker.runtime.kill?.(sandbox.id);
    await docker.runtime.restart?.(sandbox.id);
    const third = await docker.runtime.open(sandbox.id);
    await third.pause();
    await third.release();
    await docker.runtime.restart?.(sandbox.id);
    const fourth = await docker.runtime.open(sandbox.id);
    expect((await sh(fourth, "cat /workspace/file")).stdout).toBe("kept");
    await fourth.destroy();
  });

  test("refuses to restart a sandbox without a container, and does not recreate it", async () => {
    const sandbox = await docker.runtime.create(docker.configOf({ keep: true }));
    docker.docker("rm", "-f", `caisson-${sandbox.id}`);
    await expect(docker.runtime.restart?.(sandbox.id)).rejects.toMatchObject({ code: "unsupported" });
    await docker.runtime.kill?.(sandbox.id);
    expect(docker.containers()).toEqual([]);
    await sandbox.destroy();
  });

  test("hides the guest's socket from root inside, and ignores a planted one", async () => {
    const sandbox = await docker.runtime.create(docker.configOf({ allowRoot: true, keep: true }));
    const { stdout } = await sh(sandbox, "find / -xdev -type s; cd /.caisson/private/socket && ls -A && ln -s /etc/passwd guest.sock", {
      user: "root",
    });
    expect(stdout).toBe("");
    const opened = await docker.runtime.open(sandbox.id);
    expect((await sh(opened, "echo alive")).stdout).toBe("alive\n");
    await sandbox.destroy();
  });
});
