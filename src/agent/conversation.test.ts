import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { tries } from "../../test/support/thorough.ts";
import { RunEvent } from "../contract/run/run-event.ts";
import { compactionStep, decide } from "./decide-step.ts";
import { applyEvent, emptyRunState, type RunState } from "./run-state.ts";

const at = "2026-01-01T00:00:00.000Z";
const usage = { inputTokens: 10, outputTokens: 5, cachedInputTokens: 0, reasoningTokens: 0 };

/** Writes a run's log by hand. */
function story(harness: object = {}) {
  const state = emptyRunState();
  const tell = (type: string, data: object) => applyEvent(state, RunEvent.parse({ type, version: 1, at, data }));
  tell("run.created", {
    run: "run_aaaaaaaaaaaa",
    parent: null,
    session: "s",
    agent: { name: "a", digest: "d", definition: { name: "a", system: "Be good.", harness } },
    task: "Mend it.",
    model: "m",
    budgets: {},
  });
  tell("run.claimed", { owner: "o", epoch: 1, pid: 1, host: "h" });
  state.conversation.setRules("Never push.");
  let step = 0;
  const name = (number: number) => `msg_${"abcdefghij"[number % 10]}${"aaaaaaaaaaa"}`;
  return {
    state,
    tell,
    step(options: { says?: string; calls?: string[]; results?: string[]; messages?: number }) {
      step += 1;
      const messages = Array.from({ length: options.messages ?? 0 }, (_, number) => name(step * 3 + number));
      for (const message of messages) tell("message.received", { message, source: "user", mode: "steer", text: `note ${step}` });
      tell("step.started", { step });
      tell("model.requested", { call: `m${step}`, step, attempt: 1, model: "m", digest: "d", messages, contextTokens: 1 });
      const calls = (options.calls ?? []).map((argument, number) => ({
        kind: "toolCall",
        call: `t${step}.${number + 1}`,
        providerCall: `p${step}.${number + 1}`,
        name: "bash",
        arguments: { command: argument },
      }));
      const textParts = options.says === undefined ? [] : [{ kind: "text", text: options.says }];
      tell("model.ended", {
        call: `m${step}`,
        parts: [...textParts, ...calls],
        usage,
        costUsd: 0,
        stop: calls.length > 0 ? "tools" : "end",
        durationMs: 1,
      });
      for (const [number, call] of calls.entries()) {
        const text = options.results?.[number] ?? "done";
        tell("tool.ended", { call: call.call, outcome: "ok", text, durationMs: 1 });
      }
    },
    compact(beforeStep: number, how: "model" | "cut" = "model") {
      tell("context.compacted", { beforeStep, summary: `summary before ${beforeStep}`, tokensBefore: 1, tokensAfter: 1, how });
    },
  };
}

/** Checks what every provider requires: each call has one result, directly after the answer with the call. */
function checkPairs(state: RunState): void {
  let open = new Set<string>();
  for (const message of state.conversation.messages()) {
    if (message.role === "tool") {
      for (const result of message.results)
        expect(open.delete(result.providerCall), `${result.providerCall} has its call before it`).toBe(true);
      continue;
    }
    expect([...open], "calls without a result").toEqual([]);
    if (message.role === "assistant")
      open = new Set(message.parts.flatMap((part) => (part.kind === "toolCall" ? [part.providerCall] : [])));
  }
}

