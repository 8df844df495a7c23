import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RunEvent } from "../../contract/run-event.ts";
import { cutMiddle } from "./limits.ts";
import { recallTool } from "./recall.ts";
import { globTool } from "./search.ts";
import { createWorkbench, type Workbench } from "./testing.ts";
import { todoReadTool, todoWriteTool } from "./todo.ts";
import { builtInTools, selectTools } from "./tool-set.ts";

describe("small tools", () => {
  let bench: Workbench;
  beforeAll(async () => {
    bench = await createWorkbench();
  });
  afterAll(() => bench[Symbol.asyncDispose]());
  const glob = async (pattern: string, options: object = {}) =>
    (await bench.use(globTool, { pattern, ...options })).text.split("\n").sort();

  test("glob finds by name, anywhere below a folder, and skips what nobody looks for", async () => {
    for (const path of ["a.ts", "src/b.ts", "src/deep/c.ts", "src/deep/c.md", "node_modules/x/d.ts", ".git/e.ts", ".github/w.yml"])
      await bench.put(path, "");
    expect(await glob("**/*.ts")).toEqual(["a.ts", "src/b.ts", "src/deep/c.ts"]);
    expect(await glob("*.ts")).toEqual(["a.ts"]);
    expect(await glob("**/*.{md,yml}")).toContain("src/deep/c.md");
    expect(await glob("*.ts", { folder: "src" })).toEqual(["src/b.ts"]);
    expect(await glob("/workspace/src/*.ts")).toEqual(["src/b.ts"]);
    expect(await glob("node_modules/**/*.ts")).toEqual(["node_modules/x/d.ts"]);
    expect(await glob("*.rs")).toEqual(["No file matches."]);
    await expect(glob("*", { folder: "nowhere" })).rejects.toMatchObject({ code: "not_found" });
  });

  test("glob shows 100 files at most, the newest first", async () => {
    for (let number = 0; number < 105; number++) await bench.put(`many/${number}.txt`, "");
    const { text } = await bench.use(globTool, { pattern: "many/*.txt" });
    expect(text).toMatch(/\n\n\[5 more; narrow the pattern\]$/);
    expect(text.split("\n")).toHaveLength(102);
  });

  test("the todo list is kept whole, and refused when it contradicts itself", async () => {
    const item = (id: string, blockedBy: string[] = []) => ({ id, text: `do ${id}`, status: "pending", blockedBy });
    expect((await bench.use(todoReadTool, {})).text).toBe("The list is empty.");
    await bench.use(todoWriteTool, { todo: [item("a"), item("b", ["a"])] });
    expect((await bench.use(todoReadTool, {})).text).toBe("[ ] a: do a\n[ ] b: do b (after a)");
    expect(await bench.use(todoWriteTool, { todo: [item("a"), item("a")] })).toMatchObject({ outcome: "error" });
    expect(await bench.use(todoWriteTool, { todo: [item("a", ["z"])] })).toMatchObject({
      outcome: "error",
      text: expect.stringContaining("z"),
    });
    expect(bench.todo.now).toHaveLength(2);
  });

  test("recall searches everything that happened, and shows one call in full", async () => {
    const add = (type: string, data: object) => bench.events.push(RunEvent.parse({ type, version: 1, at: new Date().toISOString(), data }));
    add("tool.requested", { call: "t1.1", step: 1, name: "bash", arguments: { command: "make TESTS" } });
    add("tool.ended", { call: "t1.1", outcome: "error", text: `${"x".repeat(1000)} undefined reference to frobnicate`, durationMs: 1 });
    add("message.received", { message: "msg_aaaaaaaaaaaa", source: "user", mode: "steer", text: "The tests are in test/" });
    const recall = async (args: object) => (await bench.use(recallTool, args)).text;
    expect(await recall({ query: "FROBNICATE reference" })).toMatch(/^t1\.1: ….*undefined reference to frobnicate$/);
    expect((await recall({ query: "tests" })).split("\n")).toEqual(["user: The tests are in test/", 't1.1: bash {"command":"make TESTS"}']);
    expect(await recall({ call: "t1.1" })).toMatch(/^bash .*\n\n→ x{1000} undefined/s);
    expect(await recall({ query: "never said" })).toContain("Nothing");
    expect(await bench.use(recallTool, {})).toMatchObject({ outcome: "error" });
  });

  test("an agent has the tools it names; a name that is none is refused", () => {
    expect(selectTools(undefined, { agent: "a" })).toHaveLength(builtInTools.length);
    expect(selectTools(["read", "mcp:x"], { agent: "a" }).map((tool) => tool.name)).toEqual(["read"]);
    expect(() => selectTools(["raed"], { agent: "a" })).toThrow(
      expect.objectContaining({ code: "invalid", hint: expect.stringContaining("read") }),
    );
    expect(new Set(builtInTools.map((tool) => tool.name)).size).toBe(builtInTools.length);
  });

  test("a text is cut in its middle, never through a character", () => {
    const { text, cut } = cutMiddle(`${"a".repeat(9)}${"🙂".repeat(50)}`, { charactersMax: 20, wholeAt: "/tmp/x" });
    expect(cut).toBe(true);
    expect(text.isWellFormed()).toBe(true);
    expect(text).toContain("the whole is in /tmp/x");
    expect(cutMiddle("short", { charactersMax: 20 })).toEqual({ text: "short", cut: false });
  });
});
