import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { changesBetween, edited } from "../../test/support/random-trees.ts";
import { tries } from "../../test/support/thorough.ts";
import { writeTree } from "../../test/support/tree-on-disk.ts";
import { SandboxConfig } from "../contract/sandbox/sandbox.ts";
import { createFakeRuntime } from "../runtimes/fake/runtime.ts";
import type { Runtime } from "../sandbox/runtime.ts";
import { findChanges } from "./changes.ts";
import { renderDiff } from "./testing-diff.ts";

let base = "";
let runtime: Runtime;
beforeAll(() => {
  base = mkdtempSync(join(tmpdir(), "caisson-test-"));
  runtime = createFakeRuntime();
});
afterAll(async () => {
  await runtime[Symbol.asyncDispose]();
  rmSync(base, { recursive: true, force: true });
});

test("finds the difference between two trees without a layer", async () => {
  let number = 0;
  await fc.assert(
    fc.asyncProperty(edited, async ({ before, after }) => {
      // A sandbox has no method that creates links.
      const files = (tree: typeof before) => new Map([...tree].filter(([, side]) => side.kind === "file"));
      const [old, fresh] = [files(before), files(after)];
      const lower = join(base, String(number++));
      mkdirSync(lower);
      writeTree(lower, old);
      await using sandbox = await runtime.create(SandboxConfig.parse({ workspace: { kind: "folder", path: lower, access: "overlay" } }));
      for (const path of old.keys())
        if (!fresh.has(path)) await sandbox.remove(`/workspace/${path.split("/")[0]}`, { recursive: true }).catch(() => undefined);
      for (const [path, side] of fresh) await sandbox.writeFile(`/workspace/${path}`, side.content, { mode: side.mode, parents: true });
      const { changes, leftOut } = await findChanges({ sandbox, lower, layers: null, sinceMs: 0, stateDir: join(base, "no state") });
      expect(renderDiff(changes).toString("latin1")).toBe(renderDiff(changesBetween(old, fresh)).toString("latin1"));
      expect(leftOut).toEqual([]);
    }),
    { numRuns: tries(60, 15) },
  );
});

test("does not report the hidden state folder as removed", async () => {
  const lower = join(base, "home");
  const stateDir = join(lower, ".local", "state");
  mkdirSync(stateDir, { recursive: true });
  writeFileSync(join(stateDir, "log.db"), "precious");
  writeFileSync(join(lower, "file"), "mine");
  await using sandbox = await runtime.create(SandboxConfig.parse({ workspace: { kind: "folder", path: lower, access: "overlay" } }));
  await sandbox.remove("/workspace/.local", { recursive: true });
  await sandbox.remove("/workspace/file");
  const { changes } = await findChanges({ sandbox, lower, layers: null, sinceMs: 0, stateDir });
  expect(changes.map(({ path }) => path)).toEqual(["file"]);
});
