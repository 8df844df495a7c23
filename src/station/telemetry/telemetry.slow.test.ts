import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { startModelServer } from "../../../test/support/model-server.ts";
import { ownMs } from "../../../test/support/own-time.ts";
import { composeTelemetry } from "../../compose/telemetry.ts";
import { fakeStationParts } from "../../compose/testing-compose.ts";
import { traceEndpoint } from "../../compose/trace-endpoint.ts";
import type { Log } from "../../log/log.ts";
import { createMemoryLog } from "../../log/memory/log.ts";
import { attributesOf, type ReceivedSpan, startReceiver } from "./testing-telemetry.ts";

let base = "";
beforeEach(async () => {
  base = await mkdtemp(join(tmpdir(), "caisson-test-traces-"));
});
afterEach(() => rm(base, { recursive: true, force: true }));

const SCRIPT = `turns:
  - calls: [{ tool: bash, arguments: { command: "echo secret-argument" } }]
  - say: secret words
`;

/** Runs a scripted model, traced to this receiver. */
async function tracedRun(endpoint: string, request: { traceparent?: string; model?: string } = {}, env: Record<string, string> = {}) {
  const file = join(base, "model.yaml");
  await writeFile(file, SCRIPT);
  const telemetry = composeTelemetry({ endpoint, version: "1" });
  const parts = await fakeStationParts(base, { onAppended: telemetry.appended, env });
  const station = parts.openStation();
  try {
    const { run } = await station.runs.start({ task: "a secret task", model: `scripted:${file}`, ...request });
    return await station.runs.wait(run);
  } finally {
    await station[Symbol.asyncDispose]();
    await telemetry[Symbol.asyncDispose]();
  }
}

const named = (spans: readonly ReceivedSpan[], name: RegExp) => spans.filter((span) => name.test(span.name));

