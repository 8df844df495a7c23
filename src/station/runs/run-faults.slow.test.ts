import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, describe, expect, test, vi } from "vitest";
import { createTestStation, type TestStation } from "../../../test/support/testing-runs.ts";
import { CaissonError } from "../../contract/error/error.ts";
import type { RunEvent } from "../../contract/run/run-event.ts";
import type { Log } from "../../log/log.ts";
import { createMemoryLog } from "../../log/memory/log.ts";
import { createSqliteLog } from "../../log/sqlite/log.ts";
import { runStream } from "../vocabulary/station-names.ts";

const never = new AbortController().signal;
const write = (path: string, content: string) => ({ tool: "write", arguments: { path, content } });
const of = <Type extends RunEvent["type"]>(events: readonly RunEvent[], type: Type) =>
  events.filter((event): event is Extract<RunEvent, { type: Type }> => event.type === type);
const broken = (methods: Partial<Log>): { log: Log; real: Log } => {
  const real = createMemoryLog();
  return { real, log: { ...real, ...methods } };
};

afterEach(() => void vi.useRealTimers());

describe("a failing log", () => {
  test("leaves the run open if it stays locked too long", async () => {
    const dir = await mkdtemp(join(tmpdir(), "caisson-test-busy-"));
    const path = join(dir, "log.db");
    try {
      await using station = await createTestStation({
        log: createSqliteLog({ path, busyWaitMsMax: 200 }),
        script: { turns: [{ calls: [write("a.txt", "a")] }, { say: "one two three", pauseMs: 100 }] },
      });
      const run = await station.start();
      const driven = station.runs.drive(run, { signal: never }).catch((error: unknown) => error);
      await station.until(run, "tool.ended");
      const holder = new DatabaseSync(path);
      holder.exec("PRAGMA busy_timeout = 5000; BEGIN IMMEDIATE");
      expect(await driven).toMatchObject({ code: "unavailable", details: { log: true } });
      holder.exec("ROLLBACK");
      holder.close();
      expect((await station.runs.facts(run)).status).toBe("running");
      expect((await station.second().drive(run, { signal: never })).ended).toEqual({ reason: "done", text: "one two three" });
      expect(of(await station.events(run), "tool.started")).toHaveLength(1);
    } finally {
      await rm(dir, { recursive: true, force: true });
    }
  });

  test("does not fail the run if it rejects a single append", async () => {
    let failing = true;
    const { log, real } = broken({
      async append(stream, events, options) {
        if (failing && events.some((event) => event.type === "model.requested" && (event.data as { step: number }).step === 2)) {
          failing = false;
          throw new CaissonError("unavailable", "another process holds the log for too long", { details: { log: true } });
        }
        return await real.append(stream, events, options);
      },
    });
    await using station = await createTestStation({ log, script: { turns: [{ calls: [write("a.txt", "a")] }, { say: "Done." }] } });
    const run = await station.start();
    await expect(station.runs.drive(run, { signal: never })).rejects.toMatchObject({ code: "unavailable" });
    expect((await station.runs.facts(run)).status).toBe("running");
    expect((await station.runs.drive(run, { signal: never })).ended?.reason).toBe("done");
  });

  test("keeps the run if it cannot renew the lease, unless another process has it", async () => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
    let failure: CaissonError | null = new CaissonError("unavailable", "another process holds the log", { details: { log: true } });
    let renewals = 0;
    const { log, real } = broken({
      async renew(lease, options) {
        renewals += 1;
        if (failure !== null) throw failure;
        return await real.renew(lease, options);
      },
    });
    await using station = await createTestStation({ log, script: { turns: [{ say: "one two three four five", pauseMs: 200 }] } });
    const run = await station.start();
    const driven = station.runs.drive(run, { signal: never }).catch((error: unknown) => error);
    await station.until(run, "model.requested");
    await vi.advanceTimersByTimeAsync(60_000);
    expect(renewals).toBeGreaterThan(2);
    expect(await driven).toMatchObject({ ended: { reason: "done" } });

    const other = await station.start();
    const fenced = station.runs.drive(other, { signal: never }).catch((error: unknown) => error);
    await station.until(other, "model.requested");
    failure = null;
    await real.acquire(runStream(other), { holder: "another", ttlMs: 60_000, holderGone: () => true });
    await vi.advanceTimersByTimeAsync(15_000);
    expect(await fenced).toMatchObject({ code: "superseded", message: expect.stringContaining("no longer drives the run") });
    expect((await station.runs.facts(other)).status).toBe("running");
  });
});

