import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { providerReach } from "./provider-reach.ts";

const messages = { wire: "anthropic", kind: "messages" } as const;
const chat = { wire: "openai", kind: "chat" } as const;
const responses = { wire: "openai", kind: "responses" } as const;
const embeddings = { wire: "openai", kind: "embeddings" } as const;

const imageByUrl = { type: "image", source: { type: "url", url: "http://evil.example" } };
const messageWith = (...content: object[]) => ({ messages: [{ role: "user", content }] });
const item = (value: object) => ({ input: [value] });

test.each([
  [messages, { mcp_servers: [{ url: "https://evil.example" }] }, "mcp_servers"],
  [messages, { container: "container_1" }, "container"],
  [messages, { tools: [{ type: "web_search_20250305", name: "web_search" }] }, "tools[0]"],
  [messages, { tools: [{ name: "mine" }, { type: "code_execution_20250825" }] }, "tools[1]"],
  [messages, { tools: [{ type: "something_new_1" }] }, "tools[0]"],
  [messages, { tools: [{ type: 7 }] }, "tools[0]"],
  [messages, messageWith({ type: "tool_result", content: [imageByUrl] }), "messages[0].content[0].content[0].source"],
  [messages, { system: [{ type: "document", source: { type: "file", file_id: "file_1" } }] }, "system[0].source"],
  [messages, { system: [{ type: "document", source: { type: "content", content: [imageByUrl] } }] }, "system[0].source.content[0].source"],
  [messages, messageWith({ type: "container_upload", file_id: "file_1" }), "messages[0].content[0]"],
  [messages, { ground_with: true }, "ground_with"],
  [messages, { connect_to: { address: "10.0.0.1" } }, "connect_to"],
  [chat, { model: "gpt-4o-search-preview" }, "model"],
  [chat, { model: "gpt-5", models: ["perplexity/sonar-pro"] }, "models"],
  [chat, { model: "openai/gpt-5:online" }, "model"],
  [chat, { web_search_options: { search_context_size: "low" } }, "web_search_options"],
  [chat, { enable_search: true }, "enable_search"],
  [chat, messageWith({ type: "image_url", image_url: { url: "https://evil.example" } }), "messages[0].content[0].image_url"],
  [chat, messageWith({ type: "video_url", video_url: { url: "https://evil.example" } }), "messages[0].content[0]"],
  [chat, messageWith({ type: "file", file: { file_id: "file-1" } }), "messages[0].content[0].file.file_id"],
  [chat, { messages: [{ role: "assistant", audio: { id: "audio_1" } }] }, "messages[0].audio.id"],
  [responses, { model: "o3-deep-research" }, "model"],
  [responses, { tools: [{ type: "mcp", server_url: "https://evil.example" }] }, "tools[0]"],
  [responses, { tools: [{ type: "web_search" }] }, "tools[0]"],
  [responses, { tools: [{ type: "web_search", external_web_access: true }] }, "tools[0]"],
  [responses, { tools: [{ type: "shell", environment: { type: "container_auto" } }] }, "tools[0]"],
  [responses, { tools: [{ name: "no type" }] }, "tools[0]"],
  [responses, { tools: [{ type: "namespace", name: "n", tools: [{ type: "image_generation" }] }] }, "tools[0].tools[0]"],
  [responses, item({ type: "additional_tools", role: "developer", tools: [{ type: "web_search" }] }), "input[0].tools[0]"],
  [responses, item({ type: "tool_search_output", tools: [{ type: "mcp", server_url: "https://evil.example" }] }), "input[0].tools[0]"],
  [responses, { tool_choice: { type: "allowed_tools", tools: [{ type: "mcp", server_label: "x" }] } }, "tool_choice.tools[0]"],
  [responses, { background: true }, "background"],
  [responses, { prompt: { id: "pmpt_1" } }, "prompt"],
  [responses, { previous_response_id: "resp_1" }, "previous_response_id"],
  [responses, { conversation: { id: "conv_1" } }, "conversation"],
  [responses, item({ type: "item_reference", id: "msg_1" }), "input[0]"],
  [responses, item({ id: "msg_1" }), "input[0]"],
  [responses, item({ type: "code_interpreter_call", container_id: "cntr_1" }), "input[0]"],
  [
    responses,
    item({ role: "user", content: [{ type: "input_image", image_url: "HTTPS://evil.example" }] }),
    "input[0].content[0].image_url",
  ],
  [responses, item({ role: "user", content: [{ type: "input_file", file_url: "https://evil.example" }] }), "input[0].content[0].file_url"],
  [responses, item({ type: "function_call_output", output: [{ type: "input_file", file_id: "file-1" }] }), "input[0].output[0].file_id"],
  [
    responses,
    { type: "tool_use", ...item({ role: "user", content: [{ type: "input_image", image_url: "https://x" }] }) },
    "input[0].content[0].image_url",
  ],
  [embeddings, { input: [{ image_url: "https://evil.example" }] }, "input[0]"],
] as const)("finds reach in %j %j", (route, body, path) => expect(providerReach(route, body)?.path).toBe(path));

