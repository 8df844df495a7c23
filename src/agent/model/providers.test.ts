import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { describe, expect, test } from "vitest";
import type { AssistantPart } from "../../contract/run/run.ts";
import type { ModelChunk, ModelMessage, ModelRequest } from "./model.ts";
import { resolveModel } from "./resolve-model.ts";

const KEY = "sk-canary-0123456789";

interface Heard {
  path: string;
  headers: IncomingMessage["headers"];
  body: Record<string, never>;
}

/** Starts a fake provider that gives one answer per call, in order, and records the requests. */
async function withProvider(
  answers: ((response: ServerResponse) => void)[],
  work: (url: string, requests: Heard[]) => Promise<void>,
): Promise<void> {
  const providerRequests: Heard[] = [];
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (data) => {
      body += data;
    });
    request.on("end", () => {
      providerRequests.push({ path: request.url ?? "", headers: request.headers, body: JSON.parse(body) });
      answers[providerRequests.length - 1]?.(response);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await work(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, providerRequests);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

const events = (list: readonly object[]) => (response: ServerResponse) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const event of list) response.write(`${"type" in event ? `event: ${event.type}\n` : ""}data: ${JSON.stringify(event)}\n\n`);
  response.end();
};
const refusal =
  (status: number, body: object, headers = {}) =>
  (response: ServerResponse) =>
    void response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));

const request = (more: readonly ModelMessage[] = [], estimatedTokens = 10): ModelRequest => ({
  from: { agent: "coder", position: 1, purpose: "step", estimatedTokens },
  messages: [{ role: "system", text: "Be brief." }, { role: "user", text: "List it." }, ...more],
  tools: [{ name: "bash", description: "Runs a command.", parameters: { type: "object", properties: { command: { type: "string" } } } }],
  outputTokensMax: 1000,
});

async function ask(name: string, env: Record<string, string>, sent = request()): Promise<ModelChunk[]> {
  const model = await resolveModel(name, { env });
  const chunks: ModelChunk[] = [];
  for await (const chunk of model.stream(sent, { signal: new AbortController().signal })) chunks.push(chunk);
  return chunks;
}

/** Returns the answer as the loop stores it, followed by the tool's result. */
function continued(chunks: readonly ModelChunk[]): ModelMessage[] {
  const parts: AssistantPart[] = [];
  for (const chunk of chunks) {
    const last = parts.at(-1);
    if (chunk.kind === "text") parts.push({ kind: "text", text: chunk.text });
    if (chunk.kind === "thought" && last?.kind === "thought")
      Object.assign(last, { text: last.text + chunk.text, ...(chunk.provider === undefined ? {} : { provider: chunk.provider }) });
    else if (chunk.kind === "thought") parts.push({ ...chunk });
    if (chunk.kind === "toolCall") parts.push({ ...chunk, call: "t1.1" });
  }
  const calls = parts.filter((part) => part.kind === "toolCall");
  return [
    { role: "assistant", parts },
    { role: "tool", results: calls.map((call) => ({ providerCall: call.providerCall, name: call.name, text: "a.txt", isError: false })) },
  ];
}
const callOf = (chunks: readonly ModelChunk[]) => chunks.find((chunk) => chunk.kind === "toolCall");

