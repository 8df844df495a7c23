import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { guestPath, sh, useDockerHarness } from "../../../test/support/docker-harness.ts";
import type { SnapshotPoints } from "../../sandbox/machine-points.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import { createDockerRuntime } from "./runtime.ts";

const docker = useDockerHarness();
const bytesMax = 1024 ** 3;
const points = (): SnapshotPoints => {
  if (docker.runtime.snapshotPoints === undefined) throw new Error("the runtime has no points");
  return docker.runtime.snapshotPoints;
};
const newLayer = (name: string) => {
  const layer = join(docker.stateDir, "sessions", name, "layer");
  mkdirSync(layer, { recursive: true });
  return layer;
};
const names = () => docker.images().filter((name) => name.includes("caisson-point"));
const images = () => docker.docker("images", "-q", "--filter", "label=caisson.point").split("\n").filter(Boolean);
const startedFrom = (id: string | null) => docker.runtime.create(docker.configOf({ template: { kind: "snapshot", id: id ?? "" } }));
const asRoot = (sandbox: OwnedSandbox, script: string) => sh(sandbox, script, { user: "root" });

describe("points", () => {
  test("restore everything that programs changed, and are shared between sessions", async () => {
    const [layer, other] = [newLayer("one"), newLayer("two")];
    const sandbox = await docker.runtime.create(docker.configOf({ allowRoot: true }));
    const none = { sandbox: sandbox.id, last: null, base: null, bytesMax };
    expect(await points().take(layer, none)).toEqual({ id: null, files: 0, bytes: 0, isNew: false });
    await sh(sandbox, "echo one > /workspace/a; echo home > ~/.known; cat /etc/passwd > /dev/null");
    await asRoot(sandbox, "echo set > /etc/caisson-test; rm /bin/vi");
    const first = await points().take(layer, none);
    expect(first).toMatchObject({ isNew: true, files: 4 });
    expect(first.bytes).toBeGreaterThan(0);
    const since = { ...none, last: first.id };
    expect(await points().take(layer, since)).toEqual({ id: first.id, files: 0, bytes: 0, isNew: false });
    await sh(sandbox, "touch -d 2001-01-01 /workspace/b; rm /workspace/a");
    const second = await points().take(layer, since);
    expect(second).toMatchObject({ isNew: true, files: 1 });
    // They are no snapshots of the user's.
    expect(await docker.runtime.snapshots()).toEqual([]);
    await points().keep(other, first.id ?? "");
    await points().remove(layer, first.id ?? "");
    expect(await points().list(layer)).toEqual([second.id]);
    expect(await points().list(other)).toEqual([first.id]);
    await sandbox.destroy();
    const restored = await startedFrom(first.id);
    expect((await sh(restored, "cat a ~/.known /etc/caisson-test; ls /bin/vi b 2>&1 | grep -c 'No such'; stat -c %U a")).stdout).toBe(
      "one\nhome\nset\n2\nuser\n",
    );
    // Another sandbox, which has changed nothing, has the files that it started from.
    const later = { sandbox: restored.id, last: second.id, base: first.id, bytesMax };
    expect(await points().take(other, later)).toEqual({ id: first.id, files: 0, bytes: 0, isNew: false });
    await restored.destroy();
    await points().remove(layer, second.id ?? "");
    await points().remove(other, first.id ?? "");
    await points().remove(other, first.id ?? "");
    await expect(points().keep(layer, first.id ?? "")).rejects.toMatchObject({ code: "not_found" });
    expect([names(), images()]).toEqual([[], []]);
  });

  test("survive a restart of their sandbox and its death, and refuse what is too large", async () => {
    const layer = newLayer("one");
    const sandbox = await docker.runtime.create(docker.configOf({ keep: true }));
    const none = { sandbox: sandbox.id, last: null, base: null, bytesMax };
    await sh(sandbox, "head -c 3000000 /dev/urandom > big");
    await expect(points().take(layer, { ...none, bytesMax: 1_000_000 })).rejects.toMatchObject({ code: "too_large" });
    expect(names()).toEqual([]);
    await sandbox.release();
    await docker.runtime.restart?.(sandbox.id);
    const first = await points().take(layer, none);
    expect(first).toMatchObject({ isNew: true });
    const again = await docker.runtime.open(sandbox.id);
    await sh(again, "echo more > more");
    docker.docker("kill", `caisson-${sandbox.id}`);
    const second = await points().take(layer, { ...none, last: first.id });
    expect(second).toMatchObject({ isNew: true, files: 1 });
    docker.docker("rm", "-f", `caisson-${sandbox.id}`);
    await expect(points().take(layer, { ...none, last: second.id })).rejects.toMatchObject({ code: "not_found" });
    const restored = await startedFrom(second.id);
    expect((await sh(restored, "cat more; stat -c %s big")).stdout).toBe("more\n3000000\n");
    await restored.destroy();
    await again.destroy();
    for (const id of await points().list(layer)) await points().remove(layer, id);
    expect(images()).toEqual([]);
  });

  test("are swept with their session, and only then", async () => {
    const layer = newLayer("one");
    const crashing = (step: string) =>
      createDockerRuntime(
        {
          stateDir: docker.stateDir,
          guestPath,
          crashpoint: (name) => {
            if (name === step) throw new Error("crashed");
          },
        },
        { socketPath: docker.engine.socketPath },
      );
    const sandbox = await docker.runtime.create(docker.configOf());
    await sh(sandbox, "echo one > a");
    const none = { sandbox: sandbox.id, last: null, base: null, bytesMax };
    for (const step of ["point.committed:before", "point.committed:after"])
      await expect(crashing(step).snapshotPoints?.take(layer, none)).rejects.toThrow("crashed");
    // The process died before it listed the point. It is whole, and the next one finds it.
    expect(await points().list(layer)).toHaveLength(1);
    const second = await points().take(layer, none);
    for (const id of await points().list(layer)) if (id !== second.id) await points().remove(layer, id);
    const aged = agedRuntime();
    await aged.sweep();
    expect(await points().list(layer)).toEqual([second.id]);
    await sandbox.destroy();
    rmSync(join(layer, ".."), { recursive: true });
    await aged.sweep();
    expect([names(), images(), readdirSync(join(docker.stateDir, "docker", "holders"))]).toEqual([[], [], []]);
    expect(existsSync(layer)).toBe(false);
  });
});

/** A runtime for which every image is old. */
function agedRuntime() {
  return createDockerRuntime({ stateDir: docker.stateDir, guestPath }, { socketPath: docker.engine.socketPath, freshImageSeconds: 0 });
}
