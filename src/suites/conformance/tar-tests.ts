import assert from "node:assert/strict";
import { CaissonError } from "../../contract/error/error.ts";
import type { FileInfo, Sandbox } from "../../sandbox/sandbox.ts";
import type { ConformanceTest } from "./context.ts";
import { inPieces, patternBytes, readAll, readText, rejectsWith, runOk, sameBytes, within, writeText } from "./expectations.ts";
import { paxHeader, type TarEntry, tarArchive } from "./tar-archive.ts";

/** Archives that try to escape the folder they are unpacked in. `outside` is a folder beside it. */
function tricks(outside: string): Record<string, TarEntry[]> {
  const content = Buffer.from("got out");
  return {
    "an absolute name": [{ name: `${outside}/file`, content }],
    "a name with ..": [{ name: "../escape/file", content }],
    "a name with .. in the middle": [{ name: "sub/../../escape/file", content }],
    "a pax name with ..": [paxHeader({ path: "../escape/file" }), { name: "harmless", content }],
    "a file through a symbolic link": [
      { name: "link", type: "2", linkTarget: outside },
      { name: "link/file", content },
    ],
    "a folder through a symbolic link": [
      { name: "link", type: "2", linkTarget: "../escape" },
      { name: "link/made", type: "5" },
    ],
    "a hard link to the outside": [{ name: "hard", type: "1", linkTarget: `${outside}/kept` }],
    "a hard link with ..": [{ name: "hard", type: "1", linkTarget: "../escape/kept" }],
    "a hard link through a symbolic link": [
      { name: "link", type: "2", linkTarget: outside },
      { name: "hard", type: "1", linkTarget: "link/kept" },
    ],
    "a character device": [{ name: "device", type: "3" }],
    "a block device": [{ name: "device", type: "4" }],
    "a fifo": [{ name: "fifo", type: "6" }],
    "a name of 5,000 characters": [paxHeader({ path: `${"d/".repeat(2400)}${"x".repeat(200)}` }), { name: "harmless", content }],
  };
}

