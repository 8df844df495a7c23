import assert from "node:assert/strict";
import { chown, lstat, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { WorkspaceAccess } from "../../contract/sandbox/sandbox-fields.ts";
import type { ConformanceContext, ConformanceTest } from "./context.ts";
import { readText, rejectsWith, run, runOk, writeText } from "./expectations.ts";

/** Creates a host folder with a file and a folder, and a sandbox with that folder as its workspace. */
async function withWorkspace(context: ConformanceContext, access: WorkspaceAccess) {
  const folder = await context.hostFolder();
  await fill(folder, { file: "the user's", "sub/deep": "deep" });
  const sandbox = await context.create({ workspace: { kind: "folder", path: folder, access } });
  return { folder, sandbox };
}

/** Writes files into a host folder with the folder owner's ids. */
export async function fill(folder: string, files: Record<string, string>): Promise<void> {
  const { uid, gid } = await lstat(folder);
  for (const [name, content] of Object.entries(files)) {
    await mkdir(dirname(join(folder, name)), { recursive: true });
    await writeFile(join(folder, name), content);
    for (let path = join(folder, name); path !== folder; path = dirname(path)) await chown(path, uid, gid);
  }
}

/** How sandboxes use and change the user's folder. */
export const workspaceTests: ConformanceTest[] = [
  {
    name: "workspace: an overlay shows the folder and never changes it",
    needs: "overlay",
    async run(context) {
      const { folder, sandbox } = await withWorkspace(context, "overlay");
      assert.equal(await readText(context, sandbox, "/workspace/file"), "the user's");
      assert.equal(await runOk(context, sandbox, "show", "sub/deep"), "deep");
      await writeText(sandbox, "/workspace/file", "changed inside");
      await writeText(sandbox, "/workspace/new", "x");
      await sandbox.remove("/workspace/sub", { recursive: true });
      assert.equal(await readText(context, sandbox, "/workspace/file"), "changed inside");
      await rejectsWith(context, "not_found", "the folder removed inside", () => sandbox.stat("/workspace/sub"));
      await sandbox.destroy();
      assert.deepEqual((await readdir(folder)).sort(), ["file", "sub"]);
      assert.equal(await readFile(join(folder, "file"), "utf8"), "the user's");
      assert.equal(await readFile(join(folder, "sub/deep"), "utf8"), "deep");
      return undefined;
    },
  },
  {
    name: "workspace: read-write changes the folder, and new files belong to its owner",
    needs: "rw",
    async run(context) {
      const { folder, sandbox } = await withWorkspace(context, "rw");
      await writeText(sandbox, "/workspace/file", "changed inside");
      await runOk(context, sandbox, "write-file", "made", "3");
      await sandbox.remove("/workspace/sub", { recursive: true });
      assert.equal(await readFile(join(folder, "file"), "utf8"), "changed inside");
      assert.deepEqual((await readdir(folder)).sort(), ["file", "made"]);
      const owner = (await lstat(folder)).uid;
      // Without a wall, commands run as the user who started them, who then owns their files.
      const maker = context.capabilities.isolation > 0 ? owner : process.getuid?.();
      assert.equal((await lstat(join(folder, "made"))).uid, maker, "the new file's owner");
      assert.equal((await lstat(join(folder, "file"))).uid, owner, "the replaced file's owner, which must not change");
      await sandbox.destroy();
      assert.deepEqual((await readdir(folder)).sort(), ["file", "made"], "destroy leaves the folder alone");
      return undefined;
    },
  },
  {
    name: "workspace: read-only is readable, and every change is denied",
    needs: "ro",
    async run(context) {
      const { folder, sandbox } = await withWorkspace(context, "ro");
      assert.equal(await readText(context, sandbox, "/workspace/file"), "the user's");
      await rejectsWith(context, "denied", "writing", () => writeText(sandbox, "/workspace/file", "x"));
      await rejectsWith(context, "denied", "making", () => sandbox.mkdir("/workspace/made"));
      await rejectsWith(context, "denied", "removing", () => sandbox.remove("/workspace/file"));
      const { ended } = await run(context, sandbox, "write-file", { args: ["made", "3"] });
      assert.ok(ended.kind === "exited" && ended.exitCode !== 0, "a command wrote");
      assert.deepEqual((await readdir(folder)).sort(), ["file", "sub"]);
      return undefined;
    },
  },
  ...(["overlay", "rw", "ro"] as const).map(
    (access): ConformanceTest => ({
      name: `workspace: ${access} is unsupported if the runtime lacks it`,
      needs: `!${access}`,
      async run(context) {
        const path = await context.hostFolder();
        await rejectsWith(context, "unsupported", `a workspace ${access}`, () =>
          context.create({ workspace: { kind: "folder", path, access } }),
        );
        return undefined;
      },
    }),
  ),
  {
    name: "workspace: an empty workspace is empty, writable and removed with the sandbox",
    async run(context) {
      const sandbox = await context.create();
      assert.deepEqual((await sandbox.list("/workspace")).entries, []);
      await runOk(context, sandbox, "write-file", "made", "3");
      assert.equal((await sandbox.stat("/workspace/made")).sizeBytes, 3);
      return undefined;
    },
  },
  {
    name: "workspace: a layer keeps changes and the home folder for the next sandbox",
    async run(context) {
      if (!context.capabilities.workspaceLayer) return { skipped: "the runtime stores no layers" };
      const [path, layer] = [await context.hostFolder(), await context.hostFolder()];
      const config = { workspace: { kind: "folder" as const, path, layer } };
      const first = await context.create(config);
      await writeText(first, "/workspace/made", "kept");
      await writeText(first, "/home/user/.login", "kept, too");
      if (context.capabilities.snapshot) {
        const fork = context.adopt(await first.fork());
        assert.equal(await readText(context, fork, "/home/user/.login"), "kept, too", "in a fork");
      }
      await first.destroy();
      assert.deepEqual(await readdir(path), [], "the folder outside");
      const second = await context.create(config);
      assert.equal(await readText(context, second, "/workspace/made"), "kept");
      assert.equal(await readText(context, second, "/home/user/.login"), "kept, too");
      await second.destroy();
      await context.runtime.removeLayer?.(layer);
      const third = await context.create(config);
      await rejectsWith(context, "not_found", "a file of the removed layer", () => third.stat("/home/user/.login"));
      await third.destroy();
      await context.runtime.removeLayer?.(layer);
      return undefined;
    },
  },
  {
    name: "workspace: a file instead of a folder is invalid",
    async run(context) {
      const access = context.capabilities.workspaceAccess[0];
      if (access === undefined) return { skipped: "the runtime accepts no folder" };
      const path = join(await context.hostFolder(), "file");
      await writeFile(path, "");
      await rejectsWith(context, "invalid", "a file as workspace", () => context.create({ workspace: { kind: "folder", path, access } }));
      return undefined;
    },
  },
  {
    name: "paths: read-only paths cannot be changed, denied paths reveal nothing",
    needs: "paths",
    async run(context) {
      const access = context.capabilities.workspaceAccess[0];
      if (access === undefined) return { skipped: "the runtime accepts no folder" };
      const folder = await context.hostFolder();
      await fill(folder, { "fixed/file": "fixed", "hidden/file": "hidden", "free/file": "free", "hidden-file": "a secret" });
      const sandbox = await context.create({
        workspace: { kind: "folder", path: folder, access },
        readOnlyPaths: ["/workspace/fixed"],
        deniedPaths: ["/workspace/hidden", "/workspace/hidden-file"],
      });
      assert.equal(await readText(context, sandbox, "/workspace/fixed/file"), "fixed");
      await rejectsWith(context, "denied", "writing to a read-only path", () => writeText(sandbox, "/workspace/fixed/file", "x"));
      const { ended } = await run(context, sandbox, "write-file", { args: ["fixed/made", "1"] });
      assert.notEqual(ended.kind === "exited" ? ended.exitCode : -1, 0);
      await rejectsWith(context, ["not_found", "denied"], "a file in a denied folder", () => sandbox.readFile("/workspace/hidden/file"));
      const seen = await run(context, sandbox, "show", { args: ["hidden-file"] });
      assert.ok(!seen.stdout.includes("secret"), "a denied file was read");
      if (access !== "ro") await writeText(sandbox, "/workspace/free/file", "changed");
      return undefined;
    },
  },
  {
    name: "paths: unsupported if the runtime lacks them",
    needs: "!paths",
    async run(context) {
      await rejectsWith(context, "unsupported", "read-only paths", () => context.create({ readOnlyPaths: ["/workspace/x"] }));
      await rejectsWith(context, "unsupported", "denied paths", () => context.create({ deniedPaths: ["/workspace/x"] }));
      return undefined;
    },
  },
];
