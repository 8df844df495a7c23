import { expect, test } from "vitest";
import { hostedUse } from "./hosted-tools.ts";

const deep = (levels: number, inner: object): object => {
  let value = inner;
  for (let i = 0; i < levels; i++) value = { content: [value] };
  return value;
};
const url = { type: "image", source: { type: "url", url: "http://evil.example" } };

test.each([
  ["anthropic", { mcp_servers: [{ url: "https://evil.example" }] }, "mcp_servers"],
  ["anthropic", { tools: [{ type: "web_search_20250305", name: "web_search" }] }, "web_search_20250305"],
  ["anthropic", { tools: [{ type: "code_execution_20250825" }] }, "code_execution"],
  ["anthropic", { tools: [{ type: "something_new_1" }] }, "something_new_1"],
  ["anthropic", { tools: [{ type: 7 }] }, "the tool"],
  ["anthropic", { messages: [{ content: [{ type: "tool_result", content: [url] }] }] }, "URL"],
  ["anthropic", { system: [{ type: "document", source: { type: "url", url: "https://x" } }] }, "URL"],
  ["openai", { tools: [{ type: "mcp", server_url: "https://evil.example" }] }, "mcp"],
  ["openai", { tools: [{ type: "web_search" }] }, "web_search"],
  ["openai", { tools: [{ type: "web_search", external_web_access: true }] }, "web_search"],
  ["openai", { tools: [{ type: "shell", environment: { type: "container_auto" } }] }, "shell"],
  ["openai", { tools: [{ type: "image_generation" }] }, "image_generation"],
  ["openai", { tools: [{ name: "no type" }] }, "the tool"],
  ["openai", { web_search_options: {} }, "web_search_options"],
  ["openai", { messages: [{ content: [{ type: "image_url", image_url: { url: "https://evil.example" } }] }] }, "URL"],
  ["openai", { input: [{ content: [{ type: "input_image", image_url: "HTTPS://evil.example" }] }] }, "URL"],
  ["openai", { input: [{ content: [{ type: "input_file", file_url: "https://evil.example" }] }] }, "URL"],
  ["openai", { prompt: { variables: { a: { type: "input_image", image_url: "https://evil.example" } } } }, "URL"],
] as const)("%s %j reaches out", (wire, body, words) => expect(hostedUse(wire, body)).toContain(words));

test.each([
  ["anthropic", { tools: [{ name: "mine", input_schema: { properties: { image_url: "https://x" } } }, { type: "bash_20250124" }] }],
  [
    "anthropic",
    { mcp_servers: [], messages: [{ content: [{ type: "tool_use", input: { source: url.source, image_url: "https://x" } }] }] },
  ],
  ["anthropic", { messages: [{ content: [{ type: "image", source: { type: "base64", data: "aaaa" } }] }] }],
  ["openai", { tools: [{ type: "function", function: { parameters: { image_url: "https://x" } } }, { type: "custom" }] }],
  ["openai", { tools: [{ type: "web_search", external_web_access: false }, { type: "local_shell" }] }],
  ["openai", { tools: [{ type: "shell", environment: { type: "local" } }], web_search_options: null }],
  ["openai", { messages: [{ content: [{ type: "image_url", image_url: { url: "data:image/png;base64,aaaa" } }] }] }],
  ["openai", { messages: [{ content: "see https://example.com/a.png" }], metadata: { file_url: "https://x" } }],
] as const)("%s %j does not", (wire, body) => expect(hostedUse(wire, body)).toBeNull());

test("depth hides nothing", () => expect(hostedUse("anthropic", { messages: [deep(50_000, url)] })).toContain("URL"));
