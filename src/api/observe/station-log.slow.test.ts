import { describe, expect, test } from "vitest";
import { createRedactor, logText } from "./log-line.ts";
import type { AnsweredRequest } from "./observer.ts";
import { createStationLog } from "./station-log.ts";

const token = { id: "tok_aaaaaaaaaaaa", name: "ci", scope: "run", owner: "alice", createdAt: "", expiresAt: null } as never;
const answered: AnsweredRequest = {
  id: "r1",
  method: "GET",
  route: "runs.list",
  status: 200,
  durationMs: 1.26,
  caller: { kind: "token", token },
  traceparent: null,
  streams: false,
};

function recorded(level: "info" | "debug" = "info") {
  const lines: string[] = [];
  const log = createStationLog({ level, write: (line) => void lines.push(line) });
  return { log, lines, records: () => lines.map((line) => JSON.parse(line) as Record<string, unknown>) };
}

describe("the station log", () => {
  test("has a line for each request, with caller and duration", () => {
    const { log, records } = recorded();
    log.request(answered);
    log.request({ ...answered, route: "healthz" });
    log.request({ ...answered, status: 500, caller: null });
    expect(records()).toMatchObject([
      { level: "info", msg: "request", request: "r1", route: "runs.list", status: 200, durationMs: 1.3, token: "ci", owner: "alice" },
      { level: "error", status: 500 },
    ]);
    expect(records()[0]?.time).toMatch(/^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
  });

  test("records the start and end of runs without their text", () => {
    const { log, lines, records } = recorded();
    const agent = { name: "coder", digest: "", definition: null };
    const created = { run: "run_a", parent: null, session: "s", agent, task: "a secret task", model: "m", budgets: {} };
    log.run("run_a", { type: "run.created", data: created });
    const usage = { inputTokens: 1, outputTokens: 2, cachedInputTokens: 0, reasoningTokens: 0 };
    log.run("run_a", { type: "run.ended", data: { reason: "done", text: "secret words", steps: 1, usage, costUsd: 0.1 } });
    expect(records()).toMatchObject([
      { msg: "run created", agent: "coder" },
      { msg: "run ended", reason: "done", inputTokens: 1 },
    ]);
    expect(lines.join("")).not.toContain("secret");
  });

  test("logs a missed health check as a warning, an escalation as an error", () => {
    const { log, records } = recorded();
    const subject = { kind: "sandbox" as const, id: "sb_aaaaaaaaaaaa" };
    const incident = "inc_aaaaaaaaaaaa";
    for (const level of ["late", "ok"] as const)
      log.health({ type: "health.changed", data: { subject, level, misses: level === "ok" ? 0 : 1, condition: "running" } });
    log.health({ type: "health.restart_started", data: { subject, incident, why: "it said so" } });
    log.health({ type: "health.restart_ended", data: { subject, incident, outcome: "failed", text: "words", durationMs: 1.6 } });
    log.health({ type: "health.escalated", data: { subject, incident, text: "words" } });
    expect(records()).toMatchObject([
      { level: "warn", msg: "health changed", sandbox: subject.id, misses: 1 },
      { level: "info", msg: "health changed" },
      { level: "warn", msg: "restart started", incident },
      { level: "warn", msg: "restart ended", outcome: "failed", durationMs: 2 },
      { level: "error", msg: "needs a person" },
    ]);
  });

  test("logs defects with their stack, each on a single line", () => {
    const { log, lines, records } = recorded();
    log.defect(new Error("first\nsecond\x1b[31m"));
    expect(lines).toHaveLength(1);
    expect(lines[0]).not.toContain("\x1b");
    expect(records()[0]).toMatchObject({
      level: "error",
      msg: "defect",
      error: "first\nsecond\x1b[31m",
      stack: expect.stringContaining("station-log.slow.test"),
    });
  });

  test("redacts known secrets anywhere in a line", () => {
    const redact = createRedactor(['sk-12345678"x', "short"]);
    const line = JSON.stringify({
      a: 'key sk-12345678"x here',
      b: "Authorization: Bearer abcdefghijk",
      c: `tok_${"a".repeat(52)}`,
      d: "short tok_aaaaaaaaaaaa",
    });
    expect(JSON.parse(redact(line))).toEqual({
      a: "key [redacted] here",
      b: "Authorization: Bearer [redacted]",
      c: "[redacted]",
      d: "short tok_aaaaaaaaaaaa",
    });
  });

  test("is formatted for people as time, level, message and facts", () => {
    const { log, lines } = recorded();
    log.request(answered);
    expect(logText(lines[0] ?? "")).toMatch(
      /^[\d:.]{12} info {2}request request=r1 method=GET route=runs\.list status=200 durationMs=1\.3 token=ci owner=alice$/,
    );
    log.defect(new Error("oh"));
    expect(logText(lines[1] ?? "")).toMatch(/error defect error=oh\nError: oh\n {4}at /);
  });
});
