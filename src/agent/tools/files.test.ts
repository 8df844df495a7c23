import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { CaissonError } from "../../contract/error/error.ts";
import type { OwnedSandbox } from "../../sandbox/sandbox.ts";
import { applyPatchTool } from "./apply-patch.ts";
import { editTool, writeTool } from "./files.ts";
import { createWorkbench, type Workbench } from "./testing-tools.ts";

describe("write and edit", () => {
  let bench: Workbench;
  beforeAll(async () => {
    bench = await createWorkbench();
  });
  afterAll(() => bench[Symbol.asyncDispose]());
  const mode = async (path: string) => ((await bench.sandbox.stat(`/workspace/${path}`)).mode & 0o777).toString(8);

  test("create folders, replace the file and report the change", async () => {
    const added = await bench.use(writeTool, { path: "deep/er/a.txt", content: "one\ntwo\n" });
    expect(added).toMatchObject({
      text: "Wrote 8 bytes to deep/er/a.txt.",
      files: [{ path: "deep/er/a.txt", kind: "added", linesRemoved: 0 }],
    });
    const changed = await bench.use(writeTool, { path: "/workspace/deep/er/a.txt", content: "one\nthree\n" });
    expect(changed.files).toEqual([{ path: "deep/er/a.txt", kind: "modified", linesAdded: 1, linesRemoved: 1 }]);
    expect((await bench.use(writeTool, { path: "deep/er/a.txt", content: "one\nthree\n" })).files).toEqual([]);
    await bench.put("b.bin", Buffer.from([0, 255]));
    expect((await bench.use(writeTool, { path: "b.bin", content: "text" })).files?.[0]?.kind).toBe("modified");
  });

  test("make files with secret-looking names private to their owner", async () => {
    for (const path of [".env", ".env.local", "keys/id_ed25519", "server.pem", "x/credentials.json", ".npmrc"]) {
      await bench.use(writeTool, { path, content: "s" });
      expect(await mode(path), path).toBe("600");
    }
    await bench.use(writeTool, { path: "environment.md", content: "s" });
    expect(await mode("environment.md")).toBe("644");
  });

  test("replace the only occurrence, and keep the file's mode", async () => {
    await bench.put("run.sh", "echo one\necho two\n", { mode: 0o755 });
    expect(await bench.use(editTool, { path: "run.sh", old: "two", new: "three" })).toMatchObject({
      outcome: "ok",
      text: "Edited run.sh.",
    });
    expect(await bench.read("run.sh")).toBe("echo one\necho three\n");
    expect(await mode("run.sh")).toBe("755");
  });

  test("reject old text that is missing, ambiguous, unchanged or binary", async () => {
    await bench.put("twice.txt", "a b a");
    const edit = (args: object) => bench.use(editTool, { path: "twice.txt", ...args });
    expect(await edit({ old: "c", new: "d" })).toMatchObject({ outcome: "error", text: expect.stringContaining("does not occur") });
    expect(await edit({ old: "a", new: "d" })).toMatchObject({ outcome: "error", text: expect.stringContaining("occurs 2 times") });
    expect(await edit({ old: "a", new: "a" })).toMatchObject({ outcome: "error", text: expect.stringContaining("identical") });
    expect(await bench.read("twice.txt")).toBe("a b a");
    expect(await edit({ old: "a", new: "$&", replace_all: true })).toMatchObject({
      outcome: "ok",
      text: "Replaced 2 occurrences in twice.txt.",
    });
    expect(await bench.read("twice.txt")).toBe("$& b $&");
    const latin = Buffer.from([0x66, 0xfc, 0x72]);
    await bench.put("latin.txt", latin);
    await expect(bench.use(editTool, { path: "latin.txt", old: "f", new: "g" })).rejects.toMatchObject({ code: "invalid" });
    await expect(bench.use(editTool, { path: "missing.txt", old: "f", new: "g" })).rejects.toMatchObject({ code: "not_found" });
  });

  test("match lines of a CRLF file and keep its line ends", async () => {
    await bench.put("dos.txt", "one\r\ntwo\r\nthree\r\n");
    await bench.use(editTool, { path: "dos.txt", old: "one\ntwo", new: "1\n2\n2a" });
    expect(await bench.read("dos.txt")).toBe("1\r\n2\r\n2a\r\nthree\r\n");
  });

  test("finish an edit that started before a crash, and never repeat it", async () => {
    await bench.put("grow.txt", "x");
    const args = { path: "grow.txt", old: "x", new: "xx" };
    const call = { call: "t900.1" };
    await bench.use(editTool, args, call);
    expect(await bench.read("grow.txt")).toBe("xx");
    expect(await bench.use(editTool, args, { ...call, resumed: true })).toMatchObject({ outcome: "ok" });
    expect(await bench.read("grow.txt")).toBe("xx");
    // The call started, but the crash came before the write. Another call's plan does not count.
    await bench.put("grow.txt", "x");
    await bench.use(editTool, args, { call: "t901.1", resumed: true });
    expect(await bench.read("grow.txt")).toBe("xx");
  });
});

describe("a patch", () => {
  const patch = `*** Begin Patch
*** Update File: a.txt
@@
-one
+1
*** Add File: new/c.txt
+see
*** Delete File: b.txt
*** End Patch`;
  const failing = (path: string) => (sandbox: OwnedSandbox) =>
    new Proxy(sandbox, {
      get: (target, name, receiver) =>
        name !== "writeFile"
          ? Reflect.get(target, name, receiver)
          : async (...args: Parameters<OwnedSandbox["writeFile"]>) => {
              if (args[0] === path) throw new CaissonError("no_space", "The disk is full.");
              return await target.writeFile(...args);
            },
    });

  test("is rolled back completely if a file cannot be written", async () => {
    await using bench = await createWorkbench({ change: failing("/workspace/new/c.txt") });
    await bench.put("a.txt", "one\n");
    await bench.put("b.txt", "two\n");
    await expect(bench.use(applyPatchTool, { patch })).rejects.toMatchObject({ code: "no_space" });
    expect([await bench.read("a.txt"), await bench.read("b.txt")]).toEqual(["one\n", "two\n"]);
  });

  test("is finished on resume after a crash", async () => {
    await using bench = await createWorkbench();
    await bench.put("a.txt", "one\n");
    await bench.put("b.txt", "two\n");
    await bench.use(applyPatchTool, { patch }, { call: "t7.1" });
    // Simulates a crash after the first file.
    await bench.sandbox.remove("/workspace/new/c.txt");
    await bench.put("b.txt", "two\n");
    const result = await bench.use(applyPatchTool, { patch }, { call: "t7.1", resumed: true });
    expect(result).toMatchObject({ outcome: "ok", files: [{ path: "a.txt" }, { path: "new/c.txt" }, { path: "b.txt", kind: "removed" }] });
    expect([await bench.read("a.txt"), await bench.read("new/c.txt")]).toEqual(["1\n", "see\n"]);
    await expect(bench.read("b.txt")).rejects.toMatchObject({ code: "not_found" });
  });
});
