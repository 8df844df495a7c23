import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface UpstreamCall {
  method: string;
  path: string;
  headers: IncomingHttpHeaders;
  /** Null without one. */
  body: Record<string, never> | null;
  /** Resolves when the client aborts the call. */
  aborted: Promise<void>;
}

export interface ModelUpstream extends AsyncDisposable {
  url: string;
  calls: UpstreamCall[];
}

export type UpstreamReply = (response: ServerResponse, call: UpstreamCall) => void | Promise<void>;

/** Starts a test provider for any of the wires, which answers each call with the reply for its path. */
export async function startModelUpstream(replies: Record<string, UpstreamReply>): Promise<ModelUpstream> {
  const calls: UpstreamCall[] = [];
  const server = createServer(async (request, response) => {
    const text = await bodyOf(request);
    const aborted = new Promise<void>((resolve) => {
      response.once("close", () => {
        if (!response.writableFinished) resolve();
      });
    });
    const { method = "", url = "", headers } = request;
    const call = { method, path: url, headers, body: text === "" ? null : JSON.parse(text), aborted };
    calls.push(call);
    const reply = replies[url.replace(/\?.*$/, "")];
    if (reply) await reply(response, call);
    else response.writeHead(404, { "content-type": "application/json" }).end('{"error":{"message":"no such path upstream"}}');
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    calls,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of request) pieces.push(piece as Buffer);
  return Buffer.concat(pieces).toString("utf8");
}

export const sendJson =
  (status: number, body: object, headers: Record<string, string> = {}): UpstreamReply =>
  (response) =>
    void response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));

/** Returns a stream event. Events of Anthropic and of the Responses API have their type as their name. */
export function sse(event: object | "[DONE]"): string {
  if (event === "[DONE]") return "data: [DONE]\n\n";
  return `${"type" in event ? `event: ${event.type}\n` : ""}data: ${JSON.stringify(event)}\n\n`;
}

export const sendEvents =
  (events: readonly (object | "[DONE]")[]): UpstreamReply =>
  (response) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    for (const event of events) response.write(sse(event));
    response.end();
  };

export const anthropicEvents = (text: string, usage: { input: number; output: number; cacheRead?: number; cacheWrite?: number }) => [
  {
    type: "message_start",
    message: {
      id: "msg_1",
      type: "message",
      role: "assistant",
      model: "claude-x",
      content: [],
      stop_reason: null,
      stop_sequence: null,
      usage: {
        input_tokens: usage.input,
        cache_read_input_tokens: usage.cacheRead ?? 0,
        cache_creation_input_tokens: usage.cacheWrite ?? 0,
        output_tokens: 1,
      },
    },
  },
  { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
  ...[...text.matchAll(/.{1,7}/gs)].map(([piece]) => ({
    type: "content_block_delta",
    index: 0,
    delta: { type: "text_delta", text: piece },
  })),
  { type: "content_block_stop", index: 0 },
  { type: "message_delta", delta: { stop_reason: "end_turn", stop_sequence: null }, usage: { output_tokens: usage.output } },
  { type: "message_stop" },
];

export const anthropicMessage = (text: string, usage: { input: number; output: number }) => ({
  id: "msg_1",
  type: "message",
  role: "assistant",
  model: "claude-x",
  content: [{ type: "text", text }],
  stop_reason: "end_turn",
  stop_sequence: null,
  usage: { input_tokens: usage.input, output_tokens: usage.output },
});

interface OpenAiUsage {
  input: number;
  output: number;
  cached?: number;
  reasoning?: number;
}
const chatUsage = (usage: OpenAiUsage) => ({
  prompt_tokens: usage.input,
  completion_tokens: usage.output,
  total_tokens: usage.input + usage.output,
  prompt_tokens_details: { cached_tokens: usage.cached ?? 0 },
  completion_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
});

/** Sends the usage in a separate chunk, and only if it was requested, as OpenAI does. */
export const chatEvents = (text: string, usage: OpenAiUsage | null) => {
  const chunk = { id: "c1", object: "chat.completion.chunk", created: 1, model: "gpt-x" };
  return [
    { ...chunk, choices: [{ index: 0, delta: { role: "assistant", content: "" }, finish_reason: null }] },
    ...[...text.matchAll(/.{1,7}/gs)].map(([piece]) => ({
      ...chunk,
      choices: [{ index: 0, delta: { content: piece }, finish_reason: null }],
    })),
    { ...chunk, choices: [{ index: 0, delta: {}, finish_reason: "stop" }] },
    ...(usage ? [{ ...chunk, choices: [], usage: chatUsage(usage) }] : []),
    "[DONE]" as const,
  ];
};

export const chatCompletion = (text: string, usage: OpenAiUsage) => ({
  id: "c1",
  object: "chat.completion",
  created: 1,
  model: "gpt-x",
  choices: [{ index: 0, message: { role: "assistant", content: text }, finish_reason: "stop" }],
  usage: chatUsage(usage),
});

export const responseObject = (text: string, usage: OpenAiUsage) => ({
  id: "resp_1",
  object: "response",
  created_at: 1,
  status: "completed",
  model: "gpt-x",
  output: [
    { id: "msg_1", type: "message", role: "assistant", status: "completed", content: [{ type: "output_text", text, annotations: [] }] },
  ],
  usage: {
    input_tokens: usage.input,
    input_tokens_details: { cached_tokens: usage.cached ?? 0 },
    output_tokens: usage.output,
    output_tokens_details: { reasoning_tokens: usage.reasoning ?? 0 },
    total_tokens: usage.input + usage.output,
  },
});

export const responseEvents = (text: string, usage: OpenAiUsage) => {
  const done = responseObject(text, usage);
  const [item] = done.output;
  const part = { type: "output_text", text: "", annotations: [] };
  const events = [
    { type: "response.created", response: { ...done, status: "in_progress", output: [], usage: null } },
    { type: "response.output_item.added", output_index: 0, item: { ...item, status: "in_progress", content: [] } },
    { type: "response.content_part.added", item_id: "msg_1", output_index: 0, content_index: 0, part },
    ...[...text.matchAll(/.{1,7}/gs)].map(([delta]) => ({
      type: "response.output_text.delta",
      item_id: "msg_1",
      output_index: 0,
      content_index: 0,
      delta,
      logprobs: [],
    })),
    { type: "response.output_text.done", item_id: "msg_1", output_index: 0, content_index: 0, text, logprobs: [] },
    { type: "response.content_part.done", item_id: "msg_1", output_index: 0, content_index: 0, part: { ...part, text } },
    { type: "response.output_item.done", output_index: 0, item },
    { type: "response.completed", response: done },
  ];
  return events.map((event, index) => ({ ...event, sequence_number: index }));
};