describe("a conversation", () => {
  const turn = fc.record({
    calls: fc.array(fc.string({ maxLength: 900 }), { maxLength: 4 }),
    results: fc.array(fc.string({ maxLength: 400 }), { maxLength: 4 }),
    messages: fc.nat(2),
    says: fc.option(fc.string(), { nil: undefined }),
    compactTokens: fc.option(fc.nat(600), { nil: undefined }),
    how: fc.constantFrom("model" as const, "cut" as const),
  });

  test("keeps the task, the rules and call-result pairs through any compaction", () => {
    fc.assert(
      fc.property(fc.array(turn, { minLength: 1, maxLength: 15 }), (turns) => {
        const { state, step, compact } = story();
        for (const { compactTokens, how, ...rest } of turns) {
          step(rest as Parameters<typeof step>[0]);
          if (compactTokens !== undefined)
            compact(Math.max(1, Math.min(state.conversation.stepWithinTokens(compactTokens), state.step)), how);
          checkPairs(state);
          const [system, task] = state.conversation.messages();
          expect(system).toEqual({ role: "system", text: "Be good.\n\nNever push." });
          expect(task).toEqual({ role: "user", text: "Mend it." });
          const counted = state.conversation.messages().reduce((sum, message) => sum + Math.ceil(JSON.stringify(message).length / 4), 0);
          expect(state.conversation.estimatedTokens()).toBe(counted);
        }
      }),
      { numRuns: tries(150) },
    );
  });

  test("protects a tail of whole steps", () => {
    const { state, step } = story();
    for (let number = 0; number < 10; number++) step({ calls: ["x".repeat(100)], results: ["y".repeat(400)] });
    const first = state.conversation.stepWithinTokens(500);
    const tail = state.conversation.entries().filter((entry) => entry.step >= first);
    expect(tail.reduce((sum, entry) => sum + entry.tokens, 0)).toBeLessThanOrEqual(500);
    expect(first).toBeGreaterThan(1);
    expect(first).toBeLessThan(10);
    expect(state.conversation.stepWithinTokens(0)).toBe(11);
  });

  test("cuts only old arguments when compacted without a model", () => {
    const { state, step, compact } = story();
    for (let number = 0; number < 4; number++) step({ calls: ["x".repeat(2000)] });
    compact(1, "cut");
    const lengths = state.conversation
      .messages()
      .flatMap((message) =>
        message.role === "assistant"
          ? message.parts.flatMap((part) => (part.kind === "toolCall" ? [JSON.stringify(part.arguments).length] : []))
          : [],
      );
    expect(lengths.map((length) => length > 1000)).toEqual([false, false, true, true]);
    checkPairs(state);
  });
});

describe("compaction", () => {
  const full = (results: number, harness: object = {}) => {
    const run = story({ compaction: { threshold: 0.85, protectTokens: 1000, ...harness } });
    for (let number = 0; number < results; number++) run.step({ calls: [`${number}`], results: [`${"y".repeat(4000)}`] });
    return run;
  };
  const next = (state: RunState, contextTokens: number) => decide(state, { contextTokens }).kind;

  test("starts at the window's threshold, by our count or the provider's", () => {
    const { state } = full(8);
    expect(next(state, 20_000)).toBe("model");
    expect(next(state, 9500)).toBe("compact");
    state.lastInputTokens = 17_500;
    expect(next(state, 20_000)).toBe("compact");
    // Messages added after the provider counted come on top of its count.
    state.lastInputTokens = 15_800;
    state.estimatedAtAnswer = state.conversation.estimatedTokens() - 1500;
    expect(next(state, 20_000)).toBe("compact");
  });

  test("does not start when disabled or when only the protected tail remains", () => {
    expect(next(full(8, { enabled: false }).state, 5000)).toBe("model");
    const { state, compact } = full(8);
    compact(compactionStep(state, 9500));
    expect(next(state, 1000)).toBe("model");
  });

  test("starts once when the provider rejects the conversation as too long", () => {
    const { state, tell, compact } = full(8);
    tell("step.started", { step: 9 });
    tell("model.requested", { call: "m9", step: 9, attempt: 1, model: "m", digest: "d", messages: [], contextTokens: 1 });
    tell("model.failed", { call: "m9", error: { code: "too_large", message: "no" }, retryInMs: 0 });
    expect(next(state, 1_000_000)).toBe("compact");
    const before = compactionStep(state, 1_000_000);
    compact(before);
    expect(before).toBeGreaterThan(4);
    expect(next(state, 1_000_000)).toBe("model");
    tell("model.failed", { call: "m9", error: { code: "too_large", message: "no" }, retryInMs: null });
    expect(next(state, 1_000_000)).toBe("model");
  });

  test("adds the summary's cost to the run's usage", () => {
    const { state, tell } = full(2);
    const spent = state.usage.inputTokens;
    tell("context.compacted", { beforeStep: 2, summary: "s", tokensBefore: 1, tokensAfter: 1, how: "model", usage, costUsd: 0.5 });
    expect([state.usage.inputTokens - spent, state.costUsd]).toEqual([10, 0.5]);
  });
});

