import { expect, test } from "vitest";
import { builtInTools, selectTools } from "./tool-set.ts";

test("selects the tools that an agent names, and rejects an unknown name", () => {
  expect(selectTools(undefined, { agent: "a" })).toHaveLength(builtInTools.length);
  expect(selectTools(["read", "mcp:x"], { agent: "a" }).map((tool) => tool.name)).toEqual(["read"]);
  expect(() => selectTools(["raed"], { agent: "a" })).toThrow(
    expect.objectContaining({ code: "invalid", hint: expect.stringContaining("read") }),
  );
  expect(new Set(builtInTools.map((tool) => tool.name)).size).toBe(builtInTools.length);
});