const codex = {
  model: "gpt-5-codex",
  instructions: "You are Codex.",
  input: [
    { type: "additional_tools", role: "developer", tools: [{ type: "function", name: "exec", parameters: { properties: { url: {} } } }] },
    { type: "message", role: "user", content: [{ type: "input_text", text: "see https://example.com" }] },
    { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "…" }], encrypted_content: "gAAA" },
    { type: "function_call", id: "fc_1", call_id: "call_1", name: "exec", arguments: '{"url":"https://x"}' },
    { type: "function_call_output", call_id: "call_1", output: [{ type: "input_image", image_url: "data:image/png;base64,aaaa" }] },
    { type: "web_search_call", id: "ws_1", action: { type: "open_page", url: "https://example.com" } },
    {
      type: "message",
      role: "assistant",
      content: [{ type: "output_text", text: "ok", annotations: [{ type: "url_citation", url: "https://x" }] }],
    },
  ],
  tools: [
    { type: "function", name: "a", parameters: {} },
    { type: "namespace", name: "mcp", tools: [{ type: "function", name: "b" }] },
    { type: "web_search", external_web_access: false },
    { type: "local_shell" },
    { type: "shell", environment: { type: "local" } },
  ],
  tool_choice: "auto",
  parallel_tool_calls: true,
  reasoning: { effort: "medium", summary: "auto" },
  store: false,
  stream: true,
  include: ["reasoning.encrypted_content"],
  prompt_cache_key: "0198c0de",
  client_metadata: { "x-codex-installation-id": "0198" },
  text: { verbosity: "low", format: { type: "json_schema", schema: { properties: { file_url: {} } } } },
};

const claudeCode = {
  model: "claude-x",
  max_tokens: 32_000,
  stream: true,
  system: [{ type: "text", text: "You are …", cache_control: { type: "ephemeral", ttl: "1h" } }],
  messages: [
    { role: "user", content: [{ type: "document", source: { type: "base64", media_type: "application/pdf", data: "aaaa" } }] },
    {
      role: "assistant",
      content: [
        { type: "thinking", thinking: "…", signature: "sig" },
        { type: "tool_use", id: "toolu_1", name: "WebFetch", input: { url: "https://x", source: imageByUrl.source } },
      ],
    },
    {
      role: "user",
      content: [{ type: "tool_result", tool_use_id: "toolu_1", content: [{ type: "text", text: "https://x" }], is_error: false }],
    },
  ],
  tools: [
    { name: "WebFetch", input_schema: { properties: { url: { type: "string" }, image_url: "https://x" } } },
    { type: "bash_20250124", name: "bash" },
  ],
  tool_choice: { type: "auto", disable_parallel_tool_use: true },
  metadata: { user_id: "user_1_session_2" },
  thinking: { type: "enabled", budget_tokens: 31_999 },
  context_management: { edits: [{ type: "clear_thinking_20251015", keep: "all" }] },
  output_config: { effort: "high" },
  mcp_servers: [],
};

