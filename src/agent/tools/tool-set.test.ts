import { expect, test } from "vitest";
import { builtInTools, selectTools } from "./tool-set.ts";

test("an agent has the tools it names; a name that is none is refused", () => {
  expect(selectTools(undefined, { agent: "a" })).toHaveLength(builtInTools.length);
  expect(selectTools(["read", "mcp:x"], { agent: "a" }).map((tool) => tool.name)).toEqual(["read"]);
  expect(() => selectTools(["raed"], { agent: "a" })).toThrow(
    expect.objectContaining({ code: "invalid", hint: expect.stringContaining("read") }),
  );
  expect(new Set(builtInTools.map((tool) => tool.name)).size).toBe(builtInTools.length);
});
