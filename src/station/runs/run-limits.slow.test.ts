import { describe, expect, test } from "vitest";
import { createTestStation, never, read, write } from "../../../test/support/testing-runs.ts";

describe("budgets", () => {
  const busy = Array.from({ length: 6 }, (_, n) => ({ calls: [write(`f${n}.txt`, `${n}`)] }));

  test("end an unattended run", async () => {
    await using station = await createTestStation({ script: { turns: busy } });
    const { state } = await station.finish({ definition: { harness: { maxSteps: 2, onBudget: "stop" } } });
    expect(state.ended).toMatchObject({ reason: "max_steps" });
    expect(state.step).toBe(2);
  });

  test("pause an attended run and ask whether to raise them", async () => {
    await using station = await createTestStation({ script: { turns: [...busy.slice(0, 3), { say: "Done." }], costUsdPerCall: 1 } });
    const run = await station.start({ budgets: { costUsd: 2 } });
    const driven = station.runs.drive(run, { signal: never });
    const question = await station.until(run, "permission.asked");
    expect(question.data).toMatchObject({ kind: "budget", text: expect.stringContaining("$2") });
    await station.runs.answer(run, { answer: "allow", by: "me", budgets: { costUsd: 10 } });
    expect((await driven).ended?.reason).toBe("done");

    const other = await station.start({ budgets: { costUsd: 2 } });
    const again = station.runs.drive(other, { signal: never });
    await station.until(other, "permission.asked");
    await station.runs.answer(other, { answer: "deny", by: "me" });
    expect((await again).ended?.reason).toBe("budget");
  });

  test("include time, and interrupt a call that takes too long", async () => {
    await using station = await createTestStation({ script: { turns: [{ say: "one two three four five", pauseMs: 10_000 }] } });
    const { state } = await station.finish({ definition: { harness: { timeoutMs: 1000, onBudget: "stop" } } });
    expect(state.ended?.reason).toBe("timeout");
  });
});

describe("a loop", () => {
  const same = Array.from({ length: 8 }, () => ({ calls: [read("missing.txt")] }));

  test("of three identical failing calls gets a nudge, then the configured action", async () => {
    await using station = await createTestStation({ script: { turns: same } });
    const { state, events } = await station.finish({ definition: { harness: { doomLoop: { threshold: 3, action: "fail" } } } });
    expect(state.ended?.reason).toBe("stuck");
    const noticed = events.flatMap((event) => (event.type === "loop.noticed" ? [event.data] : []));
    expect(noticed.map((each) => [each.pattern, each.action])).toEqual([
      ["same", "nudged"],
      ["same", "failed"],
    ]);
    expect(state.step).toBe(6);
  });

  test("of two alternating calls is detected", async () => {
    const turns = Array.from({ length: 12 }, (_, n) => ({ calls: [read(n % 2 === 0 ? "a" : "b")] }));
    await using station = await createTestStation({ script: { turns } });
    const { events } = await station.finish({ definition: { harness: { doomLoop: { threshold: 3, action: "fail" } } } });
    expect(events.find((event) => event.type === "loop.noticed")?.data).toMatchObject({ pattern: "alternating" });
  });

  test("that ends after the nudge has no consequences", async () => {
    await using station = await createTestStation({
      script: {
        turns: [...same.slice(0, 3), { calls: [write("x.txt", "1")], expect: { news: ["is not making progress"] } }, { say: "Done." }],
      },
    });
    const { state } = await station.finish({ definition: { harness: { doomLoop: { threshold: 3, action: "fail" } } } });
    expect(state.ended?.reason).toBe("done");
  });
});
