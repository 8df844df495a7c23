import { expect, test } from "vitest";
import { Config } from "../../contract/config/config.ts";
import type { NewRunEvent } from "../../contract/run/run-event.ts";
import { createMemoryLog } from "../../log/memory/log.ts";
import type { Judgement } from "./judge.ts";
import { createLocalGuardian } from "./local-guardian.ts";
import {
  append,
  edit,
  eventsOf,
  guarding,
  next,
  RUN,
  repeated,
  runBegan,
  same,
  settingsOf,
  stepEvents,
  steps,
  until,
} from "./testing-guardian.ts";

test("nudges a looping run once, and records the progress that follows", async () => {
  const log = createMemoryLog();
  guarding(log, settingsOf());
  await append(log, [
    ...runBegan(),
    ...steps(
      1,
      repeated(7, () => same),
    ),
    ...next(8),
  ]);
  await until(async () => (await eventsOf(log, "guardian.decided")).length === 1);
  const all = await log.read(`run/${RUN}`);
  const at = all.findIndex(({ type }) => type === "guardian.decided");
  expect(all[at]).toMatchObject({ data: { action: "nudge", findings: [{ detector: "repetition" }] } });
  expect(all[at + 1]).toMatchObject({ type: "message.received", data: { source: "guardian", mode: "steer" }, at: all[at]?.at });
  await append(log, [...steps(9, [edit(1)]), ...next(10)]);
  await until(async () => (await eventsOf(log, "guardian.settled")).length === 1);
  expect(await eventsOf(log, "guardian.settled")).toMatchObject([{ effect: "progress", text: "a file was changed" }]);
  expect(await eventsOf(log, "guardian.decided")).toHaveLength(1);
});

test("pauses a run that ignores a nudge, and stops it only if allowed", async () => {
  for (const [atMost, types] of [
    ["pause", ["guardian.decided", "permission.asked", "run.paused"]],
    ["stop", ["guardian.decided", "run.stop_requested"]],
  ] as const) {
    const log = createMemoryLog();
    guarding(log, settingsOf({ atMost, bands: atMost === "stop" ? { stop: 0.5, pause: 0 } : {} }));
    await append(log, [
      ...runBegan(),
      ...steps(
        1,
        repeated(16, () => same),
      ),
      ...next(17),
    ]);
    await until(async () => (await eventsOf(log, "guardian.decided")).length === 1);
    await append(log, [
      ...steps(
        18,
        repeated(7, () => same),
      ),
      ...next(25),
    ]);
    await until(async () => (await eventsOf(log, "guardian.decided")).length === 2);
    expect(await eventsOf(log, "guardian.settled")).toMatchObject([{ effect: "none" }]);
    const all = await log.read(`run/${RUN}`);
    expect(all.slice(all.findLastIndex(({ type }) => type === "guardian.decided")).map(({ type }) => type)).toEqual(types);
  }
});

test("a restarted guardian repeats no decision, and still settles effects", async () => {
  const log = createMemoryLog();
  const first = guarding(log, settingsOf());
  await append(log, [
    ...runBegan(),
    ...steps(
      1,
      repeated(7, () => same),
    ),
    ...next(8),
  ]);
  await until(async () => (await eventsOf(log, "guardian.decided")).length === 1);
  await first[Symbol.asyncDispose]();
  await append(log, [...steps(9, [same]), ...next(10)]);
  guarding(log, settingsOf());
  await append(log, [...steps(11, [same, edit(1)]), ...next(13)]);
  await until(async () => (await eventsOf(log, "guardian.settled")).length === 1);
  expect(await eventsOf(log, "guardian.decided")).toHaveLength(1);
  expect(await eventsOf(log, "message.received")).toHaveLength(1);
});

test("a guardian evaluates runs that looped before it started", async () => {
  const log = createMemoryLog();
  await append(log, [
    ...runBegan(),
    ...steps(
      1,
      repeated(7, () => same),
    ),
    ...next(8),
  ]);
  guarding(log, settingsOf());
  await until(async () => (await eventsOf(log, "guardian.decided")).length === 1);
});

test("ignores runs that opted out, or that did not opt in where that is required", async () => {
  for (const [guardian, watch] of [
    [{ enabled: false }, "all"],
    [undefined, "asked"],
  ] as const) {
    const log = createMemoryLog();
    guarding(log, settingsOf({ watch }));
    await append(log, [
      ...runBegan(guardian === undefined ? {} : { guardian }),
      ...steps(
        1,
        repeated(30, () => same),
      ),
      ...next(31),
    ]);
    const other = "run_zzzzzzzzzzzz";
    const otherRun = { run: other, owner: "else", guardian: { enabled: true } };
    await append(
      log,
      [
        ...runBegan(otherRun),
        ...steps(
          1,
          repeated(7, () => same),
        ),
        ...next(8),
      ],
      other,
    );
    await until(async () => (await eventsOf(log, "guardian.decided", other)).length === 1);
    expect(await eventsOf(log, "guardian.decided")).toEqual([]);
  }
});

