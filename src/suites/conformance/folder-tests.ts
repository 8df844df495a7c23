import assert from "node:assert/strict";
import type { ConformanceTest } from "./context.ts";
import { readText, rejectsWith, runOk, within, writeText } from "./expectations.ts";

const awkwardNames = [
  "with space",
  "new\nline",
  "ünï-☃-💾",
  "-rf",
  "a'b\"c`d$e",
  "*",
  "tab\there",
  ".hidden",
  "back\\slash",
  "x".repeat(255),
];

/** Folders, links, moving and removing. */
export const folderTests: ConformanceTest[] = [
  {
    name: "folder: list returns the children's names, kinds, sizes and modes",
    async run(context) {
      const sandbox = await context.sandbox();
      const folder = await context.folder();
      await sandbox.writeFile(`${folder}/file`, Buffer.from("12345"), { mode: 0o640 });
      await sandbox.mkdir(`${folder}/sub`);
      await writeText(sandbox, `${folder}/sub/deeper`, "");
      await runOk(context, sandbox, "link", "file", `${folder}/to-file`);
      const before = Date.now();
      const { entries, truncated } = await within(context, "listing", sandbox.list(folder));
      assert.equal(truncated, false);
      const byName = new Map(entries.map((each) => [each.name, each]));
      assert.deepEqual([...byName.keys()].sort(), ["file", "sub", "to-file"]);
      assert.equal(byName.get("file")?.kind, "file");
      assert.equal(byName.get("file")?.sizeBytes, 5);
      assert.equal((byName.get("file")?.mode ?? 0) & 0o7777, 0o640);
      assert.ok(Math.abs((byName.get("file")?.modifiedMs ?? 0) - before) < 60_000, "modified just now");
      assert.equal(byName.get("sub")?.kind, "directory");
      assert.equal(byName.get("to-file")?.kind, "link");
      assert.equal(byName.get("to-file")?.linkTarget, "file");
      assert.equal(byName.get("file")?.linkTarget, null);
      return undefined;
    },
  },
  {
    name: "folder: list descends to the requested depth, never through a link",
    async run(context) {
      const sandbox = await context.sandbox();
      const folder = await context.folder();
      await sandbox.writeFile(`${folder}/a/b/c/d`, Buffer.from(""), { parents: true });
      await runOk(context, sandbox, "link", "a", `${folder}/link`);
      const names = async (depth: number) => (await sandbox.list(folder, { depth })).entries.map((each) => each.name).sort();
      assert.deepEqual(await names(1), ["a", "link"]);
      assert.deepEqual(await names(2), ["a", "a/b", "link"]);
      assert.deepEqual(await names(9), ["a", "a/b", "a/b/c", "a/b/c/d", "link"]);
      return undefined;
    },
  },
  {
    name: "folder: list stops at entriesMax and reports it",
    async run(context) {
      const sandbox = await context.sandbox();
      const folder = await context.folder();
      for (const name of ["a", "b", "c", "d", "e"]) await writeText(sandbox, `${folder}/${name}`, "");
      const some = await sandbox.list(folder, { entriesMax: 3 });
      assert.equal(some.entries.length, 3);
      assert.equal(some.truncated, true);
      const all = await sandbox.list(folder, { entriesMax: 5 });
      assert.equal(all.entries.length, 5);
      assert.equal(all.truncated, false);
      return undefined;
    },
  },
  {
    name: "folder: an empty folder lists as empty",
    async run(context) {
      const sandbox = await context.sandbox();
      assert.deepEqual(await sandbox.list(await context.folder()), { entries: [], truncated: false });
      return undefined;
    },
  },
  {
    name: "folder: stat follows a link or not, as requested",
    async run(context) {
      const sandbox = await context.sandbox();
      const folder = await context.folder();
      await writeText(sandbox, `${folder}/target`, "123");
      await runOk(context, sandbox, "link", "target", `${folder}/link`);
      await runOk(context, sandbox, "link", "nowhere", `${folder}/dangling`);
      const target = await sandbox.stat(`${folder}/link`, { follow: true });
      assert.equal(target.kind, "file");
      assert.equal(target.sizeBytes, 3);
      const itself = await sandbox.stat(`${folder}/link`, { follow: false });
      assert.equal(itself.kind, "link");
      assert.equal(itself.linkTarget, "target");
      await rejectsWith(context, "not_found", "following a dangling link", () => sandbox.stat(`${folder}/dangling`, { follow: true }));
      assert.equal((await sandbox.stat(`${folder}/dangling`, { follow: false })).kind, "link");
      return undefined;
    },
  },
  {
    name: "folder: mkdir sets the mode; an existing folder is exists, unless parents",
    async run(context) {
      const sandbox = await context.sandbox();
      const folder = await context.folder();
      await sandbox.mkdir(`${folder}/private`, { mode: 0o700 });
      assert.equal((await sandbox.stat(`${folder}/private`)).mode & 0o7777, 0o700);
      await sandbox.mkdir(`${folder}/p/q/r`, { parents: true });
      assert.equal((await sandbox.stat(`${folder}/p/q/r`)).kind, "directory");
      await sandbox.mkdir(`${folder}/p/q/r`, { parents: true });
      await rejectsWith(context, "exists", "creating an existing folder", () => sandbox.mkdir(`${folder}/p`));
      await rejectsWith(context, "not_found", "creating without a parent", () => sandbox.mkdir(`${folder}/x/y`));
      return undefined;
    },
  },
  {
    name: "folder: move renames; an existing target is exists, unless replace",
    async run(context) {
      const sandbox = await context.sandbox();
      const folder = await context.folder();
      await writeText(sandbox, `${folder}/a`, "a");
      await writeText(sandbox, `${folder}/b`, "b");
      await rejectsWith(context, "exists", "moving onto a file", () => sandbox.move(`${folder}/a`, `${folder}/b`));
      assert.equal(await readText(context, sandbox, `${folder}/b`), "b");
      await sandbox.move(`${folder}/a`, `${folder}/b`, { replace: true });
      assert.equal(await readText(context, sandbox, `${folder}/b`), "a");
      await rejectsWith(context, "not_found", "the old name", () => sandbox.stat(`${folder}/a`));
      await sandbox.mkdir(`${folder}/d/e`, { parents: true });
      await sandbox.move(`${folder}/d`, `${folder}/moved`);
      assert.equal((await sandbox.stat(`${folder}/moved/e`)).kind, "directory");
      return undefined;
    },
  },
  {
    name: "folder: remove deletes a folder with content only if recursive",
    async run(context) {
      const sandbox = await context.sandbox();
      const folder = await context.folder();
      await sandbox.writeFile(`${folder}/full/a/b`, Buffer.from(""), { parents: true });
      await rejectsWith(context, "conflict", "removing a folder with content", () => sandbox.remove(`${folder}/full`));
      assert.equal((await sandbox.stat(`${folder}/full/a/b`)).kind, "file");
      await sandbox.remove(`${folder}/full`, { recursive: true });
      await rejectsWith(context, "not_found", "stat of the removed folder", () => sandbox.stat(`${folder}/full`));
      await sandbox.mkdir(`${folder}/empty`);
      await sandbox.remove(`${folder}/empty`);
      await writeText(sandbox, `${folder}/file`, "");
      await sandbox.remove(`${folder}/file`);
      assert.deepEqual((await sandbox.list(folder)).entries, []);
      return undefined;
    },
  },
  {
    name: "folder: remove never follows a link",
    async run(context) {
      const sandbox = await context.sandbox();
      const folder = await context.folder();
      await sandbox.writeFile(`${folder}/outside/kept`, Buffer.from("x"), { parents: true });
      await sandbox.mkdir(`${folder}/doomed`);
      await runOk(context, sandbox, "link", "../outside", `${folder}/doomed/link`);
      await runOk(context, sandbox, "link", "outside", `${folder}/link`);
      await sandbox.remove(`${folder}/doomed`, { recursive: true });
      await sandbox.remove(`${folder}/link`, { recursive: true });
      assert.equal(await readText(context, sandbox, `${folder}/outside/kept`), "x");
      assert.deepEqual(
        (await sandbox.list(folder)).entries.map((each) => each.name),
        ["outside"],
      );
      return undefined;
    },
  },
  {
    name: "folder: awkward names work in every operation",
    async run(context) {
      const sandbox = await context.sandbox();
      const folder = await context.folder();
      for (const name of awkwardNames) await writeText(sandbox, `${folder}/${name}`, `this is ${name}`);
      assert.deepEqual((await sandbox.list(folder)).entries.map((each) => each.name).sort(), [...awkwardNames].sort());
      for (const name of awkwardNames) {
        assert.equal(await readText(context, sandbox, `${folder}/${name}`), `this is ${name}`);
        assert.equal(await runOk(context, sandbox, "show", `${folder}/${name}`), `this is ${name}`);
        await sandbox.move(`${folder}/${name}`, `${folder}/moved`);
        await sandbox.move(`${folder}/moved`, `${folder}/${name}`);
        await sandbox.remove(`${folder}/${name}`);
      }
      assert.deepEqual((await sandbox.list(folder)).entries, []);
      return undefined;
    },
  },
  {
    name: "folder: a relative path is relative to /workspace",
    async run(context) {
      const sandbox = await context.sandbox();
      const folder = await context.folder();
      const relative = folder.slice("/workspace/".length);
      await writeText(sandbox, `${relative}/here`, "relative");
      assert.equal(await readText(context, sandbox, `${folder}/here`), "relative");
      return undefined;
    },
  },
];
