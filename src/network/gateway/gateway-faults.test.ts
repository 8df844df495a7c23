import { describe, expect, test } from "vitest";
import { CANARY, openGatewayRig } from "../../../test/support/gateway-rig.ts";
import {
  anthropicEvents,
  anthropicMessage,
  chatEvents,
  sendEvents,
  sendJson,
  sse,
  type UpstreamReply,
} from "../../../test/support/model-upstream.ts";
import { begin, CHAT, claude, gpt, MESSAGES, nothing } from "./testing-gateway.ts";

describe("the key", () => {
  const base64 = Buffer.from(`x:${CANARY}`).toString("base64");
  const echo = `You sent ${CANARY}, that is ${base64}.`;
  test.each([
    ["a refusal", sendJson(401, { error: { message: echo } }, { "x-request-id": CANARY })],
    ["an answer", sendJson(200, anthropicMessage(echo, { input: 1, output: 1 }), { "request-id": CANARY })],
    ["a stream", sendEvents(anthropicEvents(echo, { input: 1, output: 1 }).concat([{ type: "ping", echo }] as never))],
    ["an error event", sendEvents([{ type: "error", error: { type: "api_error", message: echo } }])],
  ])("is redacted in %s that repeats it", async (_name, reply) => {
    await using rig = await openGatewayRig({ "/v1/messages": reply });
    const answer = await rig.post(MESSAGES, claude());
    const seen = JSON.stringify([...answer.headers]) + (await answer.text());
    await rig.eventsAre(1);
    const everywhere = seen + JSON.stringify(rig.events);
    expect(rig.upstream.calls[0]?.headers["x-api-key"]).toBe(CANARY);
    expect(everywhere).toContain("You sent");
    expect(everywhere).not.toContain(CANARY);
    expect(everywhere).not.toContain(base64.slice(4, -4));
  });

  test("is redacted even if it arrives in pieces", async () => {
    const cut: UpstreamReply = async (response) => {
      response.writeHead(200, { "content-type": "application/json" });
      const text = JSON.stringify({ ...anthropicMessage(`<${CANARY}>`, { input: 1, output: 1 }), end: CANARY.slice(0, 9) });
      for (const letter of text) await new Promise<void>((resolve) => void response.write(letter, () => setImmediate(resolve)));
      response.end();
    };
    await using rig = await openGatewayRig({ "/v1/messages": cut });
    const answer = (await (await rig.post(MESSAGES, claude())).json()) as { content: { text: string }[]; end: string };
    expect(answer.content[0]?.text).toBe(`<${"*".repeat(CANARY.length)}>`);
    expect(answer.end).toBe(CANARY.slice(0, 9));
  });

  test("is reported without details inside if the host cannot get it", async () => {
    const key = async () => {
      throw new Error("the vault says hunter2");
    };
    await using rig = await openGatewayRig({}, { upstreams: { anthropic: { key } } });
    const answer = await rig.post(MESSAGES, claude());
    expect([answer.status, await answer.text()]).toEqual([502, expect.not.stringContaining("vault")]);
    expect(rig.events[0]?.data.error).toBe("the host could not get its key for anthropic: the vault says [secret PASSWORD]");
  });
});

