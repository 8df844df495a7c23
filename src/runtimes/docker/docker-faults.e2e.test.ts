import { dirname } from "node:path";
import { describe, expect, test } from "vitest";
import { startDockerEngine } from "../../../test/support/docker-engine-process.ts";
import { sh, useDockerHarness } from "../../../test/support/docker-harness.ts";
import { processGone } from "../../../test/support/docker-remains.ts";
import { SandboxSpec } from "../../contract/sandbox.ts";

const _MIB = 1024 * 1024;
const docker = useDockerHarness();

describe("bad input and a dead engine", () => {
  test("an image that is not there says how to get it; one that is no name is invalid", async () => {
    const absent = docker.runtime.create(docker.specOf({ template: { kind: "image", reference: "no/such:image" } }));
    await expect(absent).rejects.toMatchObject({ code: "not_found", hint: expect.stringContaining("pull no/such:image") });
    for (const reference of ["../containers/json", "a b", "/some/folder", "x?y", "-x"]) {
      await expect(docker.runtime.create(docker.specOf({ template: { kind: "image", reference } }))).rejects.toMatchObject({
        code: "invalid",
      });
    }
    await expect(docker.runtime.create(SandboxSpec.parse({}))).rejects.toMatchObject({
      code: "unsupported",
      hint: expect.stringContaining("--image"),
    });
    const withDefault = docker.runtimeWith({ defaultImage: docker.image });
    await using sandbox = await withDefault.create(SandboxSpec.parse({}));
    expect((await sh(sandbox, "echo default")).stdout).toBe("default\n");
  });

  test("no engine: capabilities and create say how to start one, probe finds it, sweep and list go on", async () => {
    const dead = docker.runtimeWith({ socketPath: "/run/caisson-test-no-such.sock" });
    for (const call of [() => dead.capabilities(), () => dead.create(docker.specOf())]) {
      await expect(call()).rejects.toMatchObject({ code: "unavailable", hint: expect.stringContaining("systemctl start docker") });
    }
    expect(await dead.probe()).toMatchObject({
      usable: false,
      startMs: null,
      findings: [{ level: "problem", fix: expect.stringContaining("systemctl") }],
    });
    expect(await dead.sweep()).toEqual([]);
    expect(await dead.list()).toEqual([]);
  });

  test("the probe starts a sandbox without any image being there, and leaves nothing", async () => {
    const before = docker.images();
    const probe = await docker.runtime.probe();
    expect(probe.findings.filter(({ level }) => level === "problem")).toEqual([]);
    expect(probe.usable).toBe(true);
    expect(probe.startMs).toBeGreaterThan(0);
    expect(docker.images()).toEqual(before);
  });

  test("an engine that dies: running sandboxes go on, the engine's part is unavailable until it is back", async () => {
    const mortal = await startDockerEngine();
    try {
      const reference = await mortal.image("busybox");
      const there = docker.runtimeWith({ socketPath: mortal.socketPath });
      const spec = SandboxSpec.parse({ template: { kind: "image", reference } });
      const sandbox = await there.create(spec);
      process.kill(mortal.pid, "SIGKILL");
      await processGone(mortal.pid);
      expect((await sh(sandbox, "echo alive")).stdout).toBe("alive\n");
      await expect(sandbox.stats()).rejects.toMatchObject({ code: "unavailable", hint: expect.stringContaining("systemctl") });
      await expect(sandbox.pause()).rejects.toMatchObject({ code: "unavailable" });
      await expect(there.create(spec)).rejects.toMatchObject({ code: "unavailable" });
      await expect(sandbox.destroy()).rejects.toMatchObject({ code: "unavailable" });
      expect((await there.list()).map(({ id }) => id)).toEqual([sandbox.id]);
      await startDockerEngine({ folder: dirname(mortal.socketPath) });
      await sandbox.destroy();
      expect(await there.list()).toEqual([]);
    } finally {
      await mortal.stop();
    }
  });
});
