import { once } from "node:events";
import { connect } from "node:net";
import { describe, expect, test } from "vitest";
import { CANARY, openGatewayRig } from "../../../test/support/gateway-rig.ts";
import {
  anthropicEvents,
  anthropicMessage,
  chatCompletion,
  chatEvents,
  responseEvents,
  responseObject,
  sendEvents,
  sendJson,
  sse,
} from "../../../test/support/model-upstream.ts";

const user = (content: unknown) => ({ role: "user", content });
const claude = (more: object = {}) => ({ model: "claude-x", max_tokens: 100, messages: [user("Say it.")], ...more });
const gpt = (more: object = {}) => ({ model: "gpt-x", messages: [user("Say it.")], ...more });

describe("anthropic", () => {
  test("passes a stream on byte for byte with the host's key, and meters it", async () => {
    const events = anthropicEvents("Hello from the model.", { input: 10, output: 42, cacheRead: 5, cacheWrite: 7 });
    await using rig = await openGatewayRig({ "/v1/messages": sendEvents(events) });
    const headers = { "anthropic-beta": "b1,b2", cookie: "a=b", "x-stainless-lang": "js", "x-forwarded-for": "1.2.3.4" };
    const answer = await rig.post("/anthropic/v1/messages?beta=true", claude({ stream: true }), { headers });
    expect(answer.headers.get("content-type")).toBe("text/event-stream");
    expect(await answer.text()).toBe(events.map(sse).join(""));
    const [call] = rig.upstream.calls;
    expect(call?.path).toBe("/v1/messages?beta=true");
    expect(call?.headers).toMatchObject({
      "x-api-key": CANARY,
      "anthropic-beta": "b1,b2",
      "anthropic-version": "2023-06-01",
      "accept-encoding": "identity",
      "x-stainless-lang": "js",
    });
    for (const name of ["authorization", "cookie", "x-forwarded-for"]) expect(call?.headers[name]).toBeUndefined();
    expect(call?.body).toEqual(claude({ stream: true }));
    await rig.eventsAre(1);
    expect(rig.events[0]?.data).toMatchObject({
      wire: "anthropic",
      model: "claude-x",
      path: "/anthropic/v1/messages",
      status: 200,
      usage: { inputTokens: 22, outputTokens: 42, cachedInputTokens: 5, reasoningTokens: 0 },
      costUsd: null,
      asked: "Say it.",
      answered: "Hello from the model.",
      error: null,
    });
  });

  test("records the tool calls of a whole answer, and tool results as the question", async () => {
    const content = [
      { type: "text", text: "I look." },
      { type: "tool_use", id: "t1", name: "bash", input: { command: "ls" } },
    ];
    const reply = { ...anthropicMessage("", { input: 3, output: 9 }), content };
    await using rig = await openGatewayRig({ "/v1/messages": sendJson(200, reply) });
    const result = { type: "tool_result", tool_use_id: "t0", content: [{ type: "text", text: "a.txt" }] };
    const answer = await rig.post(
      "/anthropic/v1/messages",
      claude({ messages: [user("first"), { role: "assistant", content }, user([result])] }),
    );
    expect(await answer.json()).toEqual(reply);
    await rig.eventsAre(1);
    expect(rig.events[0]?.data).toMatchObject({
      usage: { inputTokens: 3, outputTokens: 9 },
      asked: "[result] a.txt",
      answered: 'I look.\n[tool bash] {"command":"ls"}',
    });
  });

  test("counts tokens and lists the allowed models at no cost", async () => {
    const models = { data: [{ id: "claude-x" }, { id: "other" }], has_more: false };
    await using rig = await openGatewayRig(
      { "/v1/messages/count_tokens": sendJson(200, { input_tokens: 12 }), "/v1/models": sendJson(200, models) },
      { config: { wires: ["anthropic"], models: ["claude-*"] } },
    );
    const counted = await rig.post("/anthropic/v1/messages/count_tokens", claude());
    expect(await counted.json()).toEqual({ input_tokens: 12 });
    const listed = await fetch(`${rig.url}/v1/models?limit=5`, { headers: { "anthropic-version": "2023-06-01" } });
    expect(await listed.json()).toEqual({ data: [{ id: "claude-x" }], has_more: false });
    expect(rig.upstream.calls.map(({ path }) => path)).toEqual(["/v1/messages/count_tokens", "/v1/models?limit=5"]);
    await rig.eventsAre(2);
    expect(rig.events.map(({ data }) => [data.usage.inputTokens, data.costUsd, data.error])).toEqual([
      [0, 0, null],
      [0, 0, null],
    ]);
  });
});

