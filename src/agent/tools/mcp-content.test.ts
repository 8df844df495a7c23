import { expect, test } from "vitest";
import { mcpResultText } from "./mcp-content.ts";

const textOf = (...content: object[]) => mcpResultText({ content });

test.each([
  [{ type: "text", text: "plain" }, "plain"],
  [{ type: "image", data: "AAAA", mimeType: "image/png" }, "[image image/png, 3 B; not shown]"],
  [{ type: "audio", data: "AAA=", mimeType: "audio/wav" }, "[audio audio/wav, 2 B; not shown]"],
  [
    { type: "resource", resource: { uri: "demo://r/1", mimeType: "text/plain", text: "the words" } },
    "[resource demo://r/1 text/plain]\nthe words",
  ],
  [{ type: "resource", resource: { uri: "demo://r/2", blob: "AAAA" } }, "[resource demo://r/2, 3 B; not shown]"],
  [{ type: "resource_link", uri: "file:///a.txt", name: "a", mimeType: "text/plain" }, "[resource link file:///a.txt (a; text/plain)]"],
  [{ type: "resource_link", uri: "file:///b.txt" }, "[resource link file:///b.txt]"],
  [{ type: "hologram", x: 1 }, '[unknown content: {"type":"hologram","x":1}]'],
])("shows %j to the model", (part, text) => {
  expect(textOf(part)).toBe(text);
});

test("joins parts as lines, and shows a structured or an empty result", () => {
  expect(textOf({ type: "text", text: "one" }, { type: "text", text: "two" })).toBe("one\ntwo");
  expect(mcpResultText({ content: [], structuredContent: { sum: 3 } })).toBe('{"sum":3}');
  expect(mcpResultText({ content: [] })).toBe("(nothing)");
  expect(mcpResultText({})).toBe("(nothing)");
});