/** Packing and unpacking archives. */
export const tarTests: ConformanceTest[] = [
  {
    name: "tar: an archive is unpacked with its folders, modes and links",
    async run(context) {
      const sandbox = await context.sandbox();
      const folder = await context.folder();
      const bytes = patternBytes(1_234_567);
      const archive = tarArchive([
        { name: "sub/", type: "5", mode: 0o750 },
        { name: "sub/tool", content: Buffer.from("#!/bin/sh\n"), mode: 0o755 },
        { name: "sub/data", content: bytes, mode: 0o640 },
        { name: "implied/parent/file", content: Buffer.from("x") },
        { name: "link", type: "2", linkTarget: "sub/tool" },
        { name: "sub/same", type: "1", linkTarget: "sub/tool" },
        paxHeader({ path: `long/${"n".repeat(180)}` }),
        { name: "short", content: Buffer.from("long name") },
      ]);
      const result = await within(context, "unpacking", sandbox.tarIn(`${folder}/new`, inPieces(archive, 100_000)));
      assert.equal(result.entries, 7);
      assert.equal((await sandbox.stat(`${folder}/new/sub`)).mode & 0o777, 0o750);
      assert.equal((await sandbox.stat(`${folder}/new/sub/tool`)).mode & 0o777, 0o755);
      assert.equal((await sandbox.stat(`${folder}/new/sub/data`)).mode & 0o777, 0o640);
      sameBytes(await readAll(context, await sandbox.readFile(`${folder}/new/sub/data`)), bytes, "the data");
      assert.equal((await sandbox.stat(`${folder}/new/link`, { follow: false })).linkTarget, "sub/tool");
      assert.equal(await readText(context, sandbox, `${folder}/new/sub/same`), "#!/bin/sh\n");
      assert.equal(await readText(context, sandbox, `${folder}/new/long/${"n".repeat(180)}`), "long name");
      return undefined;
    },
  },
  {
    name: "tar: packing and unpacking preserves the tree",
    async run(context) {
      const sandbox = await context.sandbox();
      const folder = await context.folder();
      await sandbox.writeFile(`${folder}/from/a/data`, patternBytes(2_000_001), { parents: true, mode: 0o600 });
      await sandbox.writeFile(`${folder}/from/tool`, Buffer.from("x"), { mode: 0o755 });
      await sandbox.writeFile(`${folder}/from/ünï ☃ ${"l".repeat(200)}`, Buffer.from("long"));
      await sandbox.mkdir(`${folder}/from/empty`, { mode: 0o700 });
      await runOk(context, sandbox, "link", "a/data", `${folder}/from/link`);
      await runOk(context, sandbox, "link", "/nowhere/at/all", `${folder}/from/dangling`);
      const archive = await readAll(context, await within(context, "packing", sandbox.tarOut(`${folder}/from`)));
      await sandbox.mkdir(`${folder}/to`);
      await within(context, "unpacking", sandbox.tarIn(`${folder}/to`, archive));
      const roots = (await sandbox.list(`${folder}/to`)).entries;
      const base = roots.length === 1 && roots[0]?.name === "from" ? `${folder}/to/from` : `${folder}/to`;
      assert.deepEqual(await shape(sandbox, base), await shape(sandbox, `${folder}/from`));
      sameBytes(await readAll(context, await sandbox.readFile(`${base}/a/data`)), patternBytes(2_000_001), "the data");
      return undefined;
    },
  },
  {
    name: "tar: exclude omits entries, bytesMax stops with too_large",
    async run(context) {
      const sandbox = await context.sandbox();
      const folder = await context.folder();
      await sandbox.writeFile(`${folder}/from/kept`, Buffer.from("kept"), { parents: true });
      await sandbox.writeFile(`${folder}/from/node_modules/x`, Buffer.from("left out"), { parents: true });
      const archive = await readAll(context, await sandbox.tarOut(`${folder}/from`, { exclude: ["node_modules"] }));
      assert.ok(archive.includes("kept"));
      assert.ok(!archive.includes("left out"));
      assert.ok((await readAll(context, await sandbox.tarOut(`${folder}/from`))).includes("left out"));
      await sandbox.writeFile(`${folder}/from/big`, Buffer.alloc(2_000_000));
      await rejectsWith(context, "too_large", "packing too much", async () =>
        readAll(context, await sandbox.tarOut(`${folder}/from`, { bytesMax: 100_000 })),
      );
      return undefined;
    },
  },
  {
    name: "tar: every trick is unsafe and writes nothing outside",
    async run(context) {
      const sandbox = await context.sandbox();
      const folder = await context.folder();
      await writeText(sandbox, `${folder}/kept`, "");
      for (const [what, entries] of Object.entries(tricks(`${folder}/escape`))) {
        await sandbox.writeFile(`${folder}/escape/kept`, Buffer.from("untouched"), { parents: true });
        await sandbox.mkdir(`${folder}/target`);
        await rejectsWith(context, "unsafe", `unpacking ${what}`, () => sandbox.tarIn(`${folder}/target`, tarArchive(entries)));
        const outside = await sandbox.list(`${folder}/escape`, { depth: 9 });
        assert.deepEqual(
          outside.entries.map((each) => each.name),
          ["kept"],
          what,
        );
        await sandbox.remove(`${folder}/target`, { recursive: true });
      }
      return undefined;
    },
  },
  {
    name: "tar: an existing link in the folder is not followed",
    async run(context) {
      const sandbox = await context.sandbox();
      const folder = await context.folder();
      await sandbox.mkdir(`${folder}/outside`);
      await sandbox.mkdir(`${folder}/target`);
      await runOk(context, sandbox, "link", "../outside", `${folder}/target/link`);
      const archive = tarArchive([{ name: "link/file", content: Buffer.from("x") }]);
      await rejectsWith(context, "unsafe", "unpacking through a link", () => sandbox.tarIn(`${folder}/target`, archive));
      assert.deepEqual((await sandbox.list(`${folder}/outside`)).entries, []);
      return undefined;
    },
  },
  {
    name: "tar: exceeding bytesMax or entriesMax is too_large",
    async run(context) {
      const sandbox = await context.sandbox();
      const folder = await context.folder();
      const big = tarArchive([{ name: "big", content: Buffer.alloc(300_000) }]);
      await rejectsWith(context, "too_large", "too many bytes", () => sandbox.tarIn(`${folder}/t`, big, { bytesMax: 100_000 }));
      const many = tarArchive(Array.from({ length: 20 }, (_, i) => ({ name: `f${i}` })));
      await rejectsWith(context, "too_large", "too many entries", () => sandbox.tarIn(`${folder}/t`, many, { entriesMax: 10 }));
      await within(context, "unpacking within the limits", sandbox.tarIn(`${folder}/u`, many, { entriesMax: 20, bytesMax: 1_000_000 }));
      assert.equal((await sandbox.list(`${folder}/u`)).entries.length, 20);
      return undefined;
    },
  },
  {
    name: "tar: stripComponents drops leading folders",
    async run(context) {
      const sandbox = await context.sandbox();
      const folder = await context.folder();
      const archive = tarArchive([
        { name: "top/", type: "5" },
        { name: "top/sub/file", content: Buffer.from("x") },
      ]);
      await sandbox.tarIn(folder, archive, { stripComponents: 1 });
      assert.equal(await readText(context, sandbox, `${folder}/sub/file`), "x");
      return undefined;
    },
  },
  {
    name: "tar: malformed and truncated archives are rejected in time",
    async run(context) {
      const sandbox = await context.sandbox();
      const folder = await context.folder();
      const cut = tarArchive([{ name: "file", content: Buffer.alloc(100_000, "x") }]).subarray(0, 50_000);
      for (const [what, bytes] of Object.entries({ "random bytes": patternBytes(4096), "a truncated archive": cut })) {
        await assert.rejects(within(context, what, sandbox.tarIn(`${folder}/t`, bytes)), (error) => error instanceof CaissonError, what);
      }
      return undefined;
    },
  },
];

async function shape(sandbox: Sandbox, folder: string) {
  const { entries } = await sandbox.list(folder, { depth: 9 });
  const line = (each: FileInfo) => [
    each.name,
    each.kind,
    each.kind === "link" ? each.linkTarget : (each.mode & 0o777).toString(8),
    each.kind === "file" ? each.sizeBytes : "",
  ];
  return entries.map((each) => line(each).join(" ")).sort();
}