describe("loop detection", () => {
  const runCalls = (
    calls: (string | [string, { changed?: boolean; name?: string; result?: string; outcome?: string }])[],
    harness: object = {},
  ) => {
    const run = story(harness);
    let step = 0;
    const call = (each: (typeof calls)[number]) => {
      const [argument, options] = typeof each === "string" ? [each, {}] : each;
      step += 1;
      run.tell("step.started", { step });
      run.tell("model.requested", {
        call: `m${step}`,
        step,
        attempt: 1,
        model: "m",
        digest: "d",
        messages: run.state.waiting.map((one) => one.message),
        contextTokens: 1,
      });
      const part = {
        kind: "toolCall",
        call: `t${step}.1`,
        providerCall: `p${step}`,
        name: options.name ?? "bash",
        arguments: { command: argument },
      };
      run.tell("model.ended", { call: `m${step}`, parts: [part], usage, costUsd: 0, stop: "tools", durationMs: 1 });
      run.tell("tool.ended", {
        call: `t${step}.1`,
        outcome: options.outcome ?? "ok",
        text: options.result ?? "same",
        details: { changedFiles: options.changed ?? false },
        durationMs: 1,
      });
    };
    for (const each of calls) call(each);
    const noticed = () => {
      const decision = decide(run.state, { contextTokens: 1_000_000 });
      return decision.kind === "notice" ? decision.noticed : null;
    };
    return { ...run, call, noticed };
  };

  test("finds the same call three times in a row, even if it fails each time", () => {
    expect(runCalls(["a", "a"]).noticed()).toBeNull();
    expect(runCalls(["a", "a", "a"]).noticed()).toMatchObject({
      pattern: "same",
      again: false,
      text: expect.stringContaining('bash {"command":"a"}'),
    });
    expect(
      runCalls([
        ["a", { outcome: "error" }],
        ["a", { outcome: "denied" }],
        ["a", { outcome: "error" }],
      ]).noticed(),
    ).toMatchObject({ pattern: "same" });
    expect(runCalls(["a", "a", "b", "a"]).noticed()).toBeNull();
    expect(runCalls(["a", "a", "a"], { doomLoop: { threshold: 4 } }).noticed()).toBeNull();
  });

  test("finds two alternating calls, and a few calls that change no file", () => {
    expect(runCalls(["a", "b", "a", "b", "a"]).noticed()).toBeNull();
    expect(runCalls(["a", "b", "a", "b", "a", "b"]).noticed()).toMatchObject({ pattern: "alternating" });
    const circle = Array.from({ length: 12 }, (_, at) => `${"abc"[at % 3]}`);
    expect(runCalls(circle).noticed()).toMatchObject({ pattern: "no_progress" });
    expect(runCalls(circle.map((each, at) => [each, { changed: at === 6 }] as const).map(([a, b]) => [a, b])).noticed()).toBeNull();
    expect(runCalls(Array.from({ length: 12 }, (_, at) => `${at}`)).noticed()).toBeNull();
  });

  test("accepts polling while the output grows", () => {
    const poll = (result: string): [string, object] => ["t1.1", { name: "bash_output", result }];
    expect(runCalls([poll("1"), poll("2"), poll("3")]).noticed()).toBeNull();
    expect(runCalls([poll("1"), poll("1"), poll("1")]).noticed()).toMatchObject({ pattern: "same" });
  });

  test("escalates after a nudge without new calls, or after three nudges", () => {
    const run = runCalls(["a", "a", "a"]);
    const nudge = () => run.tell("loop.noticed", { pattern: "same", action: "nudged", text: "t" });
    nudge();
    expect(run.noticed()).toBeNull();
    for (const each of ["a", "a", "a"]) run.call(each);
    expect(run.noticed()).toMatchObject({ again: true });
    const other = runCalls(["a", "a", "a"]);
    for (const fresh of ["b", "c"]) {
      other.tell("loop.noticed", { pattern: "same", action: "nudged", text: "t" });
      for (const each of [fresh, "a", "a", "a"]) other.call(each);
      expect(other.noticed()).toMatchObject({ again: false });
    }
    other.tell("loop.noticed", { pattern: "same", action: "nudged", text: "t" });
    for (const each of ["d", "a", "a", "a"]) other.call(each);
    expect(other.noticed()).toMatchObject({ again: true });
  });

  test("ignores the key order of arguments, and does not store long arguments", () => {
    const run = story();
    for (let step = 1; step <= 3; step++) {
      run.tell("step.started", { step });
      const args = step % 2 === 0 ? { a: 1, content: "x".repeat(50_000) } : { content: "x".repeat(50_000), a: 1 };
      const part = { kind: "toolCall", call: `t${step}.1`, providerCall: `p${step}`, name: "write", arguments: args };
      run.tell("model.requested", { call: `m${step}`, step, attempt: 1, model: "m", digest: "d", messages: [], contextTokens: 1 });
      run.tell("model.ended", { call: `m${step}`, parts: [part], usage, costUsd: 0, stop: "tools", durationMs: 1 });
      run.tell("tool.ended", { call: `t${step}.1`, outcome: "ok", text: "ok", durationMs: 1 });
    }
    expect(decide(run.state, { contextTokens: 1e9 }).kind).toBe("notice");
    expect(JSON.stringify(run.state.callHistory).length).toBeLessThan(2000);
  });
});