describe("run traces", () => {
  test("nest calls in steps in the run, without any message text", async () => {
    await using receiver = await startReceiver();
    const { run } = await tracedRun(receiver.endpoint);
    const { spans } = receiver;
    const [root] = named(spans, /^invoke_agent coder$/);
    const steps = named(spans, /^step /);
    const models = named(spans, /^chat /);
    const [tool] = named(spans, /^execute_tool bash$/);
    expect([steps.length, models.length]).toEqual([2, 2]);
    expect(root?.parentSpanId ?? "").toBe("");
    expect(new Set(spans.map(({ traceId }) => traceId)).size).toBe(1);
    for (const step of steps) expect(step.parentSpanId).toBe(root?.spanId);
    expect(models.map(({ parentSpanId }) => parentSpanId)).toEqual(steps.map(({ spanId }) => spanId));
    expect(tool?.parentSpanId).toBe(steps[0]?.spanId);
    expect(attributesOf(root as ReceivedSpan)).toMatchObject({
      "gen_ai.operation.name": "invoke_agent",
      "gen_ai.agent.name": "coder",
      "gen_ai.provider.name": "scripted",
      "caisson.run": run,
      "caisson.finish": "done",
    });
    expect(attributesOf(models[0] as ReceivedSpan)).toMatchObject({
      "gen_ai.operation.name": "chat",
      "gen_ai.usage.input_tokens": expect.anything(),
      "gen_ai.usage.output_tokens": expect.anything(),
    });
    expect(attributesOf(tool as ReceivedSpan)).toMatchObject({ "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "bash" });
    expect(JSON.stringify(spans)).not.toContain("secret");
    for (const span of spans) expect(BigInt(span.endTimeUnixNano)).toBeGreaterThanOrEqual(BigInt(span.startTimeUnixNano));
  });

  test("continue the starter's trace, and respect its sampling decision", async () => {
    await using receiver = await startReceiver();
    await tracedRun(receiver.endpoint, { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" });
    const [root] = named(receiver.spans, /^invoke_agent/);
    expect(root).toMatchObject({ traceId: "0af7651916cd43dd8448eb211c80319c", parentSpanId: "b7ad6b7169203331" });
    const before = receiver.spans.length;
    await tracedRun(receiver.endpoint, { traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00" });
    expect(receiver.spans.length).toBe(before);
  });

  test("have a separate span for the time in the sandbox, which names it", async () => {
    await using receiver = await startReceiver();
    await tracedRun(receiver.endpoint);
    const [tool] = named(receiver.spans, /^execute_tool bash$/);
    const [inside, ...others] = named(receiver.spans, /^sandbox$/);
    expect(others).toEqual([]);
    expect(inside?.parentSpanId).toBe(tool?.spanId);
    expect(attributesOf(inside as ReceivedSpan)).toMatchObject({
      "caisson.runtime": "fake",
      "caisson.sandbox": expect.stringMatching(/^sb_/),
    });
  });

  test("are passed on to the provider with each call if the caller traces", async () => {
    await using receiver = await startReceiver();
    await using model = await startModelServer((_, number) => (number === 0 ? { status: 500 } : { say: "done" }));
    const ask = { model: "compatible/m", traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01" };
    const env = { OPENAI_BASE_URL: model.url };
    expect(await tracedRun(receiver.endpoint, ask, env)).toMatchObject({ finish: "done" });
    const calls = named(receiver.spans, /^chat m$/).map(({ traceId, spanId }) => `00-${traceId}-${spanId}-01`);
    expect(calls).toHaveLength(2);
    expect(model.headers.map(({ traceparent }) => traceparent)).toEqual(calls);
    await tracedRun(receiver.endpoint, { model: ask.model }, env);
    expect(model.headers[2]).not.toHaveProperty("traceparent");
  });

  test("continue when another process continues the run", async () => {
    await using receiver = await startReceiver();
    const log = createMemoryLog();
    const usage = { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0, reasoningTokens: 0 };
    const agent = { name: "coder", digest: "", definition: null };
    const created = { run: "run_a", parent: null, session: "s", agent, task: "t", model: "anthropic/claude", budgets: {} };
    const requested = (attempt: number) => ({
      call: "m1",
      step: 1,
      attempt,
      model: "anthropic/claude",
      digest: "",
      messages: [],
      contextTokens: 0,
    });
    const claimed = (epoch: number) => ({ owner: "o", epoch, pid: 1, host: "h" });
    await driven(receiver.endpoint, log, async (append) => {
      await append("run.created", created);
      await append("run.claimed", claimed(1));
      await append("step.started", { step: 1 });
      await append("model.requested", requested(1));
    });
    expect(receiver.spans).toEqual([]);
    await driven(receiver.endpoint, log, async (append) => {
      await append("run.claimed", claimed(2));
      await append("model.requested", requested(2));
      await append("model.ended", { call: "m1", parts: [], usage, costUsd: null, stop: "end", durationMs: 1 });
      await append("run.ended", { reason: "done", text: "", steps: 1, usage, costUsd: null });
    });
    const { spans } = receiver;
    const [lost, again] = named(spans, /^chat claude$/);
    expect([lost?.status, again?.status.code ?? 0]).toMatchObject([{ code: 2, message: "lost" }, 0]);
    expect(lost?.spanId).not.toBe(again?.spanId);
    const [step] = named(spans, /^step 1$/);
    const [root] = named(spans, /^invoke_agent/);
    expect([lost?.parentSpanId, again?.parentSpanId, step?.parentSpanId]).toEqual([step?.spanId, step?.spanId, root?.spanId]);
    expect(spans).toHaveLength(4);
  });

  test("are complete even if the process ends while reading earlier events", async () => {
    await using receiver = await startReceiver();
    const log = createMemoryLog();
    const usage = { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0, reasoningTokens: 0 };
    const agent = { name: "coder", digest: "", definition: null };
    const created = { run: "run_a", parent: null, session: "s", agent, task: "t", model: "anthropic/claude", budgets: {} };
    const events = [
      { type: "run.created", version: 1, data: created },
      { type: "run.ended", version: 1, data: { reason: "done", text: "", steps: 0, usage, costUsd: null } },
    ];
    await log.append("run/run_a", events);
    const ending = Promise.withResolvers<void>();
    const telemetry = composeTelemetry({ endpoint: receiver.endpoint, version: "1" });
    telemetry.appended(
      { stream: "run/run_a", events, firstSeq: 1 },
      {
        async read(...args) {
          await ending.promise;
          return await log.read(...args);
        },
      },
    );
    const ended = telemetry[Symbol.asyncDispose]();
    ending.resolve();
    await ended;
    expect(receiver.spans.map(({ name }) => name)).toEqual(["invoke_agent coder"]);
  });

  test("neither fail nor delay a run if the receiver fails or is missing", async () => {
    await using failing = await startReceiver(() => 500);
    expect(await tracedRun(failing.endpoint)).toMatchObject({ finish: "done" });
    const run = tracedRun("http://127.0.0.1:9");
    expect(await ownMs(run)).toBeLessThan(8000);
    expect(await run).toMatchObject({ finish: "done" });
  });
});

describe("the trace endpoint", () => {
  test("is unset unless the environment or the configuration sets it", () => {
    expect(traceEndpoint({}, undefined)).toBeUndefined();
    expect(traceEndpoint({ OTEL_EXPORTER_OTLP_ENDPOINT: "" }, "http://c")).toBe("http://c");
    expect(traceEndpoint({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://e" }, "http://c")).toBe("http://e");
    expect(traceEndpoint({ OTEL_EXPORTER_OTLP_ENDPOINT: "http://e", OTEL_SDK_DISABLED: "true" }, "http://c")).toBeUndefined();
  });
});

/** Appends events as one process does, until it ends. */
async function driven(
  endpoint: string,
  log: Log,
  work: (append: (type: string, data: object) => Promise<void>) => Promise<void>,
): Promise<void> {
  const telemetry = composeTelemetry({ endpoint, version: "1" });
  await work(async (type, data) => {
    const event = { type, version: 1, data };
    const { lastSeq } = await log.append("run/run_a", [event]);
    telemetry.appended({ stream: "run/run_a", events: [event], firstSeq: lastSeq }, log);
  });
  await telemetry[Symbol.asyncDispose]();
}
