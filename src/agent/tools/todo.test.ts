import { afterAll, beforeAll, expect, test } from "vitest";
import { createWorkbench, type Workbench } from "./testing-tools.ts";
import { todoReadTool, todoWriteTool } from "./todo.ts";

let bench: Workbench;
beforeAll(async () => {
  bench = await createWorkbench();
});
afterAll(() => bench[Symbol.asyncDispose]());

test("stores the whole todo list, and rejects a contradictory one", async () => {
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
