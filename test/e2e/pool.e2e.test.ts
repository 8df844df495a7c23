import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { createCaisson, runCommand } from "../../src/index.ts";
import type { OciRuntime } from "../../src/runtimes/oci/runtime.ts";
import { createStore } from "../../src/sandbox/store.ts";

test("a program keeps sandboxes ready, uses them, and leaves none behind", async () => {
  const base = await mkdtemp(join(tmpdir(), "caisson-test-"));
  const folder = await mkdtemp(join(tmpdir(), "caisson-test-"));
  await writeFile(join(folder, "theirs"), "");
  const store = createStore({ stateDir: base });
  const ids = async () => (await store.list()).records.map(({ id }) => id);
  try {
    {
      await using caisson = createCaisson({ stateDir: base, pool: { sandboxes: 2, networkNamespaces: 1 } });
      const runtime = (await caisson.runtime("oci")) as OciRuntime;
      await runtime.warm();
      const ready = await ids();
      expect(ready).toHaveLength(2);
      expect(await caisson.list()).toEqual([]);
      await using sandbox = await caisson.create({ workspace: { kind: "folder", path: folder }, limits: { pids: 77 } }, { runtime });
      expect(ready).toContain(sandbox.id);
      expect(sandbox.info.limits.pids).toBe(77);
      const { stdout } = await runCommand(sandbox, { argv: ["ls", "/workspace"] });
      expect(stdout).toBe("theirs\n");
      // Pooled sandboxes do not allow root inside.
      await using _fresh = await caisson.create({ allowRoot: true }, { runtime });
      expect(runtime.pooled?.()).toMatchObject({ size: 2, ready: 1, fresh: 1 });
    }
    expect(await ids()).toEqual([]);
  } finally {
    for (const path of [base, folder]) await rm(path, { recursive: true, force: true });
  }
});