test.each([
  [messages, claudeCode],
  [responses, codex],
  [
    chat,
    {
      tools: [{ type: "function", function: { name: "f", parameters: { image_url: "https://x" } } }, { type: "custom" }],
      web_search_options: null,
    },
  ],
  [
    chat,
    messageWith(
      { type: "image_url", image_url: { url: "data:image/png;base64,aaaa", detail: "low" } },
      { type: "file", file: { filename: "a", file_data: "data:x" } },
    ),
  ],
  [
    chat,
    { messages: [{ role: "user", content: "see https://example.com/a.png" }], metadata: { file_url: "https://x" }, n: 2, stop: ["\n"] },
  ],
  [
    chat,
    {
      messages: [
        { role: "assistant", content: null, tool_calls: [{ id: "c", type: "function", function: { name: "f", arguments: "{}" } }] },
        { role: "tool", tool_call_id: "c", content: "x" },
      ],
    },
  ],
  [chat, { a_new_knob: 0.5, another: "low", more: { of_them: ["fast", true] } }],
  [embeddings, { input: ["a", "b"], dimensions: 10 }],
  [embeddings, { input: [[1, 2, 3]], model: "text-search-ada" }],
] as const)("finds no reach in %j %j", (route, body) => expect(providerReach(route, body as never)).toBeNull());

describe("provider reach", () => {
  const routes = fc.constantFrom(messages, chat, responses);
  const reaching = fc.constantFrom<Record<string, unknown>>(
    { type: "input_image", image_url: "https://evil.example/x" },
    { type: "image_url", image_url: { url: "http://evil.example" } },
    { type: "input_file", file_id: "file-abc" },
    { type: "image", source: { type: "url", url: "https://evil.example" } },
    { type: "document", source: { type: "file", file_id: "f" } },
    { type: "item_reference", id: "msg_1" },
    { type: "additional_tools", tools: [{ type: "web_search" }] },
    { type: "text", text: "x", tools: [{ type: "mcp", server_url: "https://evil.example" }] },
    { type: "text", text: "x", container: { id: "c" } },
  );
  /** Any wrappers, at any depth. */
  const wrapped = fc.array(fc.tuple(fc.constantFrom("content", "output", "extra", "details", "tools", "text"), fc.boolean()), {
    maxLength: 30,
  });

  test("is found anywhere in what the provider reads as content", () => {
    fc.assert(
      fc.property(routes, reaching, wrapped, fc.jsonValue(), (route, inner, layers, noise) => {
        const value = layers.reduce<unknown>((at, [key, list]) => ({ role: "user", [key]: list ? [noise, at] : at }), inner);
        const top = route === responses ? "input" : "messages";
        expect(providerReach(route, { model: "m", [top]: [{ role: "user", content: [value] }] })).not.toBeNull();
      }),
    );
  });

  test("is found in a hosted tool anywhere in a list of tools", () => {
    const hosted = fc.constantFrom(
      "web_search",
      "mcp",
      "code_interpreter",
      "file_search",
      "image_generation",
      "web_fetch_20250910",
      "mcp_toolset",
      "new",
    );
    fc.assert(
      fc.property(routes, hosted, fc.nat(20), (route, type, depth) => {
        let tool: object = { type, name: "x" };
        for (let i = 0; i < depth; i++) tool = { type: "namespace", name: "n", tools: [{ type: "function", name: "f" }, tool] };
        expect(providerReach(route, { model: "m", tools: [tool] })).not.toBeNull();
      }),
    );
  });

  test("is found at any depth", () => {
    let value: object = imageByUrl;
    for (let i = 0; i < 50_000; i++) value = { role: "user", content: [value] };
    expect(providerReach(messages, { messages: [value] })?.what).toContain("url");
  });
});
