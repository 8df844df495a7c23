import assert from "node:assert/strict";
import { lstat, readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { FolderMount, WorkspaceAccess } from "../../contract/sandbox/sandbox-fields.ts";
import type { ConformanceContext, ConformanceTest } from "./context.ts";
import { readText, rejectsWith, run, runOk, writeText } from "./expectations.ts";
import { fill } from "./workspace-tests.ts";

const TARGET = "/mnt/data";

/** Creates a host folder with a file, and a sandbox with that folder as a mount. */
async function withMount(context: ConformanceContext, access: WorkspaceAccess) {
  const folder = await context.hostFolder();
  await fill(folder, { file: "the user's" });
  const sandbox = await context.create({ mounts: [{ path: folder, target: TARGET, access }] });
  return { folder, sandbox };
}

const feature = { overlay: "mountOverlay", rw: "mountRw", ro: "mountRo" } as const;

/** Mounts: additional folders beside the workspace. */
export const mountTests: ConformanceTest[] = [
  {
    name: "mount: read-only is readable at its path, and every change is denied",
    needs: "mountRo",
    async run(context) {
      const { folder, sandbox } = await withMount(context, "ro");
      assert.equal(await readText(context, sandbox, `${TARGET}/file`), "the user's");
      assert.equal(await runOk(context, sandbox, "show", `${TARGET}/file`), "the user's");
      await rejectsWith(context, "denied", "writing", () => writeText(sandbox, `${TARGET}/file`, "x"));
      await rejectsWith(context, "denied", "removing", () => sandbox.remove(`${TARGET}/file`));
      const { ended } = await run(context, sandbox, "write-file", { args: [`${TARGET}/made`, "3"] });
      assert.ok(ended.kind === "exited" && ended.exitCode !== 0, "a command wrote");
      assert.deepEqual(await readdir(folder), ["file"]);
      assert.deepEqual((await sandbox.list("/workspace")).entries, [], "the workspace is a different folder");
      return undefined;
    },
  },
  {
    name: "mount: read-write changes the folder, and new files belong to its owner",
    needs: "mountRw",
    async run(context) {
      const { folder, sandbox } = await withMount(context, "rw");
      await runOk(context, sandbox, "write-file", `${TARGET}/made`, "3");
      assert.deepEqual((await readdir(folder)).sort(), ["file", "made"]);
      assert.equal((await lstat(join(folder, "made"))).uid, (await lstat(folder)).uid, "the new file's owner");
      await sandbox.destroy();
      assert.deepEqual((await readdir(folder)).sort(), ["file", "made"], "destroy leaves the folder alone");
      return undefined;
    },
  },
  {
    name: "mount: an overlay's changes stay inside and are removed with the sandbox",
    needs: "mountOverlay",
    async run(context) {
      const { folder, sandbox } = await withMount(context, "overlay");
      assert.equal(await readText(context, sandbox, `${TARGET}/file`), "the user's");
      await writeText(sandbox, `${TARGET}/file`, "changed inside");
      await writeText(sandbox, `${TARGET}/new`, "x");
      assert.equal(await readText(context, sandbox, `${TARGET}/file`), "changed inside");
      await sandbox.destroy();
      assert.deepEqual(await readdir(folder), ["file"]);
      assert.equal(await readFile(join(folder, "file"), "utf8"), "the user's");
      const again = await context.create({ mounts: [{ path: folder, target: TARGET, access: "overlay" }] });
      await rejectsWith(context, "not_found", "another sandbox's file", () => again.stat(`${TARGET}/new`));
      return undefined;
    },
  },
  ...(["overlay", "rw", "ro"] as const).map(
    (access): ConformanceTest => ({
      name: `mount: ${access} is unsupported if the runtime lacks it`,
      needs: `!${feature[access]}`,
      async run(context) {
        const path = await context.hostFolder();
        await rejectsWith(context, "unsupported", `a mount ${access}`, () =>
          context.create({ mounts: [{ path, target: TARGET, access }] }),
        );
        return undefined;
      },
    }),
  ),
  {
    name: "mount: reserved paths and overlapping mounts are invalid",
    async run(context) {
      const access = context.capabilities.mounts[0];
      if (access === undefined) return { skipped: context.capabilities.reasons.mounts ?? "the runtime mounts no folders" };
      const path = await context.hostFolder();
      const at = (target: string): FolderMount => ({ path, target, access });
      const refused = [
        ["/workspace", "/workspace/x", "/", "/proc/x", "/etc", "/.caisson/x", "/usr/local", "/tmp/x", "/home/user", "//workspace/."].map(
          (target) => [at(target)],
        ),
        [
          [at(TARGET), at(TARGET)],
          [at(TARGET), at(`${TARGET}/x`)],
        ],
      ].flat();
      for (const mounts of refused) {
        const what = `a mount at ${mounts.map(({ target }) => target).join(" and ")}`;
        await rejectsWith(context, "invalid", what, () => context.create({ mounts }));
      }
      await rejectsWith(context, ["invalid", "not_found"], "a missing folder", () =>
        context.create({ mounts: [{ path: join(path, "missing"), target: TARGET, access }] }),
      );
      return undefined;
    },
  },
];