describe("the Anthropic adapter", () => {
  const thinking = events([
    {
      type: "message_start",
      message: {
        id: "msg_1",
        type: "message",
        role: "assistant",
        model: "claude",
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: 12, output_tokens: 1, cache_read_input_tokens: 8, cache_creation_input_tokens: 0 },
      },
    },
    { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "", signature: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "I should look." } },
    { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: "c2lnbmVk" } },
    { type: "content_block_stop", index: 0 },
    { type: "content_block_start", index: 1, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 1, delta: { type: "text_delta", text: "Looking." } },
    { type: "content_block_stop", index: 1 },
    { type: "content_block_start", index: 2, content_block: { type: "tool_use", id: "toolu_1", name: "bash", input: {} } },
    { type: "content_block_delta", index: 2, delta: { type: "input_json_delta", partial_json: '{"comm' } },
    { type: "content_block_delta", index: 2, delta: { type: "input_json_delta", partial_json: 'and":"ls"}' } },
    { type: "content_block_stop", index: 2 },
    { type: "message_delta", delta: { stop_reason: "tool_use", stop_sequence: null }, usage: { output_tokens: 30 } },
    { type: "message_stop" },
  ]);
  const env = (url: string) => ({ ANTHROPIC_API_KEY: KEY, ANTHROPIC_BASE_URL: url });

  test("returns thoughts with their signature, and results after their calls", () =>
    withProvider([thinking, thinking], async (url, requests) => {
      const chunks = await ask("anthropic/claude-x", env(url));
      expect(callOf(chunks)).toMatchObject({ providerCall: "toolu_1", name: "bash", arguments: { command: "ls" } });
      expect(chunks.at(-1)).toMatchObject({ kind: "end", stop: "tools", usage: { outputTokens: 30, cachedInputTokens: 8 } });
      expect(requests[0]).toMatchObject({
        path: "/messages",
        headers: { "x-api-key": KEY },
        body: { model: "claude-x", max_tokens: 1000, stream: true, system: [{ text: "Be brief." }] },
      });
      await ask("anthropic/claude-x", env(url), request(continued(chunks)));
      const { messages } = (requests[1] as Heard).body as unknown as { messages: { role: string; content: object[] }[] };
      expect(messages.map((message) => message.role)).toEqual(["user", "assistant", "user"]);
      expect(messages[1]?.content).toMatchObject([
        { type: "thinking", thinking: "I should look.", signature: "c2lnbmVk" },
        { type: "text", text: "Looking." },
        { type: "tool_use", id: "toolu_1", name: "bash", input: { command: "ls" } },
      ]);
      expect(messages[2]?.content).toMatchObject([{ type: "tool_result", tool_use_id: "toolu_1", content: "a.txt" }]);
    }));

  test("maps refusals to codes, and reads one near a full window as too long", async () => {
    const error = (type: string) => ({ type: "error", error: { type, message: "no" } });
    const answers = [
      refusal(529, error("overloaded_error")),
      refusal(413, error("request_too_large")),
      refusal(400, error("invalid_request_error")),
      refusal(400, error("invalid_request_error")),
    ];
    await withProvider(answers, async (url) => {
      await expect(ask("anthropic/claude-sonnet-x", env(url))).rejects.toMatchObject({ code: "unavailable", retryable: true });
      await expect(ask("anthropic/claude-sonnet-x", env(url))).rejects.toMatchObject({ code: "too_large" });
      await expect(ask("anthropic/claude-sonnet-x", env(url))).rejects.toMatchObject({ code: "invalid" });
      await expect(ask("anthropic/claude-sonnet-x", env(url), request([], 190_000))).rejects.toMatchObject({ code: "too_large" });
    });
  });
});

describe("the OpenAI adapter", () => {
  const base = { id: "resp_1", object: "response", created_at: 1, model: "gpt-x" };
  const call = { type: "function_call", id: "fc_1", call_id: "call_1", name: "bash", arguments: '{"command":"ls"}', status: "completed" };
  const answer = events([
    { type: "response.created", response: { ...base, status: "in_progress", output: [] } },
    { type: "response.output_item.added", output_index: 0, item: { type: "reasoning", id: "rs_1", summary: [] } },
    { type: "response.output_item.done", output_index: 0, item: { type: "reasoning", id: "rs_1", summary: [] } },
    {
      type: "response.output_item.added",
      output_index: 1,
      item: { type: "message", id: "msg_1", role: "assistant", content: [], status: "in_progress" },
    },
    { type: "response.output_text.delta", item_id: "msg_1", output_index: 1, content_index: 0, delta: "Looking.", logprobs: [] },
    {
      type: "response.output_item.done",
      output_index: 1,
      item: {
        type: "message",
        id: "msg_1",
        role: "assistant",
        status: "completed",
        content: [{ type: "output_text", text: "Looking.", annotations: [] }],
      },
    },
    { type: "response.output_item.added", output_index: 2, item: { ...call, arguments: "", status: "in_progress" } },
    { type: "response.function_call_arguments.delta", item_id: "fc_1", output_index: 2, delta: '{"command":"ls"}' },
    { type: "response.function_call_arguments.done", item_id: "fc_1", output_index: 2, arguments: '{"command":"ls"}' },
    { type: "response.output_item.done", output_index: 2, item: call },
    {
      type: "response.completed",
      response: {
        ...base,
        status: "completed",
        output: [],
        usage: {
          input_tokens: 20,
          output_tokens: 9,
          total_tokens: 29,
          input_tokens_details: { cached_tokens: 4 },
          output_tokens_details: { reasoning_tokens: 3 },
        },
      },
    },
  ]);
  const env = (url: string) => ({ OPENAI_API_KEY: KEY, OPENAI_BASE_URL: `${url}/v1` });

  test("uses the Responses protocol and returns calls with their ids", () =>
    withProvider([answer, answer], async (url, requests) => {
      const chunks = await ask("openai/gpt-x", env(url));
      expect(chunks.filter((chunk) => chunk.kind === "text")).toEqual([{ kind: "text", text: "Looking." }]);
      expect(callOf(chunks)).toMatchObject({ providerCall: "call_1", arguments: { command: "ls" } });
      expect(chunks.at(-1)).toMatchObject({
        stop: "tools",
        usage: { inputTokens: 20, outputTokens: 9, cachedInputTokens: 4, reasoningTokens: 3 },
      });
      expect(requests[0]).toMatchObject({
        path: "/v1/responses",
        headers: { authorization: `Bearer ${KEY}` },
        body: { model: "gpt-x", stream: true },
      });
      await ask("openai/gpt-x", env(url), request(continued(chunks)));
      const { input } = (requests[1] as Heard).body as unknown as { input: object[] };
      expect(JSON.stringify(input)).toContain("rs_1");
      expect(input).toContainEqual(expect.objectContaining({ type: "function_call_output", call_id: "call_1", output: "a.txt" }));
      expect(
        input.some((item) => JSON.stringify(item).includes("fc_1") || JSON.stringify(item).includes('"call_id":"call_1","name":"bash"')),
      ).toBe(true);
    }));

  test("recognizes the code for an overlong conversation, and every form of retry-after", async () => {
    const error = (code: string) => ({ error: { message: "no", type: "invalid_request_error", param: null, code } });
    const date = new Date(Date.now() + 20_000).toUTCString();
    const answers = [
      refusal(400, error("context_length_exceeded")),
      refusal(429, error("rate_limit_exceeded"), { "retry-after": "3" }),
      refusal(429, error("rate_limit_exceeded"), { "retry-after": date }),
      refusal(429, error("rate_limit_exceeded"), { "retry-after-ms": "250" }),
    ];
    await withProvider(answers, async (url) => {
      await expect(ask("openai/gpt-x", env(url))).rejects.toMatchObject({ code: "too_large" });
      await expect(ask("openai/gpt-x", env(url))).rejects.toMatchObject({ code: "busy", details: { retryAfterMs: 3000 } });
      const dated = await ask("openai/gpt-x", env(url)).catch((failure: unknown) => failure as { details: { retryAfterMs: number } });
      expect((dated as { details: { retryAfterMs: number } }).details.retryAfterMs).toBeGreaterThan(10_000);
      await expect(ask("openai/gpt-x", env(url))).rejects.toMatchObject({ details: { retryAfterMs: 250 } });
    });
  });
});

