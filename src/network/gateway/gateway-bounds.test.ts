import { describe, expect, test } from "vitest";
import { openGatewayRig } from "../../../test/support/gateway-rig.ts";
import { anthropicMessage, chatCompletion, sendJson, type UpstreamCall, type UpstreamReply } from "../../../test/support/model-upstream.ts";

const MESSAGES = "/anthropic/v1/messages";
const CHAT = "/openai/v1/chat/completions";
const ask = (more: object = {}) => ({ model: "priced-x", max_tokens: 10, messages: [{ role: "user", content: "Say it." }], ...more });
const ok = sendJson(200, anthropicMessage("ok", { input: 10, output: 20 }));
const replies = { "/v1/messages": ok, "/v1/chat/completions": sendJson(200, chatCompletion("ok", { input: 10, output: 20 })) };

/** Creates replies that wait until the test releases them, in order. */
function createHeldReplies(): { reply: UpstreamReply; arrived(count: number): Promise<void>; release(): void; calls: UpstreamCall[] } {
  const calls: UpstreamCall[] = [];
  const waiting: (() => void)[] = [];
  let came = Promise.withResolvers<void>();
  return {
    calls,
    async reply(response, call) {
      calls.push(call);
      const turn = new Promise<void>((resolve) => waiting.push(resolve));
      came.resolve();
      came = Promise.withResolvers();
      await turn;
      await ok(response, call);
    },
    async arrived(count) {
      while (calls.length < count) await came.promise;
    },
    release: () => waiting.shift()?.(),
  };
}
const someTurns = async () => {
  for (let i = 0; i < 20; i++) await new Promise((resolve) => setImmediate(resolve));
};

describe("allowed models", () => {
  test("must match a pattern, with or without the wire, fallbacks included", async () => {
    await using rig = await openGatewayRig(replies, { config: { wires: ["anthropic", "openai"], models: ["priced-*", "openai/o*"] } });
    expect((await rig.post(MESSAGES, ask())).status).toBe(200);
    expect((await rig.post(CHAT, ask({ model: "o3" }))).status).toBe(200);
    const other = await rig.post(MESSAGES, ask({ model: "o3" }));
    const message = 'The model "o3" is not allowed; allowed models: priced-*, openai/o*.';
    expect([other.status, other.headers.get("x-should-retry"), await other.json()]).toEqual([
      400,
      "false",
      { type: "error", error: { type: "invalid_request_error", message } },
    ]);
    const chat = await rig.post(CHAT, ask({ model: "x", models: ["priced-x"] }));
    expect([chat.status, await chat.json()]).toMatchObject([400, { error: { code: "model_not_found" } }]);
    for (const more of [{ models: ["gpt-4"] }, { fallbacks: [{ model: "gpt-4" }] }, { models: [null] }]) {
      expect((await rig.post(CHAT, ask(more))).status).toBe(400);
    }
    // A duplicate key must mean the same here as upstream.
    const twice = await rig.post(CHAT, '{"model":"priced-x","model":"gpt-4","messages":[]}');
    expect(twice.status).toBe(400);
    expect((await fetch(`${rig.url}/openai/v1/models/gpt-4`)).status).toBe(400);
    expect(rig.upstream.calls).toHaveLength(2);
    await rig.eventsAre(9);
    expect(rig.events[2]?.data).toMatchObject({
      model: "o3",
      status: 400,
      asked: "Say it.",
      error: 'the model "o3" is not allowed; allowed models: priced-*, openai/o*',
    });
  });
});

