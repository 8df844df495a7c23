import { mkdirSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { mountSmallDisk } from "../../../../test/support/small-disk.ts";
import { createOciRuntime } from "../runtime.ts";
import { asRoot, configOf, guestPath, nothing, remainsOf, settings, sh } from "../testing-oci.ts";

const bytesMax = 1024 ** 3;

test.skipIf(!asRoot)(
  "a full disk leaves no half point, snapshot or fork",
  {
    timeout: 240_000,
  },
  async () => {
    const disk = mountSmallDisk();
    try {
      const stateDir = join(disk.folder, "state");
      const newLayer = (name: string) => {
        const layer = join(disk.folder, name);
        mkdirSync(layer, { mode: 0o755 });
        return layer;
      };
      const [folder, layer, fork] = ["folder", "layer", "fork"].map(newLayer) as [string, string, string];
      const runtime = createOciRuntime({ stateDir, guestPath }, settings);
      const { points } = runtime;
      if (points === undefined) throw new Error("the runtime has no points");
      const sandbox = await runtime.create(configOf({ workspace: { kind: "folder", path: folder, layer } }));
      await sh(sandbox, "echo first > first");
      const { id: first } = await points.take(layer, { sandbox: sandbox.id, bytesMax });
      // There is no room for a second copy of this.
      await sh(sandbox, "echo second > second; head -c 250000000 /dev/urandom > large");
      const stored = () =>
        ["layers", "snapshots"].flatMap((name) => readdirSync(join(stateDir, name), { recursive: true, encoding: "utf8" })).sort();
      mkdirSync(join(stateDir, "snapshots"), { recursive: true });
      const [before, inLayer, freeBytes] = [stored(), readdirSync(layer), disk.freeBytes()];
      for (const attempt of [() => points.take(layer, { sandbox: sandbox.id, bytesMax }), () => sandbox.snapshot(), () => sandbox.fork()]) {
        await expect(attempt()).rejects.toMatchObject({ code: "no_space", hint: expect.stringMatching(/space|room/i) });
        expect(stored()).toEqual(before);
        expect(readdirSync(layer)).toEqual(inLayer);
        expect(freeBytes - disk.freeBytes()).toBeLessThan(1_000_000);
        // It is no longer frozen.
        expect((await sh(sandbox, "cat second")).text).toBe("second");
      }
      await expect(points.fork(layer, fork, { bytesMax: 1000 })).rejects.toMatchObject({ code: "too_large" });
      await expect(points.fork(layer, fork, { bytesMax })).rejects.toMatchObject({ code: "no_space" });
      expect([readdirSync(fork).filter((name) => name !== "first-id"), stored()]).toEqual([[], before]);
      await sh(sandbox, "rm large");
      await sandbox.snapshot();
      expect(await points.take(layer, { sandbox: sandbox.id, bytesMax })).toMatchObject({ isNew: false });
      await points.fork(layer, fork, { point: first ?? "", bytesMax });
      await sandbox.destroy();
      {
        await using forked = await runtime.create(configOf({ workspace: { kind: "folder", path: folder, layer: fork } }));
        expect((await sh(forked, "ls")).text).toBe("first");
      }
      for (const { id } of await runtime.snapshots()) await runtime.removeSnapshot(id);
      for (const each of [layer, fork]) await runtime.removeLayer?.(each);
      await runtime[Symbol.asyncDispose]();
      expect(remainsOf(stateDir)).toEqual(nothing);
    } finally {
      disk.remove();
    }
  },
);