test("reports its own failures without disturbing the run", async () => {
  const log = createMemoryLog();
  const defects: unknown[] = [];
  const failing = Promise.reject(new Error("the judge is out"));
  failing.catch(() => undefined);
  guarding(log, settingsOf({ judge: { model: "x", everySteps: 1 } }), {
    judge: () => failing,
    onDefect: (error) => void defects.push(error),
  });
  for (let step = 1; step <= 20; step++)
    await append(log, step === 1 ? [...runBegan(), ...stepEvents(1, [same])] : stepEvents(step, [same]));
  await until(async () => defects.length >= 1);
  expect((await log.read(`run/${RUN}`)).some(({ type }) => type.startsWith("guardian."))).toBe(false);
});

test("asks a judge every few steps within limits, and acts on a low score", async () => {
  const log = createMemoryLog();
  let judgeCalls = 0;
  const judgement: Judgement = {
    model: "scripted",
    coherence: 0.2,
    text: "works on icons",
    usage: { inputTokens: 1, outputTokens: 1, cachedInputTokens: 0, reasoningTokens: 0 },
    costUsd: 0.1,
  };
  guarding(log, settingsOf({ judge: { model: "scripted", everySteps: 5, callsMax: 2, costUsdMax: 10 } }), {
    judge: async () => {
      judgeCalls += 1;
      return judgement;
    },
  });
  await append(log, runBegan());
  for (let step = 1; step <= 40; step++) {
    await append(log, stepEvents(step, [edit(step)]));
    if (step === 7) await until(async () => (await eventsOf(log, "guardian.decided")).length === 1);
  }
  await until(async () => (await eventsOf(log, "guardian.judged")).length === 2);
  expect(judgeCalls).toBe(2);
  expect((await eventsOf(log, "guardian.decided"))[0]).toMatchObject({ action: "nudge", findings: [{ detector: "drift" }] });
  const verbs = createLocalGuardian({ stateDir: "/nowhere", log, alive: () => false, config: Config.parse({}) });
  expect((await verbs.explain(RUN)).standing.judge).toEqual({ calls: 2, costUsd: 0.2 });
});

test("lowers the priority of a waiting duplicate once", async () => {
  const log = createMemoryLog();
  const requeued: string[] = [];
  guarding(log, settingsOf({ atMost: "stop" }), { requeue: async (run) => void requeued.push(run) });
  await append(log, [...runBegan(), ...steps(1, [edit(1)]), ...next(2)]);
  const waiting = "run_zzzzzzzzzzzz";
  const queued: NewRunEvent = { type: "run.queued", data: { by: "user", for: "start", priority: 0, startAt: null } };
  const [created] = runBegan({ run: waiting });
  await append(log, [created as NewRunEvent, queued], waiting);
  await until(async () => (await eventsOf(log, "run.prioritized", waiting)).length === 1);
  expect(await eventsOf(log, "run.prioritized", waiting)).toEqual([{ by: "guardian", priority: -10 }]);
  await until(async () => requeued.length === 1);
});

test("the log alone yields the list, the explanation and the run's score", async () => {
  const log = createMemoryLog();
  const guardian = guarding(log, settingsOf());
  await append(log, [
    ...runBegan(),
    ...steps(
      1,
      repeated(7, () => same),
    ),
    ...next(8),
  ]);
  await until(async () => (await eventsOf(log, "guardian.decided")).length === 1);
  await guardian[Symbol.asyncDispose]();
  const config = { ...Config.parse({}), guardian: settingsOf() };
  const verbs = createLocalGuardian({ stateDir: "/nowhere", log, alive: () => false, config });
  expect(await verbs.log()).toMatchObject([{ run: RUN, action: "nudge", effect: null }]);
  expect(await verbs.log({ run: RUN.slice(0, 8) })).toHaveLength(1);
  expect(await verbs.log({ owner: "else" })).toEqual([]);
  expect(await verbs.status()).toMatchObject({ running: false, runs: [{ run: RUN, watched: true, atMost: "pause", idleSteps: 7 }] });
  const end: NewRunEvent = {
    type: "run.ended",
    data: {
      reason: "done",
      text: "",
      steps: 8,
      usage: { inputTokens: 0, outputTokens: 0, cachedInputTokens: 0, reasoningTokens: 0 },
      costUsd: 0,
    },
  };
  await append(log, [end]);
  expect(await verbs.log()).toMatchObject([{ effect: "ended" }]);
  expect(await verbs.explain(RUN)).toMatchObject({
    standing: { watched: false, why: "it has ended" },
    decisions: [{ action: "nudge", effect: "ended", findings: [{ detector: "repetition", events: expect.any(Array) }] }],
  });
  await expect(verbs.explain("run_aaaaaaaaaaaa")).rejects.toMatchObject({ code: "not_found" });
});
