import { dirname } from "node:path";
import { describe, expect, test } from "vitest";
import { startDockerEngine } from "../../../test/support/docker-engine-process.ts";
import { sh, useDockerHarness } from "../../../test/support/docker-harness.ts";
import { waitForProcessEnd } from "../../../test/support/docker-remains.ts";
import { SandboxConfig } from "../../contract/sandbox/sandbox.ts";

const _MIB = 1024 * 1024;
const docker = useDockerHarness();

describe("bad input and a dead engine", () => {
  test("explains how to get a missing image, and rejects an invalid name", async () => {
    const absent = docker.runtime.create(docker.configOf({ template: { kind: "image", reference: "no/such:image" } }));
    await expect(absent).rejects.toMatchObject({ code: "not_found", hint: expect.stringContaining("pull no/such:image") });
    for (const reference of ["../containers/json", "a b", "/some/folder", "x?y", "-x"]) {
      await expect(docker.runtime.create(docker.configOf({ template: { kind: "image", reference } }))).rejects.toMatchObject({
        code: "invalid",
      });
    }
    await expect(docker.runtime.create(SandboxConfig.parse({}))).rejects.toMatchObject({
      code: "unsupported",
      hint: expect.stringContaining("--image"),
    });
    const withDefault = docker.runtimeWith({ defaultImage: docker.image });
    await using sandbox = await withDefault.create(SandboxConfig.parse({}));
    expect((await sh(sandbox, "echo default")).stdout).toBe("default\n");
  });

  test("without an engine, explains how to start one; sweep and list still work", async () => {
    const dead = docker.runtimeWith({ socketPath: "/run/caisson-test-no-such.sock" });
    for (const call of [() => dead.capabilities(), () => dead.create(docker.configOf())]) {
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

  test("the probe needs no image and leaves nothing behind", async () => {
    const before = docker.images();
    const probe = await docker.runtime.probe();
    expect(probe.findings.filter(({ level }) => level === "problem")).toEqual([]);
    expect(probe.usable).toBe(true);
    expect(probe.startMs).toBeGreaterThan(0);
    expect(docker.images()).toEqual(before);
  });

  test("sandboxes survive a dead engine; its own operations fail until it is back", async () => {
    const mortal = await startDockerEngine();
    try {
      const reference = await mortal.image("busybox");
      const there = docker.runtimeWith({ socketPath: mortal.socketPath });
      const config = SandboxConfig.parse({ template: { kind: "image", reference } });
      const sandbox = await there.create(config);
      process.kill(mortal.pid, "SIGKILL");
      await waitForProcessEnd(mortal.pid);
      expect((await sh(sandbox, "echo alive")).stdout).toBe("alive\n");
      await expect(sandbox.stats()).rejects.toMatchObject({ code: "unavailable", hint: expect.stringContaining("systemctl") });
      await expect(sandbox.pause()).rejects.toMatchObject({ code: "unavailable" });
      await expect(there.create(config)).rejects.toMatchObject({ code: "unavailable" });
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