describe("messages to a run", () => {
  test("are acknowledged only before its end, and then always delivered", async () => {
    for (let round = 0; round < 5; round++) {
      await using station = await createTestStation({
        script: { turns: Array.from({ length: 400 }, (_, number) => ({ say: `Turn ${number}.` })) },
      });
      const run = await station.start({ definition: { harness: { maxSteps: 400 } } });
      const sent: string[] = [];
      let over = false;
      const speak = async () => {
        for (let number = 0; !over && number < 8; number++) {
          const message = await station.runs
            .send(run, { text: `m${number}`, mode: "queue", source: "user" })
            .catch((error: CaissonError) => error);
          if (message instanceof CaissonError) expect(message.code).toBe("conflict");
          else sent.push(message);
        }
      };
      const driving = station.runs.drive(run, { signal: never });
      const ended = driving.then(() => {
        over = true;
      });
      await Promise.all([speak(), speak(), speak(), speak(), ended]);
      const events = await station.events(run);
      expect(events.at(-1)?.type).toBe("run.ended");
      const deliveredMessages = new Set(of(events, "model.requested").flatMap((event) => event.data.messages));
      expect(sent.filter((message) => !deliveredMessages.has(message))).toEqual([]);
    }
  });

  test("that arrive while the end is being written continue the run", async () => {
    let station: TestStation;
    let messageId = "";
    const { log, real } = broken({
      async append(stream, events, options) {
        if (messageId === "" && events.some((event) => event.type === "run.ended")) {
          messageId = await station.runs.send(stream.slice("run/".length), { text: "one more thing", mode: "queue", source: "user" });
        }
        return await real.append(stream, events, options);
      },
    });
    await using newStation = await createTestStation({
      log,
      script: { turns: [{ say: "Done." }, { say: "That too.", expect: { news: ["one more thing"] } }] },
    });
    station = newStation;
    const { state, events } = await station.finish();
    expect(state.ended).toEqual({ reason: "done", text: "That too." });
    expect(of(events, "model.requested").at(-1)?.data.messages).toEqual([messageId]);
  });

  test("accept only the first of two simultaneous answers", async () => {
    await using station = await createTestStation({
      script: { turns: [{ calls: [write("secret.txt", "x")] }, { say: "Done." }] },
    });
    const run = await station.start({ definition: { permissions: { "write:secret*": "ask" } } });
    const driven = station.runs.drive(run, { signal: never });
    await station.until(run, "permission.asked");
    const outcomes = await Promise.allSettled([
      station.runs.answer(run, { answer: "allow", by: "one" }),
      station.runs.answer(run, { answer: "deny", by: "two" }),
    ]);
    expect(outcomes.map((outcome) => outcome.status).sort()).toEqual(["fulfilled", "rejected"]);
    expect(outcomes.find((outcome) => outcome.status === "rejected")?.reason).toMatchObject({ code: "not_found" });
    await driven;
    expect(of(await station.events(run), "permission.answered")).toHaveLength(1);
  });

  test("allow several callers to stop a run without a driver at once", async () => {
    await using station = await createTestStation({
      script: { turns: [] },
      model: async () => {
        throw new CaissonError("unauthenticated", "there is no key");
      },
    });
    const run = await station.start();
    const others = [station.runs, station.second({ pid: 7 }), station.second({ pid: 9 })];
    await Promise.all([...others, ...others].map((runs) => runs.stop(run, { by: "somebody" })));
    await station.runs.stop(run, { by: "a latecomer" });
    const events = await station.events(run);
    expect(of(events, "run.ended").map((event) => event.data.reason)).toEqual(["cancelled"]);
    expect(of(events, "run.stop_requested")).toHaveLength(1);
  });

  test("report a run that ended by itself instead of stopping it", async () => {
    await using station = await createTestStation({ script: { turns: [{ say: "Done." }] } });
    const { run } = await station.finish();
    await expect(station.runs.stop(run, { by: "me" })).rejects.toMatchObject({
      code: "conflict",
      message: expect.stringContaining("done"),
    });
  });
});

describe("the run clock", () => {
  test("does not count a wall clock that is set forward by a day", async () => {
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() });
    await using station = await createTestStation({
      script: { turns: [{ calls: [write("a.txt", "a")] }, { calls: [write("b.txt", "b")] }, { say: "Done." }] },
      hooks: {
        before: [
          async () => {
            vi.setSystemTime(Date.now() + 86_400_000);
            return { kind: "continue" };
          },
        ],
      },
    });
    const { state } = await station.finish({ definition: { harness: { timeoutMs: 60_000, onBudget: "stop" } } });
    expect(state.ended).toMatchObject({ reason: "done" });
    expect(state.workedMs).toBeLessThan(60_000);
  });

  test("counts work but not waiting for an answer, even across a takeover", async () => {
    await using station = await createTestStation({
      script: { turns: [{ say: "slow words", pauseMs: 300, calls: [write("secret.txt", "x")] }, { say: "Done." }] },
    });
    const run = await station.start({ definition: { permissions: { "write:secret*": "ask" } } });
    const releaseController = new AbortController();
    const first = station.runs.drive(run, { signal: releaseController.signal }).catch(() => undefined);
    await station.until(run, "run.paused");
    releaseController.abort();
    await first;
    const second = station.second();
    const driven = second.drive(run, { signal: never });
    await station.until(run, "run.claimed", (event) => event.data.epoch === 2);
    const before = (await station.runs.facts(run)).workedMs;
    expect(before).toBeGreaterThanOrEqual(300);
    await new Promise((resolve) => setTimeout(resolve, 400));
    const answeredMs = performance.now();
    await second.answer(run, { answer: "allow", by: "me" });
    expect((await driven).workedMs - before).toBeLessThanOrEqual(Math.ceil(performance.now() - answeredMs));
  });
});
