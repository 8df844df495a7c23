import { mkdtemp, rm } from "node:fs/promises";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Model, ModelChunk, ModelRequest } from "./model.ts";
import { costOf, findPrice } from "./prices.ts";
import { recordingModel, replayingModel, requestDigest } from "./recording.ts";
import { resolveModel } from "./resolve-model.ts";
import { createScriptedModel } from "./scripted-model.ts";

const ask = (text: string, position = 1): ModelRequest => ({
  from: { agent: "coder", position, purpose: "step", estimatedTokens: 10 },
  messages: [
    { role: "system", text: "Be brief." },
    { role: "user", text },
  ],
  tools: [{ name: "bash", description: "Runs a command.", parameters: { type: "object", properties: { command: { type: "string" } } } }],
});

async function collect(model: Model, request: ModelRequest, signal = new AbortController().signal): Promise<ModelChunk[]> {
  const chunks: ModelChunk[] = [];
  for await (const chunk of model.stream(request, { signal })) chunks.push(chunk);
  return chunks;
}

/** Starts a minimal server for OpenAI's chat protocol; each test supplies the answers. */
async function withServer(
  handle: (request: IncomingMessage, response: ServerResponse, body: string) => void,
  work: (baseUrl: string) => Promise<void>,
) {
  const server = createServer((request, response) => {
    let body = "";
    request.on("data", (data) => {
      body += data;
    });
    request.on("end", () => handle(request, response, body));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await work(`http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`);
  } finally {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }
}

const sse = (response: ServerResponse, events: unknown[]) => {
  response.writeHead(200, { "content-type": "text/event-stream" });
  for (const event of events) response.write(`data: ${JSON.stringify(event)}\n\n`);
  response.end("data: [DONE]\n\n");
};
const delta = (value: unknown, finish: string | null = null) => ({
  id: "c1",
  object: "chat.completion.chunk",
  created: 1,
  model: "m",
  choices: [{ index: 0, delta: value, finish_reason: finish }],
});

test("streams text, tool calls and usage from an OpenAI-compatible server", () =>
  withServer(
    (_request, response, body) => {
      expect(JSON.parse(body)).toMatchObject({
        model: "m",
        stream: true,
        messages: [{ role: "system" }, { role: "user", content: "hello" }],
      });
      sse(response, [
        delta({ role: "assistant", content: "Let me " }),
        delta({ content: "look." }),
        delta({ tool_calls: [{ index: 0, id: "x1", type: "function", function: { name: "bash", arguments: '{"comm' } }] }),
        delta({ tool_calls: [{ index: 0, function: { arguments: 'and":"ls"}' } }] }),
        { ...delta({}, "tool_calls"), usage: { prompt_tokens: 20, completion_tokens: 5, total_tokens: 25 } },
      ]);
    },
    async (baseUrl) => {
      const model = await resolveModel("compatible/m", { env: { OPENAI_BASE_URL: baseUrl, OPENAI_API_KEY: "k" } });
      const chunks = await collect(model, ask("hello"));
      expect(chunks.filter((chunk) => chunk.kind === "text").map((chunk) => chunk.text)).toEqual(["Let me ", "look."]);
      expect(chunks.find((chunk) => chunk.kind === "toolCall")).toEqual({
        kind: "toolCall",
        providerCall: "x1",
        name: "bash",
        arguments: { command: "ls" },
      });
      expect(chunks.at(-1)).toMatchObject({ kind: "end", stop: "tools", usage: { inputTokens: 20, outputTokens: 5 } });
    },
  ));

async function codeOf(handle: (response: ServerResponse) => void, options: { stallMs?: number } = {}): Promise<unknown> {
  let caught: unknown;
  await withServer(
    (_request, response) => handle(response),
    async (baseUrl) => {
      const model = await resolveModel("compatible/m", { env: { OPENAI_BASE_URL: baseUrl }, ...options });
      caught = await collect(model, ask("hello")).catch((error: unknown) => error);
    },
  );
  return caught;
}

test("maps each provider failure to a code", async () => {
  const status = (code: number, headers = {}) => codeOf((response) => response.writeHead(code, headers).end('{"error":{"message":"no"}}'));
  expect(await status(401)).toMatchObject({ code: "unauthenticated" });
  expect(await status(404)).toMatchObject({ code: "not_found" });
  expect(await status(429, { "retry-after": "7" })).toMatchObject({ code: "busy", retryable: true, details: { retryAfterMs: 7000 } });
  expect(await status(500)).toMatchObject({ code: "unavailable", retryable: true });
  expect(await status(400)).toMatchObject({ code: "invalid", retryable: false });
});

test("tells garbage from a stalled answer", async () => {
  const broken = (text: string) => (response: ServerResponse) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.end(text);
  };
  expect(await codeOf(broken("data: {not json\n\n"))).toMatchObject({ code: "protocol" });
  const stalled = (response: ServerResponse) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(`data: ${JSON.stringify(delta({ content: "hm" }))}\n\n`);
  };
  expect(await codeOf(stalled, { stallMs: 100 })).toMatchObject({ code: "timeout" });
});