describe("upstream faults", () => {
  test("passes on a refusal and its retry advice, without secrets", async () => {
    const overloaded = { type: "error", error: { type: "overloaded_error", message: "hunter2 is busy" } };
    await using rig = await openGatewayRig({
      "/v1/messages": sendJson(529, overloaded, { "retry-after": "7", "set-cookie": "a=b", "openai-organization": "me" }),
    });
    const answer = await rig.post(MESSAGES, claude());
    expect([answer.status, answer.headers.get("retry-after"), answer.headers.get("set-cookie")]).toEqual([529, "7", null]);
    expect(answer.headers.get("openai-organization")).toBeNull();
    expect(await answer.json()).toEqual({ type: "error", error: { type: "overloaded_error", message: "[secret PASSWORD] is busy" } });
    await rig.eventsAre(1);
    expect(rig.events[0]?.data).toMatchObject({
      status: 529,
      costUsd: 0,
      usage: { inputTokens: 0 },
      error: expect.stringContaining("is busy"),
    });
  });

  test("answers 502 for an unreachable upstream, and charges nothing", async () => {
    const baseUrl = "http://127.0.0.1:1";
    await using rig = await openGatewayRig(
      {},
      { upstreams: { anthropic: { baseUrl, key: async () => CANARY }, openai: { baseUrl, key: async () => "" } } },
    );
    const one = await rig.post(MESSAGES, claude());
    expect([one.status, await one.json()]).toMatchObject([
      502,
      { type: "error", error: { type: "api_error", message: expect.stringContaining("ECONNREFUSED") } },
    ]);
    const other = await rig.post(CHAT, gpt());
    expect([other.status, await other.json()]).toMatchObject([502, { error: { type: "server_error" } }]);
    await rig.eventsAre(2);
    expect(rig.events.map(({ data }) => [data.status, data.costUsd])).toEqual([
      [502, 0],
      [502, 0],
    ]);
  });

  test("neither follows nor passes on a redirect", async () => {
    await using rig = await openGatewayRig({ "/v1/messages": (response) => void response.writeHead(307, { location: "/v1/other" }).end() });
    const answer = await rig.post(MESSAGES, claude());
    expect([answer.status, answer.headers.get("location")]).toEqual([502, null]);
    expect(rig.upstream.calls).toHaveLength(1);
  });

  test("answers 502 for a malformed model list or an unrequested encoding", async () => {
    await using rig = await openGatewayRig(
      {
        "/v1/models": (response) => void response.writeHead(200).end("<html>"),
        "/v1/messages": (response) => void response.writeHead(200, { "content-encoding": "gzip" }).end("x"),
      },
      { config: { wires: ["anthropic"], models: ["priced-*"] } },
    );
    expect((await fetch(`${rig.url}/anthropic/v1/models`)).status).toBe(502);
    expect((await rig.post(MESSAGES, claude())).status).toBe(502);
  });

  test("answers 504 if no answer starts, and charges an estimate", async () => {
    await using rig = await openGatewayRig({ "/v1/messages": nothing }, { limits: { answerMs: 50 } });
    const answer = await rig.post(MESSAGES, claude());
    expect([answer.status, await answer.json()]).toMatchObject([504, { type: "error" }]);
    await rig.upstream.calls[0]?.aborted;
    expect(rig.events[0]?.data.usage.inputTokens).toBeGreaterThan(0);
    expect(rig.events[0]?.data.error).toContain("estimated");
  });

  test.each([
    ["breaks off", {}, (response: Parameters<UpstreamReply>[0]) => void setImmediate(() => response.destroy())],
    ["stalls", { stallMs: 60 }, () => undefined],
  ])("meters a stream that %s, and ends it with an error", async (_name, limits, then) => {
    const events = anthropicEvents("The beginning of a long answer.", { input: 10, output: 99 }).slice(0, 5);
    await using rig = await openGatewayRig({ "/v1/messages": begin(events, then) }, { limits });
    const answer = await rig.post(MESSAGES, claude({ stream: true }));
    const pieces: string[] = [];
    const ended = (async () => {
      for await (const piece of answer.body as unknown as AsyncIterable<Uint8Array>) pieces.push(Buffer.from(piece).toString());
    })();
    await expect(ended).rejects.toThrow();
    expect(pieces.join("")).toBe(`${events.map(sse).join("")}${pieces.join("").match(/event: error\n.*\n\n$/)?.[0]}`);
    await rig.eventsAre(1);
    const { usage, error, costUsd, answered } = rig.events[0]?.data ?? {};
    expect([usage?.inputTokens, usage?.outputTokens, costUsd]).toEqual([10, 6, 22]);
    expect([answered, error]).toEqual(["The beginning of a lo", expect.stringContaining("estimated")]);
  });

  test("passes on and records an error event within a stream", async () => {
    const events = [...chatEvents("Well", null).slice(0, 2), { error: { message: "server had hunter2", type: "server_error" } }];
    await using rig = await openGatewayRig({ "/v1/chat/completions": sendEvents(events) });
    expect(await (await rig.post(CHAT, gpt({ stream: true }))).text()).toBe(events.map(sse).join(""));
    await rig.eventsAre(1);
    expect(rig.events[0]?.data.error).toBe("server had [secret PASSWORD]; its tokens are estimated");
  });

  test("repeats a call on a kept-alive connection that the upstream closed", async () => {
    const seen = new WeakSet<object>();
    let resets = 0;
    const reply: UpstreamReply = (response, call) => {
      const { socket } = response;
      if (socket && !seen.has(socket)) {
        seen.add(socket);
        return sendJson(200, anthropicMessage("ok", { input: 1, output: 1 }))(response, call);
      }
      resets += 1;
      socket?.resetAndDestroy();
    };
    await using rig = await openGatewayRig({ "/v1/messages": reply });
    for (let i = 0; i < 3; i++) expect((await rig.post(MESSAGES, claude())).status).toBe(200);
    expect(resets).toBeGreaterThan(0);
  });
});

test("ends and records calls when the gateway closes", async () => {
  const rig = await openGatewayRig({ "/v1/messages": nothing });
  const call = rig.post(MESSAGES, claude());
  while (rig.upstream.calls.length === 0) await new Promise((resolve) => setImmediate(resolve));
  await rig[Symbol.asyncDispose]();
  expect(rig.events[0]?.data.error).toContain("the gateway was closed");
  await call.then(
    (answer) => expect(answer.status).toBe(499),
    () => undefined,
  );
});
