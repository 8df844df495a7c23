import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, describe, expect, test, vi } from "vitest";
import { CaissonError } from "../contract/error.ts";
import type { RunEvent } from "../contract/run-event.ts";
import type { Log } from "../log/log.ts";
import { createMemoryLog } from "../log/memory/log.ts";
import { createSqliteLog } from "../log/sqlite/log.ts";
import { runStream } from "./run-facts.ts";
import { createTestStation, type TestStation } from "./testing.ts";

const never = new AbortController().signal;
const write = (path: string, content: string) => ({ tool: "write", arguments: { path, content } });
const read = (path: string) => ({ tool: "read", arguments: { path } });
const of = <Type extends RunEvent["type"]>(events: readonly RunEvent[], type: Type) =>
  events.filter((event): event is Extract<RunEvent, { type: Type }> => event.type === type);
const sandboxOf = async (station: TestStation) => (await station.runtime.list())[0]?.id ?? "";
const broken = (methods: Partial<Log>): { log: Log; real: Log } => {
  const real = createMemoryLog();
  return { real, log: { ...real, ...methods } };
};

afterEach(() => void vi.useRealTimers());

describe("a log in trouble", () => {
  test("that others hold for longer than anybody waits leaves the run as it is, and never ends it", async () => {
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

  test("one append that fails is no failure of the run, though the next one would not", async () => {
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

  test("a renewal that fails is no reason to give the run up; that another process has it is one, and is said", async () => {
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
    await real.acquire(runStream(other), { owner: "another", ttlMs: 60_000, ownerGone: () => true });
    await vi.advanceTimersByTimeAsync(15_000);
    expect(await fenced).toMatchObject({ code: "superseded", message: expect.stringContaining("is not driven here any longer") });
    expect((await station.runs.facts(other)).status).toBe("running");
  });
});

describe("what others say to a run", () => {
  test("nothing is acknowledged after the run's end, and what was acknowledged before it was heard", { timeout: 30_000 }, async () => {
    for (let round = 0; round < 5; round++) {
      await using station = await createTestStation({
        script: { turns: Array.from({ length: 400 }, (_, number) => ({ say: `Turn ${number}.` })) },
      });
      const run = await station.start({ definition: { harness: { maxSteps: 400 } as never } });
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
      const heard = new Set(of(events, "model.requested").flatMap((event) => event.data.messages));
      expect(sent.filter((message) => !heard.has(message))).toEqual([]);
    }
  });

  test("what is said while the end is written makes the run go on", async () => {
    let station: TestStation;
    let said = "";
    const { log, real } = broken({
      async append(stream, events, options) {
        if (said === "" && events.some((event) => event.type === "run.ended")) {
          said = await station.runs.send(stream.slice("run/".length), { text: "one more thing", mode: "queue", source: "user" });
        }
        return await real.append(stream, events, options);
      },
    });
    await using made = await createTestStation({
      log,
      script: { turns: [{ say: "Done." }, { say: "That too.", expect: { news: ["one more thing"] } }] },
    });
    station = made;
    const { state, events } = await station.finish();
    expect(state.ended).toEqual({ reason: "done", text: "That too." });
    expect(of(events, "model.requested").at(-1)?.data.messages).toEqual([said]);
  });

  test("of two answers at once one counts and the other is refused", async () => {
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

  test("a run that nobody drives is stopped by several at once, without a model, each of them content", async () => {
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

  test("a run that ended by itself cannot be stopped any more, and says so", async () => {
    await using station = await createTestStation({ script: { turns: [{ say: "Done." }] } });
    const { run } = await station.finish();
    await expect(station.runs.stop(run, { by: "me" })).rejects.toMatchObject({
      code: "conflict",
      message: expect.stringContaining("done"),
    });
  });
});

describe("time", () => {
  test("a clock that is set forward by a day is no work of the run", async () => {
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
    const { state } = await station.finish({ definition: { harness: { timeoutMs: 60_000, onBudget: "stop" } as never } });
    expect(state.ended).toMatchObject({ reason: "done" });
    expect(state.workedMs).toBeLessThan(60_000);
  });

  test("waiting for an answer is no work, also after the run was taken over meanwhile; working is", async () => {
    await using station = await createTestStation({
      script: { turns: [{ say: "slow words", pauseMs: 300, calls: [write("secret.txt", "x")] }, { say: "Done." }] },
    });
    const run = await station.start({ definition: { permissions: { "write:secret*": "ask" } } });
    const letGo = new AbortController();
    const first = station.runs.drive(run, { signal: letGo.signal }).catch(() => undefined);
    await station.until(run, "run.paused");
    letGo.abort();
    await first;
    const second = station.second();
    const driven = second.drive(run, { signal: never });
    await station.until(run, "run.claimed", (event) => event.data.epoch === 2);
    const before = (await station.runs.facts(run)).workedMs;
    expect(before).toBeGreaterThanOrEqual(300);
    await new Promise((resolve) => setTimeout(resolve, 400));
    await second.answer(run, { answer: "allow", by: "me" });
    expect((await driven).workedMs - before).toBeLessThan(300);
  });
});

describe("a sandbox that dies", () => {
  const script = {
    turns: [{ calls: [write("a.txt", "kept\n")] }, { calls: [read("a.txt")] }, { calls: [read("a.txt")] }, { say: "Done." }],
  };
  const killAt = (number: number, files: "left" | "gone") => {
    let calls = 0;
    let station: TestStation;
    const before = async () => {
      calls += 1;
      if (calls === number) station.runtime.kill(await sandboxOf(station), { files });
      return { kind: "continue" } as const;
    };
    const watch = (made: TestStation) => {
      station = made;
    };
    return { hooks: { before: [before] }, watch };
  };

  test("takes no files along where they are in it: they are saved before it is removed, and the next one starts from them", async () => {
    const { hooks, watch } = killAt(2, "left");
    await using station = await createTestStation({ script, hooks });
    watch(station);
    const { state, events } = await station.finish();
    expect(state.ended?.reason).toBe("done");
    const results = of(events, "tool.ended").map((event) => event.data.text);
    expect(results[1]).toContain("on the same workspace");
    expect(results[2]).toContain("kept");
    expect(of(events, "run.sandboxed").map(({ data }) => [data.why, data.files])).toEqual([
      ["start", undefined],
      ["lost", "kept"],
    ]);
    // The one that the next run starts from, and no other.
    expect(await station.runtime.snapshots()).toHaveLength(1);
  });

  test("whose files cannot be saved is told as that, never as the opposite", async () => {
    const { hooks, watch } = killAt(2, "gone");
    await using station = await createTestStation({ script, hooks, files: { "a.txt": "as it was\n" } });
    watch(station);
    const { events } = await station.finish();
    const results = of(events, "tool.ended").map((event) => event.data.text);
    expect(results[1]).toMatch(/everything that was changed since .* is gone/);
    expect(results[2]).toContain("as it was");
    expect(of(events, "message.received")[0]?.data).toMatchObject({ source: "system", text: expect.stringContaining("is gone") });
    expect(of(events, "run.sandboxed")[1]?.data.files).toBe("gone");
  });

  test("while nobody drives the run is found dead by the next owner, and its files are saved", async () => {
    await using station = await createTestStation({
      script: {
        turns: [
          { calls: [write("a.txt", "kept\n")] },
          { say: "slow words here", pauseMs: 300 },
          { calls: [read("a.txt")] },
          { say: "Done." },
        ],
      },
    });
    const run = await station.start();
    const letGo = new AbortController();
    const first = station.runs.drive(run, { signal: letGo.signal }).catch(() => undefined);
    await station.until(run, "model.requested", (event) => event.data.step === 2);
    letGo.abort();
    await first;
    station.runtime.kill(await sandboxOf(station));
    const second = station.second();
    await second.send(run, { text: "and read it", mode: "queue", source: "user" });
    await second.drive(run, { signal: never });
    const events = await station.events(run);
    expect(of(events, "tool.ended").at(-1)?.data.text).toContain("kept");
    expect(of(events, "run.sandboxed").at(-1)?.data).toMatchObject({ why: "lost", files: "kept" });
  });

  test("and is removed while nobody drives the run takes its files along, and the agent is told", async () => {
    await using station = await createTestStation({
      script: { turns: [{ calls: [write("a.txt", "lost\n")] }, { say: "slow words here", pauseMs: 300 }] },
    });
    const run = await station.start();
    const letGo = new AbortController();
    const first = station.runs.drive(run, { signal: letGo.signal }).catch(() => undefined);
    await station.until(run, "model.requested", (event) => event.data.step === 2);
    letGo.abort();
    await first;
    await (await station.runtime.open(await sandboxOf(station))).destroy();
    await station.second().drive(run, { signal: never });
    const events = await station.events(run);
    expect(of(events, "run.sandboxed").at(-1)?.data).toMatchObject({ why: "lost", files: "gone" });
    const [told] = of(events, "message.received");
    expect(told?.data.text).toContain("is gone");
    expect(of(events, "model.requested").at(-1)?.data.messages).toEqual([told?.data.message]);
  });

  test("before the first step is replaced once", async () => {
    let made = 0;
    let station: TestStation;
    const options: Parameters<typeof createTestStation>[0] = {
      script: { turns: [{ say: "Done." }] },
      files: { "AGENTS.md": "rules" },
      wrapRuntime: (runtime) => ({
        ...runtime,
        async create(...asked) {
          const sandbox = await runtime.create(...asked);
          made += 1;
          if (made === 1) setImmediate(() => station.runtime.kill(sandbox.id));
          if (made === 1) await sandbox.closed;
          return sandbox;
        },
      }),
    };
    await using running = await createTestStation(options);
    station = running;
    const { state } = await running.finish();
    expect(state.ended?.reason).toBe("done");
    expect(made).toBe(2);
    expect(await running.runtime.list()).toEqual([]);
  });

  test("is not taken for dead because something else fails on the way to it", async () => {
    let failing = false;
    await using station = await createTestStation({
      script: { turns: [{ calls: [write("a.txt", "a")] }, { say: "slow words here", pauseMs: 300 }] },
      wrapRuntime: (runtime) => ({
        ...runtime,
        async open(id, asked) {
          if (failing) throw new CaissonError("unavailable", "the network cannot be served: there is no file /ca.pem");
          return await runtime.open(id, asked);
        },
      }),
    });
    const run = await station.start();
    const letGo = new AbortController();
    const first = station.runs.drive(run, { signal: letGo.signal }).catch(() => undefined);
    await station.until(run, "tool.ended");
    letGo.abort();
    await first;
    const before = await sandboxOf(station);
    failing = true;
    await expect(station.second().drive(run, { signal: never })).rejects.toMatchObject({ code: "unavailable" });
    expect(await sandboxOf(station)).toBe(before);
    failing = false;
    expect((await station.second({ pid: 3 }).drive(run, { signal: never })).ended?.reason).toBe("done");
  });
});

describe("a set-up that fails", () => {
  test("leaves the run to be tried again, and no sandbox", async () => {
    let failing = true;
    const { log, real } = broken({
      async append(stream, events, options) {
        if (failing && events.some(({ type }) => type === "run.sandboxed")) throw new CaissonError("unavailable", "not now");
        return await real.append(stream, events, options);
      },
    });
    await using station = await createTestStation({ log, script: { turns: [{ say: "Done." }] } });
    const run = await station.start();
    for (let attempt = 0; attempt < 2; attempt++) {
      await expect(station.runs.drive(run, { signal: never })).rejects.toMatchObject({ message: "not now" });
      expect(await station.runtime.list()).toEqual([]);
    }
    failing = false;
    expect((await station.runs.drive(run, { signal: never })).ended).toEqual({ reason: "done", text: "Done." });
  });

  test("when it was told to let go leaves its sandbox to the next owner", async () => {
    await using station = await createTestStation({ script: { turns: [{ say: "one two three", pauseMs: 5_000 }] } });
    const run = await station.start();
    const letGo = new AbortController();
    const driven = station.runs.drive(run, { signal: letGo.signal }).catch((error: unknown) => error);
    await station.until(run, "run.sandboxed");
    letGo.abort();
    await driven;
    expect(await station.runtime.list()).toHaveLength(1);
  });
});