describe("a limit on cost or tokens", () => {
  const wires = ["anthropic", "openai"] as const;
  test.each([
    ["cost", { costUsdMax: 100 }, "$100.0000; the gateway's limit is $100"],
    ["tokens", { tokensMax: 60 }, "60 tokens; the gateway's limit is 60"],
  ])("refuses calls above the %s limit with a status that no client retries", async (_name, bound, words) => {
    await using rig = await openGatewayRig(replies, {
      config: { wires: [...wires], ...bound },
      howToRaise: "Run caisson again with more.",
    });
    // Ten input and twenty output tokens each: thirty tokens, fifty dollars.
    for (let i = 0; i < 2; i++) await (await rig.post(MESSAGES, ask())).text();
    const one = await rig.post(MESSAGES, ask());
    expect([one.status, await one.json()]).toMatchObject([
      400,
      { error: { type: "invalid_request_error", message: expect.stringContaining(words) } },
    ]);
    const other = await rig.post(CHAT, ask());
    expect([other.status, other.headers.get("x-should-retry")]).toEqual([400, "false"]);
    expect(await other.json()).toMatchObject({
      error: { code: "insufficient_quota", message: expect.stringContaining("Run caisson again") },
    });
    expect((await rig.post("/v1/messages/count_tokens", ask())).status).toBe(404);
    expect(rig.upstream.calls).toHaveLength(3);
    expect(rig.events.map(({ data }) => [data.status, data.costUsd])).toEqual([
      [200, 50],
      [200, 50],
      [400, 0],
      [400, 0],
      [404, 0],
    ]);
  });

  test("includes what the log counted before, and the run's own budget", async () => {
    await using before = await openGatewayRig(replies, {
      config: { wires: [...wires], tokensMax: 60 },
      readSpent: () => ({ costUsd: 0, tokens: 60 }),
    });
    expect((await before.post(MESSAGES, ask())).status).toBe(400);
    const left = { costUsdLeft: 1 as number | null, tokensLeft: null };
    await using run = await openGatewayRig(replies, { budget: () => left });
    expect((await run.post(MESSAGES, ask())).status).toBe(200);
    left.costUsdLeft = -49;
    const refused = await run.post(MESSAGES, ask());
    expect([refused.status, await refused.text()]).toEqual([400, expect.stringContaining("$50.0000 and 30 tokens")]);
  });

  test("refuses a model of unknown price if cost is limited", async () => {
    await using rig = await openGatewayRig(replies, { config: { wires: [...wires], costUsdMax: 100 } });
    const answer = await rig.post(MESSAGES, ask({ model: "claude-x" }));
    expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining("price of claude-x is not known")]);
  });

  test("makes parallel calls wait for the budget that earlier ones may still use", async () => {
    const upstream = createHeldReplies();
    await using rig = await openGatewayRig({ "/v1/messages": upstream.reply }, { config: { wires: [...wires], tokensMax: 100 } });
    // Each call may use about sixty tokens and uses thirty. The third waits for the first two, and the fifth finds the
    // limit reached.
    const answers = [1, 2, 3, 4, 5].map(() => rig.post(MESSAGES, ask({ max_tokens: 55 })));
    await upstream.arrived(2);
    await someTurns();
    expect(upstream.calls).toHaveLength(2);
    for (let i = 1; i <= 4; i++) {
      upstream.release();
      if (i < 4) await upstream.arrived(Math.min(4, i + 1));
    }
    const statuses = (await Promise.all(answers)).map(({ status }) => status).sort();
    expect(statuses).toEqual([200, 200, 200, 200, 400]);
    await rig.eventsAre(5);
    const used = rig.events.reduce((sum, { data }) => sum + data.usage.inputTokens + data.usage.outputTokens, 0);
    expect(used).toBe(120);
  });
});

describe("parallel calls", () => {
  test("run up to a limit, then wait in turn, then get an error", async () => {
    const upstream = createHeldReplies();
    const limits = { callsMax: 2, waitingMax: 1 };
    await using rig = await openGatewayRig({ "/v1/messages": upstream.reply }, { limits });
    const first = [rig.post(MESSAGES, ask()), rig.post(MESSAGES, ask())];
    await upstream.arrived(2);
    const third = rig.post(MESSAGES, ask());
    const fourth = rig.post(MESSAGES, ask());
    const refused = await Promise.race([third, fourth]);
    expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "5"]);
    expect(await refused.json()).toMatchObject({ error: { type: "rate_limit_error" } });
    expect(upstream.calls).toHaveLength(2);
    upstream.release();
    await upstream.arrived(3);
    upstream.release();
    upstream.release();
    expect((await Promise.all([...first, third, fourth])).map(({ status }) => status).sort()).toEqual([200, 200, 200, 429]);
  });

  test("leave the queue when they time out or are cancelled", async () => {
    const upstream = createHeldReplies();
    await using rig = await openGatewayRig({ "/v1/messages": upstream.reply }, { limits: { callsMax: 1, waitingMs: 50 } });
    const first = rig.post(MESSAGES, ask());
    await upstream.arrived(1);
    expect((await rig.post(MESSAGES, ask())).status).toBe(429);
    const controller = new AbortController();
    const cancelledCall = rig.post(MESSAGES, ask(), { signal: controller.signal });
    setImmediate(() => controller.abort());
    await expect(cancelledCall).rejects.toThrow();
    upstream.release();
    expect((await first).status).toBe(200);
    const last = rig.post(MESSAGES, ask());
    await upstream.arrived(2);
    upstream.release();
    expect((await last).status).toBe(200);
  });

  test("share a limit on the size of their bodies", async () => {
    const upstream = createHeldReplies();
    await using rig = await openGatewayRig({ "/v1/messages": upstream.reply }, { limits: { bodiesBytesMax: 3000 } });
    const long = ask({ metadata: { fill: "x".repeat(2000) } });
    const first = rig.post(MESSAGES, long);
    await upstream.arrived(1);
    expect((await rig.post(MESSAGES, long)).status).toBe(429);
    upstream.release();
    expect((await first).status).toBe(200);
    const again = rig.post(MESSAGES, long);
    await upstream.arrived(2);
    upstream.release();
    expect((await again).status).toBe(200);
  });
});

