import { once } from "node:events";
import { connect } from "node:net";
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

const claude = (more: object = {}) => ({ model: "priced-x", max_tokens: 100, messages: [{ role: "user", content: "Say it." }], ...more });
const gpt = (more: object = {}) => ({ model: "priced-x", messages: [{ role: "user", content: "Say it." }], ...more });
const MESSAGES = "/anthropic/v1/messages";
const CHAT = "/openai/v1/chat/completions";

/** Sends the first events and then does the rest. */
const begin =
  (events: readonly (object | "[DONE]")[], then: UpstreamReply): UpstreamReply =>
  (response, call) => {
    response.writeHead(200, { "content-type": "text/event-stream" });
    response.write(events.map(sse).join(""));
    void then(response, call);
  };
const nothing: UpstreamReply = () => undefined;

describe("the key", () => {
  const base64 = Buffer.from(`x:${CANARY}`).toString("base64");
  const echo = `You sent ${CANARY}, that is ${base64}.`;
  test.each([
    ["a refusal", sendJson(401, { error: { message: echo } }, { "x-request-id": CANARY })],
    ["an answer", sendJson(200, anthropicMessage(echo, { input: 1, output: 1 }), { "request-id": CANARY })],
    ["a stream", sendEvents(anthropicEvents(echo, { input: 1, output: 1 }).concat([{ type: "ping", echo }] as never))],
    ["an event of error", sendEvents([{ type: "error", error: { type: "api_error", message: echo } }])],
  ])("comes back in %s that the upstream made of it, and goes no further", async (_name, reply) => {
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

  test("is found when it comes in pieces", async () => {
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

  test("that cannot be had is no detail for the inside", async () => {
    const key = async () => {
      throw new Error("the vault says hunter2");
    };
    await using rig = await openGatewayRig({}, { upstreams: { anthropic: { key } } });
    const answer = await rig.post(MESSAGES, claude());
    expect([answer.status, await answer.text()]).toEqual([502, expect.not.stringContaining("vault")]);
    expect(rig.events[0]?.data.error).toBe("the host could not get its key for anthropic: the vault says [secret PASSWORD]");
  });
});

describe("the upstream", () => {
  test("refuses: status and words are passed on, without secrets; what it says about trying again, too", async () => {
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

  test("is not there: 502 in the wire's shape, and nothing is charged", async () => {
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

  test("sends elsewhere: a redirect is not followed and not passed on", async () => {
    await using rig = await openGatewayRig({ "/v1/messages": (response) => void response.writeHead(307, { location: "/v1/other" }).end() });
    const answer = await rig.post(MESSAGES, claude());
    expect([answer.status, answer.headers.get("location")]).toEqual([502, null]);
    expect(rig.upstream.calls).toHaveLength(1);
  });

  test("sends nonsense for a list of models, or an answer in a coding that nobody asked for", async () => {
    await using rig = await openGatewayRig(
      {
        "/v1/models": (response) => void response.writeHead(200).end("<html>"),
        "/v1/messages": (response) => void response.writeHead(200, { "content-encoding": "gzip" }).end("x"),
      },
      { spec: { wires: ["anthropic"], models: ["priced-*"] } },
    );
    expect((await fetch(`${rig.url}/anthropic/v1/models`)).status).toBe(502);
    expect((await rig.post(MESSAGES, claude())).status).toBe(502);
  });

  test("never begins: 504, and it is taken to have cost something", async () => {
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
  ])(
    "%s in the middle of a stream: an error the client can read, and no proper end; what was heard is metered",
    async (_name, limits, then) => {
      const events = anthropicEvents("The beginning of a long answer.", { input: 10, output: 99 }).slice(0, 5);
      await using rig = await openGatewayRig({ "/v1/messages": begin(events, then) }, { limits });
      const answer = await rig.post(MESSAGES, claude({ stream: true }));
      const heard: string[] = [];
      const ended = (async () => {
        for await (const piece of answer.body as unknown as AsyncIterable<Uint8Array>) heard.push(Buffer.from(piece).toString());
      })();
      await expect(ended).rejects.toThrow();
      expect(heard.join("")).toBe(`${events.map(sse).join("")}${heard.join("").match(/event: error\n.*\n\n$/)?.[0]}`);
      await rig.eventsAre(1);
      const { usage, error, costUsd, answered } = rig.events[0]?.data ?? {};
      expect([usage?.inputTokens, usage?.outputTokens, costUsd]).toEqual([10, 6, 22]);
      expect([answered, error]).toEqual(["The beginning of a lo", expect.stringContaining("estimated")]);
    },
  );

  test("says in the middle of a stream that it failed: passed on and recorded", async () => {
    const events = [...chatEvents("Well", null).slice(0, 2), { error: { message: "server had hunter2", type: "server_error" } }];
    await using rig = await openGatewayRig({ "/v1/chat/completions": sendEvents(events) });
    expect(await (await rig.post(CHAT, gpt({ stream: true }))).text()).toBe(events.map(sse).join(""));
    await rig.eventsAre(1);
    expect(rig.events[0]?.data.error).toBe("server had [secret PASSWORD]; its tokens are estimated");
  });

  test("closed a kept connection when the next call comes on it: that one does not notice", async () => {
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

describe("the program inside", () => {
  test("hangs up: the upstream is told at once, and what is known is metered", async () => {
    const events = chatEvents("A word, and then nothing more ever.", null).slice(0, 4);
    await using rig = await openGatewayRig({ "/v1/chat/completions": begin(events, nothing) });
    const controller = new AbortController();
    const answer = await rig.post(CHAT, gpt({ stream: true }), { signal: controller.signal });
    await answer.body?.getReader().read();
    controller.abort();
    await rig.upstream.calls[0]?.aborted;
    await rig.eventsAre(1);
    const { data } = rig.events[0] ?? {};
    expect(data).toMatchObject({
      status: 200,
      answered: "A word, and then nothi".slice(0, data?.answered.length),
      error: expect.stringContaining("hung up"),
    });
    expect(data?.usage.outputTokens).toBeGreaterThan(0);
  });

  test("hangs up before there is an answer", async () => {
    await using rig = await openGatewayRig({ "/v1/messages": nothing });
    const controller = new AbortController();
    const asked = rig.post(MESSAGES, claude(), { signal: controller.signal });
    asked.catch(() => undefined);
    while (rig.upstream.calls.length === 0) await new Promise((resolve) => setImmediate(resolve));
    controller.abort();
    await rig.eventsAre(1);
    expect(rig.events[0]?.data).toMatchObject({ status: 499, error: expect.stringContaining("estimated") });
    expect(rig.events[0]?.data.usage.inputTokens).toBeGreaterThan(0);
  });

  test.each([
    ["no JSON", "{", 400],
    ["a list", "[]", 400],
    ["no model", "{}", 400],
    ["a model that is no name", '{"model":7}', 400],
    ["bytes that are no text", new Uint8Array([0x7b, 0xff, 0x7d]), 400],
    ["too much", JSON.stringify(claude({ more: "x".repeat(4_000_000) })), 413],
    ["an answer for later", JSON.stringify({ model: "m", background: true }), 400],
  ])("sends %s: refused, recorded, and the connection goes on", async (_name, body, status) => {
    await using rig = await openGatewayRig(
      { "/v1/messages": sendJson(200, anthropicMessage("ok", { input: 1, output: 1 })) },
      { limits: { bodyBytesMax: 1000 } },
    );
    const answer = await fetch(`${rig.url}${MESSAGES}`, { method: "POST", body });
    expect([answer.status, await answer.json()]).toMatchObject([status, { type: "error" }]);
    expect(rig.upstream.calls).toEqual([]);
    expect((await rig.post(MESSAGES, claude())).status).toBe(200);
    await rig.eventsAre(2);
    expect(rig.events[0]?.data).toMatchObject({ status, costUsd: 0, error: expect.any(String) });
  });

  test("sends too much on a connection that it wants to use again: the rest is read away, and the next request is answered", async () => {
    await using rig = await openGatewayRig({}, { limits: { bodyBytesMax: 1000 } });
    const socket = connect(Number(new URL(rig.url).port), "127.0.0.1");
    let heard = "";
    socket.on("data", (data) => {
      heard += data;
    });
    const long = "x".repeat(4_000_000);
    socket.write(`POST ${MESSAGES} HTTP/1.1\r\nhost: x\r\ncontent-length: ${long.length}\r\n\r\n${long}`);
    socket.end("GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    await once(socket, "close");
    expect(heard).toMatch(/^HTTP\/1.1 413 .*HTTP\/1.1 200 .*Caisson's model gateway/s);
  });

  test("sends a coded body, or no HTTP at all", async () => {
    await using rig = await openGatewayRig({});
    expect((await rig.post(MESSAGES, claude(), { headers: { "content-encoding": "zstd" } })).status).toBe(415);
    const socket = connect(Number(new URL(rig.url).port), "127.0.0.1");
    socket.end("\x16\x03\x01 not http\r\n\r\n");
    const pieces: Buffer[] = [];
    for await (const piece of socket) pieces.push(piece as Buffer);
    expect(Buffer.concat(pieces).toString()).toMatch(/^HTTP\/1.1 400 /);
  });

  test("is slow to send, or sends nothing: dropped", async () => {
    await using rig = await openGatewayRig({}, { limits: { requestMs: 50, connectionIdleMs: 50 } });
    const port = Number(new URL(rig.url).port);
    const idle = connect(port, "127.0.0.1");
    const slow = connect(port, "127.0.0.1");
    slow.write(`POST ${MESSAGES} HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{`);
    const closed = [idle, slow].map(
      (socket) =>
        new Promise((resolve) =>
          socket
            .on("error", () => undefined)
            .once("close", resolve)
            .resume(),
        ),
    );
    await Promise.all(closed);
    expect(rig.events[0]?.data.error).toContain("too long to come");
  });

  test("reads slowly: the upstream is not read faster", async () => {
    let written = 0;
    const chunk = sse({ type: "ping", fill: "x".repeat(64 * 1024) });
    const flood: UpstreamReply = async (response, call) => {
      response.writeHead(200, { "content-type": "text/event-stream" });
      let given = false;
      void call.aborted.then(() => {
        given = true;
      });
      while (!given) {
        written += chunk.length;
        if (!response.write(chunk)) await Promise.race([new Promise((resolve) => response.once("drain", resolve)), call.aborted]);
      }
    };
    await using rig = await openGatewayRig({ "/v1/messages": flood }, { limits: { stallMs: 500 } });
    const socket = connect(Number(new URL(rig.url).port), "127.0.0.1");
    const body = JSON.stringify(claude({ stream: true }));
    socket.write(`POST ${MESSAGES} HTTP/1.1\r\nhost: x\r\ncontent-length: ${body.length}\r\n\r\n${body}`);
    // Nobody reads; the gateway gives the call up when nothing moves any more.
    await rig.eventsAre(1);
    socket.destroy();
    expect(rig.events[0]?.data.error).toContain("nothing moved");
    expect(written).toBeLessThan(64 * 2 ** 20);
  });

  test("opens more connections than are served", async () => {
    await using rig = await openGatewayRig({}, { limits: { connectionsMax: 2 } });
    const port = Number(new URL(rig.url).port);
    const open = [1, 2].map(() => connect(port, "127.0.0.1"));
    await Promise.all(open.map((socket) => new Promise((resolve) => socket.once("connect", resolve))));
    await expect(fetch(rig.url)).rejects.toThrow();
    for (const socket of open) socket.destroy();
  });
});

test("when the gateway closes, calls end and are recorded", async () => {
  const rig = await openGatewayRig({ "/v1/messages": nothing });
  const asked = rig.post(MESSAGES, claude());
  while (rig.upstream.calls.length === 0) await new Promise((resolve) => setImmediate(resolve));
  await rig[Symbol.asyncDispose]();
  expect(rig.events[0]?.data.error).toContain("the gateway was closed");
  await asked.then(
    (answer) => expect(answer.status).toBe(499),
    () => undefined,
  );
});
