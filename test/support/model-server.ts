import { createServer, type IncomingHttpHeaders, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface ChatRequest {
  model: string;
  stream: boolean;
  messages: {
    role: string;
    content: unknown;
    tool_calls?: { id: string; function: { name: string; arguments: string } }[];
    tool_call_id?: string;
  }[];
  tools?: { type: string; function: { name: string; description: string; parameters: Record<string, unknown> } }[];
}

export type Reply =
  | { say?: string; calls?: readonly { name: string; arguments: string }[]; usage?: { prompt: number; completion: number } }
  | { status: number; body?: string; headers?: Record<string, string> }
  /** Starts a response and never continues. */
  | { stall: true }
  /** Sends these bytes unchanged. */
  | { raw: string }
  /** Sends these bytes, then cuts the connection in the middle of the response. */
  | { cutAfter: string };

export interface ModelServer extends AsyncDisposable {
  /** The value for OPENAI_BASE_URL. */
  url: string;
  requests: ChatRequest[];
  /** The headers of each request. */
  headers: IncomingHttpHeaders[];
}

/** Starts a server with OpenAI's streaming chat protocol. `reply` gets each request and the number of earlier ones. */
export async function startModelServer(reply: (request: ChatRequest, number: number) => Reply): Promise<ModelServer> {
  const requests: ChatRequest[] = [];
  const headers: IncomingHttpHeaders[] = [];
  const server = createServer(async (incoming, response) => {
    const pieces: Buffer[] = [];
    for await (const piece of incoming) pieces.push(piece as Buffer);
    const request = JSON.parse(Buffer.concat(pieces).toString("utf8")) as ChatRequest;
    requests.push(request);
    headers.push(incoming.headers);
    await answer(response, reply(request, requests.length - 1));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    requests,
    headers,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

async function answer(response: ServerResponse, reply: Reply): Promise<void> {
  if ("status" in reply) {
    response.writeHead(reply.status, { "content-type": "application/json", ...reply.headers });
    response.end(reply.body ?? JSON.stringify({ error: { message: `status ${reply.status}` } }));
    return;
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  if ("cutAfter" in reply) {
    response.flushHeaders();
    // Written first, so the data arrives before the connection closes.
    response.write(reply.cutAfter, () => response.socket?.destroy());
    return;
  }
  if ("raw" in reply) {
    response.end(reply.raw);
    return;
  }
  const send = (delta: object, finish: string | null = null) =>
    response.write(
      `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`,
    );
  send({ role: "assistant", content: "" });
  if ("stall" in reply) return;
  for (const word of reply.say?.match(/\s*\S+/g) ?? []) send({ content: word });
  (reply.calls ?? []).forEach((call, index) => {
    send({ tool_calls: [{ index, id: `call_${index}`, type: "function", function: { name: call.name, arguments: "" } }] });
    // In pieces, as real servers send them.
    for (const piece of call.arguments.match(/[\s\S]{1,7}/g) ?? []) send({ tool_calls: [{ index, function: { arguments: piece } }] });
  });
  send({}, reply.calls ? "tool_calls" : "stop");
  const { prompt, completion } = reply.usage ?? { prompt: 100, completion: 10 };
  response.write(
    `data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [], usage: { prompt_tokens: prompt, completion_tokens: completion, total_tokens: prompt + completion } })}\n\n`,
  );
  response.end("data: [DONE]\n\n");
}