describe("openai", () => {
  const usage = { input: 11, output: 22, cached: 4, reasoning: 6 };
  const metered = { inputTokens: 11, outputTokens: 22, cachedInputTokens: 4, reasoningTokens: 6 };

  test("requests the usage of a chat stream, and removes it for the client", async () => {
    await using rig = await openGatewayRig({ "/v1/chat/completions": sendEvents(chatEvents("Hello.", usage)) });
    const answer = await rig.post("/openai/v1/chat/completions", gpt({ stream: true, stream_options: { include_obfuscation: false } }));
    expect(await answer.text()).toBe(chatEvents("Hello.", null).map(sse).join(""));
    expect(rig.upstream.calls[0]?.body).toMatchObject({ stream_options: { include_usage: true, include_obfuscation: false } });
    expect(rig.upstream.calls[0]?.headers).toMatchObject({ authorization: `Bearer ${CANARY}` });
    expect(rig.upstream.calls[0]?.headers["x-api-key"]).toBeUndefined();
    await rig.eventsAre(1);
    expect(rig.events[0]?.data).toMatchObject({ usage: metered, answered: "Hello.", asked: "Say it.", error: null });
  });

  test("leaves the usage to a client that requested it", async () => {
    await using rig = await openGatewayRig({ "/v1/chat/completions": sendEvents(chatEvents("Hello.", usage)) });
    const answer = await rig.post("/v1/chat/completions", gpt({ stream: true, stream_options: { include_usage: true } }));
    expect(await answer.text()).toBe(chatEvents("Hello.", usage).map(sse).join(""));
  });

  test("meters whole chats, the responses API both ways, and embeddings", async () => {
    const embedded = { object: "list", data: [{ embedding: [0.1] }], usage: { prompt_tokens: 8, total_tokens: 8 } };
    await using rig = await openGatewayRig({
      "/v1/chat/completions": sendJson(200, chatCompletion("Yes.", usage)),
      "/v1/responses": (response, call) =>
        (call.body as { stream?: boolean }).stream
          ? sendEvents(responseEvents("Streamed.", usage))(response, call)
          : sendJson(200, responseObject("Whole.", usage))(response, call),
      "/v1/embeddings": sendJson(200, embedded),
    });
    expect(await (await rig.post("/openai/v1/chat/completions", gpt())).json()).toEqual(chatCompletion("Yes.", usage));
    const ask = { model: "gpt-x", input: "Say it." };
    expect(await (await rig.post("/openai/v1/responses", ask)).json()).toEqual(responseObject("Whole.", usage));
    const streamed = await rig.post("/v1/responses", { ...ask, stream: true });
    expect(await streamed.text()).toBe(responseEvents("Streamed.", usage).map(sse).join(""));
    expect(await (await rig.post("/openai/v1/embeddings", { model: "embed-x", input: ["a", "b"] })).json()).toEqual(embedded);
    await rig.eventsAre(4);
    expect(rig.events.map(({ data }) => [data.path, data.answered, data.usage])).toEqual([
      ["/openai/v1/chat/completions", "Yes.", metered],
      ["/openai/v1/responses", "Whole.", metered],
      ["/openai/v1/responses", "Streamed.", metered],
      ["/openai/v1/embeddings", "", { inputTokens: 8, outputTokens: 0, cachedInputTokens: 0, reasoningTokens: 0 }],
    ]);
    expect(rig.events[3]?.data.asked).toBe("a\nb");
  });

  test("records tool calls and results of the responses API", async () => {
    const item = { type: "function_call", name: "shell", arguments: '{"command":["ls"]}', call_id: "c1" };
    const events = [
      { type: "response.output_item.done", item },
      { type: "response.completed", response: { ...responseObject("", usage), output: [item] } },
    ];
    await using rig = await openGatewayRig({ "/v1/responses": sendEvents(events) });
    const input = [
      { role: "developer", content: "rules" },
      user([{ type: "input_text", text: "go" }]),
      item,
      { type: "function_call_output", call_id: "c1", output: "a.txt" },
    ];
    await (await rig.post("/openai/responses", { model: "gpt-x", input, stream: true })).text();
    await rig.eventsAre(1);
    expect(rig.events[0]?.data).toMatchObject({ asked: "[result] a.txt", answered: '\n[tool shell] {"command":["ls"]}' });
  });
});

describe("the endpoints", () => {
  test("describe the gateway, and refuse other paths in the wire's format", async () => {
    await using rig = await openGatewayRig({});
    const about = await fetch(rig.url);
    expect([about.status, await about.text()]).toEqual([
      200,
      expect.stringContaining("ANTHROPIC_BASE_URL=http://127.0.0.1:19081/anthropic\n"),
    ]);
    expect((await fetch(rig.url, { method: "HEAD" })).status).toBe(200);
    const options = await fetch(`${rig.url}/openai/v1/responses`, { method: "OPTIONS" });
    expect([options.status, options.headers.get("allow")]).toEqual([204, "GET, HEAD, POST, OPTIONS"]);
    const batches = await rig.post("/anthropic/v1/messages/batches", {});
    expect([batches.status, await batches.json()]).toMatchObject([404, { type: "error", error: { type: "not_found_error" } }]);
    const files = await fetch(`${rig.url}/openai/v1/files`);
    expect([files.status, await files.json()]).toMatchObject([
      404,
      { error: { type: "invalid_request_error", code: "unknown_url", param: null } },
    ]);
    const get = await fetch(`${rig.url}/v1/messages`);
    expect([get.status, get.headers.get("allow")]).toEqual([405, "POST, OPTIONS"]);
    // Codex tries this first, and continues without WebSocket after this answer.
    const socket = connect(Number(new URL(rig.url).port), "127.0.0.1");
    socket.write("GET /openai/v1/responses HTTP/1.1\r\nhost: x\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n");
    expect(String((await once(socket, "data"))[0])).toMatch(/^HTTP\/1.1 426 /);
    socket.destroy();
    expect(rig.upstream.calls).toEqual([]);
    expect(rig.events).toEqual([]);
  });

  test("refuse a wire that is off or that the host has no key for", async () => {
    await using rig = await openGatewayRig({}, { config: { wires: ["openai"] }, upstreams: {} });
    expect((await rig.post("/anthropic/v1/messages", claude())).status).toBe(404);
    const keyless = await rig.post("/openai/v1/chat/completions", gpt());
    expect([keyless.status, await keyless.json()]).toMatchObject([
      400,
      { error: { message: expect.stringContaining("no key for openai") } },
    ]);
    expect(await (await fetch(rig.url)).text()).toContain("no key for any provider");
  });
});