describe("provider-side features", () => {
  const image = { role: "user", content: [{ type: "image", source: { type: "url", url: "https://evil.example/?data" } }] };
  test("are refused unless allowed, because they bypass the network policy", async () => {
    await using rig = await openGatewayRig(replies);
    const answer = await rig.post(MESSAGES, ask({ tools: [{ type: "web_fetch_20250910", name: "web_fetch" }] }));
    expect([answer.status, await answer.text()]).toEqual([400, expect.stringContaining("web_fetch_20250910")]);
    expect((await rig.post(MESSAGES, ask({ messages: [image] }))).status).toBe(400);
    const hidden = { type: "additional_tools", role: "developer", tools: [{ type: "web_search" }] };
    const codex = await rig.post("/openai/v1/responses", { model: "priced-x", input: [hidden] });
    expect([codex.status, codex.headers.get("x-should-retry"), await codex.json()]).toMatchObject([
      400,
      "false",
      { error: { type: "invalid_request_error", param: "input[0].tools[0]", message: expect.stringContaining("web_search") } },
    ]);
    expect(rig.upstream.calls).toEqual([]);
    await using open = await openGatewayRig(replies, { hostedTools: () => true });
    expect((await open.post(MESSAGES, ask({ messages: [image] }))).status).toBe(200);
  });
});

describe("recorded calls", () => {
  test("keep the beginning of long texts, redacted before the cut", async () => {
    const long = `${"a".repeat(16_380)}hunter2${"b".repeat(100_000)}`;
    await using rig = await openGatewayRig({ "/v1/messages": sendJson(200, anthropicMessage(long, { input: 1, output: 1 })) });
    await (await rig.post(MESSAGES, ask({ messages: [{ role: "user", content: long }] }))).text();
    await rig.eventsAre(1);
    const { asked: prompt, answered } = rig.events[0]?.data ?? {};
    expect([prompt, answered]).toEqual([`${"a".repeat(16_380)}[sec`, `${"a".repeat(16_380)}[sec`]);
  });

  test("block further calls while they cannot be written", async () => {
    let full = true;
    const written: unknown[] = [];
    await using rig = await openGatewayRig(replies, {
      emit(event) {
        if (full) throw new Error("no space");
        written.push(event);
      },
    });
    expect((await rig.post(MESSAGES, ask())).status).toBe(200);
    expect((await rig.post(MESSAGES, ask())).status).toBe(502);
    full = false;
    expect((await rig.post(MESSAGES, ask())).status).toBe(200);
    expect(rig.upstream.calls).toHaveLength(2);
    expect(written).toHaveLength(3);
  });

  test("are limited in rate if they cost nothing", async () => {
    await using rig = await openGatewayRig(replies, {
      limits: { freeEventsPerMinute: 3 },
      config: { wires: ["anthropic"], models: ["priced-*"] },
    });
    for (let i = 0; i < 5; i++) await rig.post(MESSAGES, ask({ model: "other" }));
    expect(rig.events).toHaveLength(3);
    expect((await rig.post(MESSAGES, ask())).status).toBe(200);
    await rig.eventsAre(4);
  });
});
