import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import type { LanguageModelV4, LanguageModelV4StreamPart } from "@ai-sdk/provider";
import { describe, expect, test } from "vitest";
import { openGatewayRig } from "../../../test/support/gateway-rig.ts";
import {
  anthropicEvents,
  anthropicMessage,
  chatCompletion,
  chatEvents,
  responseEvents,
  responseObject,
  sendEvents,
  sendJson,
  type UpstreamReply,
} from "../../../test/support/model-upstream.ts";

const usage = { input: 10, output: 20 };
const either =
  (stream: UpstreamReply, whole: UpstreamReply): UpstreamReply =>
  (response, call) =>
    (call.body as { stream?: boolean } | null)?.stream ? stream(response, call) : whole(response, call);

const replies = {
  "/v1/messages": either(sendEvents(anthropicEvents("Hello there.", usage)), sendJson(200, anthropicMessage("Hello there.", usage))),
  "/v1/chat/completions": either(sendEvents(chatEvents("Hello there.", usage)), sendJson(200, chatCompletion("Hello there.", usage))),
  "/v1/responses": either(sendEvents(responseEvents("Hello there.", usage)), sendJson(200, responseObject("Hello there.", usage))),
};

const apiKey = "placeholder";
/**
 * Clients configured from ANTHROPIC_BASE_URL and OPENAI_BASE_URL like programs inside, and from other base URLs that
 * people write.
 */
const clients: Record<string, { path: string; model: (url: string) => LanguageModelV4 }> = {
  "@ai-sdk/anthropic, base without the version": {
    path: "/anthropic/v1/messages",
    model: (url) => createAnthropic({ apiKey, baseURL: `${url}/anthropic` })("priced-x"),
  },
  "@ai-sdk/anthropic, base with the version": {
    path: "/anthropic/v1/messages",
    model: (url) => createAnthropic({ apiKey, baseURL: `${url}/anthropic/v1/` })("priced-x"),
  },
  "@ai-sdk/openai, responses": {
    path: "/openai/v1/responses",
    model: (url) => createOpenAI({ apiKey, baseURL: `${url}/openai/v1` })("priced-x"),
  },
  "@ai-sdk/openai, chat": {
    path: "/openai/v1/chat/completions",
    model: (url) => createOpenAI({ apiKey, baseURL: `${url}/openai/v1` }).chat("priced-x"),
  },
  "@ai-sdk/openai-compatible, no prefix": {
    path: "/openai/v1/chat/completions",
    model: (url) => createOpenAICompatible({ name: "inside", baseURL: `${url}/v1` })("priced-x"),
  },
};

const prompt = [{ role: "user" as const, content: [{ type: "text" as const, text: "Greet me." }] }];

async function streamed(model: LanguageModelV4): Promise<LanguageModelV4StreamPart[]> {
  const { stream } = await model.doStream({ prompt, maxOutputTokens: 50 });
  const parts: LanguageModelV4StreamPart[] = [];
  for await (const part of stream as unknown as AsyncIterable<LanguageModelV4StreamPart>) parts.push(part);
  return parts;
}
const textOf = (parts: readonly LanguageModelV4StreamPart[]) =>
  parts.map((part) => (part.type === "text-delta" ? part.delta : "")).join("");

describe.each(Object.entries(clients))("%s", (_name, { path, model }) => {
  test("is metered for streamed and for whole answers", async () => {
    await using rig = await openGatewayRig(replies);
    const parts = await streamed(model(rig.url));
    expect(parts.filter((part) => part.type === "error")).toEqual([]);
    expect(textOf(parts)).toBe("Hello there.");
    const whole = await model(rig.url).doGenerate({ prompt, maxOutputTokens: 50 });
    expect(whole.content).toMatchObject([{ type: "text", text: "Hello there." }]);
    expect(whole.usage).toMatchObject({ inputTokens: { total: 10 }, outputTokens: { total: 20 } });
    await rig.eventsAre(2);
    for (const { data } of rig.events) {
      expect(data).toMatchObject({ path, status: 200, costUsd: 50, asked: "Greet me.", answered: "Hello there.", error: null });
      expect(data.usage).toMatchObject({ inputTokens: 10, outputTokens: 20 });
    }
  });

  test("understands a refusal by the gateway and does not retry it", async () => {
    await using rig = await openGatewayRig(replies, {
      config: { wires: ["anthropic", "openai"], tokensMax: 1 },
      readSpent: () => ({ costUsd: 0, tokens: 5 }),
    });
    const refused = await Promise.resolve(model(rig.url).doGenerate({ prompt })).catch((error: unknown) => error);
    expect(refused).toMatchObject({ statusCode: 400, isRetryable: false, message: expect.stringContaining("used 5 tokens") });
  });
});
