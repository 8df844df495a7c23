import assert from "node:assert/strict";
import type { ConformanceTest } from "./context.ts";
import { eventually, inPieces, patternBytes, readAll, readText, rejectsWith, runOk, sameBytes, within, writeText } from "./expectations.ts";

const MODE_BITS = 0o7777;

/** Reading and writing files. */
export const fileTests: ConformanceTest[] = [
  {
    name: "file: zero, one and five million bytes are read as written",
    async run(context) {
      const sandbox = await context.sandbox();
      const folder = await context.folder();
      for (const size of [0, 1, 5_000_000]) {
        const bytes = patternBytes(size);
        const written = await within(context, "writing", sandbox.writeFile(`${folder}/f${size}`, bytes));
        assert.equal(written.bytes, size);
        sameBytes(await readAll(context, await sandbox.readFile(`${folder}/f${size}`)), bytes, `${size} bytes`);
        assert.equal((await sandbox.stat(`${folder}/f${size}`)).sizeBytes, size);
      }
      return undefined;
    },
  },
  {
    name: "file: a stream is written completely",
    async run(context) {
      const sandbox = await context.sandbox();
      const path = `${await context.folder()}/streamed`;
      const bytes = patternBytes(3_000_003);
      await within(context, "writing", sandbox.writeFile(path, inPieces(bytes, 333_333)));
      sameBytes(await readAll(context, await sandbox.readFile(path)), bytes, "the file");
      return undefined;
    },
  },
  {
    name: "file: offset and length select a part",
    async run(context) {
      const sandbox = await context.sandbox();
      const path = `${await context.folder()}/part`;
      const bytes = patternBytes(1_000_000);
      await sandbox.writeFile(path, bytes);
      const part = async (options: { offset?: number; length?: number }) => readAll(context, await sandbox.readFile(path, options));
      sameBytes(await part({ offset: 999_990 }), bytes.subarray(999_990), "a tail");
      sameBytes(await part({ length: 10 }), bytes.subarray(0, 10), "a head");
      sameBytes(await part({ offset: 300_001, length: 400_000 }), bytes.subarray(300_001, 700_001), "a middle");
      sameBytes(await part({ offset: 999_999, length: 500 }), bytes.subarray(999_999), "past the end");
      sameBytes(await part({ offset: 2_000_000 }), Buffer.alloc(0), "beyond the end");
      return undefined;
    },
  },
  {
    name: "file: replacing is atomic: a reader sees the old or the new content",
    async run(context) {
      const sandbox = await context.sandbox();
      const path = `${await context.folder()}/swap`;
      const contents = [Buffer.alloc(700_000, "a"), Buffer.alloc(500_000, "b")] as const;
      await sandbox.writeFile(path, contents[0]);
      // Both continue until each has done enough rounds.
      const roundsMin = 20;
      let writes = 0;
      let isReading = true;
      const writing = (async () => {
        for (; isReading; writes += 1) await sandbox.writeFile(path, inPieces(contents[writes % 2 ? 0 : 1], 100_000));
      })();
      const stopReading = () => {
        isReading = false;
      };
      writing.catch(stopReading);
      try {
        for (let reads = 0; isReading && Math.min(reads, writes) < roundsMin; reads += 1) {
          const bytes = await readAll(context, await sandbox.readFile(path));
          const whole = contents.some((content) => content.equals(bytes));
          assert.ok(whole, `a reader saw ${bytes.length} bytes that are neither the old nor the new content`);
        }
      } finally {
        isReading = false;
      }
      await within(context, "writing", writing);
      return undefined;
    },
  },
  {
    name: "file: a write that fails midway leaves only the old content",
    async run(context) {
      const sandbox = await context.sandbox();
      const folder = await context.folder();
      await writeText(sandbox, `${folder}/kept`, "old");
      const breaking = (async function* () {
        yield Buffer.alloc(400_000, "n");
        throw new Error("the source broke");
      })();
      await assert.rejects(within(context, "the write", sandbox.writeFile(`${folder}/kept`, breaking)));
      assert.equal(await readText(context, sandbox, `${folder}/kept`), "old");
      // The guest learns of the failure a moment after the caller.
      await eventually(context, "nothing remains of the write", async () => (await sandbox.list(folder)).entries.length === 1);
      assert.deepEqual(
        (await sandbox.list(folder)).entries.map((each) => each.name),
        ["kept"],
      );
      return undefined;
    },
  },
  {
    name: "file: append adds, create rejects an existing file, replace is the default",
    async run(context) {
      const sandbox = await context.sandbox();
      const path = `${await context.folder()}/how`;
      await sandbox.writeFile(path, Buffer.from("one"), { how: "create" });
      await sandbox.writeFile(path, Buffer.from("two"), { how: "append" });
      assert.equal(await readText(context, sandbox, path), "onetwo");
      await rejectsWith(context, "exists", "creating an existing file", () =>
        sandbox.writeFile(path, Buffer.from("three"), { how: "create" }),
      );
      assert.equal(await readText(context, sandbox, path), "onetwo");
      await writeText(sandbox, path, "four");
      assert.equal(await readText(context, sandbox, path), "four");
      return undefined;
    },
  },
  {
    name: "file: modes are set as requested and survive replacing",
    async run(context) {
      const sandbox = await context.sandbox();
      const folder = await context.folder();
      const mode = async (path: string) => (await sandbox.stat(path)).mode & MODE_BITS;
      await writeText(sandbox, `${folder}/plain`, "");
      assert.equal(await mode(`${folder}/plain`), 0o644);
      await sandbox.writeFile(`${folder}/tool`, Buffer.from(""), { mode: 0o755 });
      assert.equal(await mode(`${folder}/tool`), 0o755);
      await sandbox.writeFile(`${folder}/secret`, Buffer.from(""), { mode: 0o600 });
      await writeText(sandbox, `${folder}/secret`, "new");
      assert.equal(await mode(`${folder}/secret`), 0o600);
      return undefined;
    },
  },
  {
    name: "file: parents are created on request; otherwise a missing parent is not_found",
    async run(context) {
      const sandbox = await context.sandbox();
      const folder = await context.folder();
      await rejectsWith(context, "not_found", "writing without a parent", () => writeText(sandbox, `${folder}/a/b/c`, "x"));
      await sandbox.writeFile(`${folder}/a/b/c`, Buffer.from("x"), { parents: true });
      assert.equal(await readText(context, sandbox, `${folder}/a/b/c`), "x");
      return undefined;
    },
  },
  {
    name: "file: a command sees a written file, owned by its user",
    async run(context) {
      const sandbox = await context.sandbox();
      const path = `${await context.folder()}/note`;
      await writeText(sandbox, path, "for the command");
      assert.equal(await runOk(context, sandbox, "show", path), "for the command");
      assert.equal(String((await sandbox.stat(path)).uid), (await runOk(context, sandbox, "user")).trim());
      return undefined;
    },
  },
  {
    name: "file: a missing file is not_found before the first byte",
    async run(context) {
      const sandbox = await context.sandbox();
      const path = `${await context.folder()}/missing`;
      await rejectsWith(context, "not_found", "reading", () => sandbox.readFile(path));
      await rejectsWith(context, "not_found", "stat", () => sandbox.stat(path));
      await rejectsWith(context, "not_found", "listing", () => sandbox.list(path));
      await rejectsWith(context, "not_found", "removing", () => sandbox.remove(path));
      await rejectsWith(context, "not_found", "moving", () => sandbox.move(path, `${path}2`));
      await rejectsWith(context, "not_found", "tar out", () => sandbox.tarOut(path));
      await rejectsWith(context, "not_found", "watching", () => sandbox.watch(path));
      return undefined;
    },
  },
  {
    name: "file: a folder cannot be read, a file cannot be listed",
    async run(context) {
      const sandbox = await context.sandbox();
      const folder = await context.folder();
      await writeText(sandbox, `${folder}/file`, "");
      await rejectsWith(context, "invalid", "reading a folder", () => sandbox.readFile(folder));
      await rejectsWith(context, "invalid", "listing a file", () => sandbox.list(`${folder}/file`));
      return undefined;
    },
  },
  {
    name: "file: a fifo is unsupported and nothing hangs",
    async run(context) {
      const sandbox = await context.sandbox();
      const path = `${await context.folder()}/fifo`;
      await runOk(context, sandbox, "fifo", path);
      assert.equal((await sandbox.stat(path)).kind, "fifo");
      await rejectsWith(context, "unsupported", "reading a fifo", () => sandbox.readFile(path));
      await within(context, "the next request", sandbox.stat("/workspace"));
      return undefined;
    },
  },
  {
    name: "file: a file that the user may not read is denied",
    needs: "isolation",
    async run(context) {
      const sandbox = await context.sandbox();
      const path = `${await context.folder()}/locked`;
      await sandbox.writeFile(path, Buffer.from("x"), { mode: 0o200 });
      await rejectsWith(context, "denied", "reading a locked file", () => sandbox.readFile(path));
      return undefined;
    },
  },
  {
    name: "file: concurrent reads and writes do not mix",
    async run(context) {
      const sandbox = await context.sandbox();
      const folder = await context.folder();
      const numbers = Array.from({ length: 50 }, (_, i) => i);
      await within(
        context,
        "writing fifty",
        Promise.all(numbers.map((i) => writeText(sandbox, `${folder}/${i}`, `content ${i}`.repeat(i + 1)))),
      );
      const texts = await within(context, "reading fifty", Promise.all(numbers.map((i) => readText(context, sandbox, `${folder}/${i}`))));
      assert.deepEqual(
        texts,
        numbers.map((i) => `content ${i}`.repeat(i + 1)),
      );
      return undefined;
    },
  },
  {
    name: "file: an abandoned read does not block other calls",
    async run(context) {
      const sandbox = await context.sandbox();
      const folder = await context.folder();
      await sandbox.writeFile(`${folder}/big`, patternBytes(4_000_000));
      for await (const part of await sandbox.readFile(`${folder}/big`)) {
        assert.ok(part.length > 0);
        break;
      }
      await within(context, "the next write", writeText(sandbox, `${folder}/next`, "still here"));
      assert.equal(await readText(context, sandbox, `${folder}/next`), "still here");
      return undefined;
    },
  },
];