describe("the Google adapter", () => {
  const answer = events([
    { candidates: [{ content: { role: "model", parts: [{ text: "Thinking.", thought: true }] }, index: 0 }] },
    { candidates: [{ content: { role: "model", parts: [{ text: "Looking." }] }, index: 0 }] },
    {
      candidates: [
        {
          content: { role: "model", parts: [{ functionCall: { name: "bash", args: { command: "ls" } }, thoughtSignature: "Z29vZ2xl" }] },
          finishReason: "STOP",
          index: 0,
        },
      ],
      usageMetadata: { promptTokenCount: 11, candidatesTokenCount: 6, totalTokenCount: 17, thoughtsTokenCount: 2 },
    },
  ]);

  test("streams text and calls, and returns a call's signature", () =>
    withProvider([answer, answer], async (url, requests) => {
      const env = { GEMINI_API_KEY: KEY, GOOGLE_BASE_URL: `${url}/v1beta` };
      const chunks = await ask("google/gemini-x", env);
      expect(callOf(chunks)).toMatchObject({ name: "bash", arguments: { command: "ls" } });
      expect(chunks.at(-1)).toMatchObject({ kind: "end", stop: "tools", usage: { inputTokens: 11 } });
      expect(requests[0]).toMatchObject({
        path: "/v1beta/models/gemini-x:streamGenerateContent?alt=sse",
        headers: { "x-goog-api-key": KEY },
      });
      await ask("google/gemini-x", env, request(continued(chunks)));
      expect(JSON.stringify(requests[1]?.body)).toContain('"thoughtSignature":"Z29vZ2xl"');
      expect(JSON.stringify(requests[1]?.body)).toMatch(/"functionResponse":\{[^}]*"name":"bash"/);
    }));
});

test("keeps the key out of errors even if the provider repeats it", async () => {
  const echo = (status: number) => refusal(status, { error: { message: `Incorrect API key provided: ${KEY}`, type: "x", code: null } });
  await withProvider([echo(401), echo(400), echo(500)], async (url) => {
    for (let number = 0; number < 3; number++) {
      const error = (await ask("openai/gpt-x", { OPENAI_API_KEY: KEY, OPENAI_BASE_URL: url }).catch(
        (failure: unknown) => failure,
      )) as Error;
      expect(error).toBeInstanceOf(Error);
      expect(`${JSON.stringify(error)} ${error.message} ${error.stack} ${String(error.cause)}`).not.toContain(KEY);
    }
  });
});