test("passes malformed arguments on as a bad tool call", () =>
  withServer(
    (_request, response) =>
      sse(response, [
        delta({ tool_calls: [{ index: 0, id: "x1", type: "function", function: { name: "bash", arguments: '{"command": ls' } }] }),
        delta({}, "tool_calls"),
      ]),
    async (baseUrl) => {
      const model = await resolveModel("compatible/m", { env: { OPENAI_BASE_URL: baseUrl } });
      expect((await collect(model, ask("x"))).some((chunk) => chunk.kind === "badToolCall")).toBe(true);
    },
  ));

test("ends a cancelled call at once", () =>
  withServer(
    (_request, response) => response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders(),
    async (baseUrl) => {
      const abort = new AbortController();
      const model = await resolveModel("compatible/m", { env: { OPENAI_BASE_URL: baseUrl } });
      const result = collect(model, ask("x"), abort.signal).catch((error: unknown) => error);
      abort.abort();
      expect(await result).toMatchObject({ code: "cancelled" });
    },
  ));

test("names the variable of a missing key, and the alternatives to an unknown name", async () => {
  await expect(resolveModel("anthropic/claude-sonnet-4-5", { env: {} })).rejects.toMatchObject({
    code: "unauthenticated",
    hint: expect.stringContaining("ANTHROPIC_API_KEY"),
  });
  await expect(resolveModel("gpt", { env: {} })).rejects.toMatchObject({ code: "invalid", hint: expect.stringContaining("anthropic") });
  await expect(resolveModel("compatible/x", { env: {} })).rejects.toMatchObject({ hint: expect.stringContaining("OPENAI_BASE_URL") });
});

test("scripts answers by position, checks the request, and fails on demand", async () => {
  const model = createScriptedModel({
    turns: [
      { say: "One moment.", calls: [{ tool: "bash", arguments: { command: "ls" } }], expect: { contains: ["hello"] } },
      { say: "Done.", fail: { code: "unavailable", times: 1 } },
    ],
  });
  expect((await collect(model, ask("hello"))).map((chunk) => chunk.kind)).toEqual(["text", "text", "toolCall", "end"]);
  await expect(collect(model, ask("bye"))).rejects.toMatchObject({ code: "invalid" });
  await expect(collect(model, ask("x", 2))).rejects.toMatchObject({ code: "unavailable" });
  expect((await collect(model, ask("x", 2))).at(-1)).toMatchObject({ kind: "end", stop: "end" });
  await expect(collect(model, ask("x", 3))).rejects.toMatchObject({ code: "invalid" });
});

test("replays recorded answers, and rejects a missing or changed call", async () => {
  const dir = await mkdtemp(join(tmpdir(), "caisson-test-recording-"));
  try {
    const recorder = recordingModel(createScriptedModel({ turns: [{ say: "Hello there." }] }), dir);
    const chunks = await collect(recorder, ask("hello"));
    const replay = replayingModel({ dir, name: "x/y", contextTokens: 1000, cost: () => 0 });
    expect(await collect(replay, ask("hello"))).toEqual(chunks);
    await expect(collect(replay, ask("hello!"))).rejects.toMatchObject({ code: "conflict", message: expect.stringContaining("message 2") });
    await expect(collect(replay, ask("hello", 2))).rejects.toMatchObject({ code: "not_found" });
  } finally {
    await rm(dir, { recursive: true, force: true });
  }
});

test("computes the digest from the request alone, regardless of sender and key order", () => {
  const request = ask("hello");
  expect(requestDigest({ ...request, from: { agent: "other", position: 9, purpose: "step", estimatedTokens: 10 } })).toBe(
    requestDigest(request),
  );
  expect(requestDigest({ ...request, temperature: 1 })).not.toBe(requestDigest(request));
});

test("takes the price from the longest match in the user's table", () => {
  const own = { "openai/gpt-5-mini": { inputUsd: 1, outputUsd: 2 } };
  const usage = { inputTokens: 1_000_000, outputTokens: 500_000, cachedInputTokens: 0, reasoningTokens: 0 };
  expect(costOf(usage, findPrice("openai/gpt-5-mini-2026", own))).toBe(2);
  expect(costOf(usage, findPrice("openai/gpt-5-mini-2026"))).toBe(1.25);
  expect(costOf(usage, findPrice("unknown/model"))).toBeNull();
});
