import { describe, expect, test } from "vitest";
import type { RequestClass } from "./request-class.ts";
import { createRequestScheduler } from "./request-scheduler.ts";

/** A scheduler with manual clock, turns and timers. Started requests are answered by `answer`. */
function manual({ lateMs = 0 } = {}) {
  let nowMs = 0;
  let turns: (() => void)[] = [];
  let timers: { atMs: number; work: () => void }[] = [];
  const started: string[] = [];
  const refused: { name: string; why: string; retryAfterSeconds: number }[] = [];
  const open = new Map<string, () => void>();
  const scheduler = createRequestScheduler({
    loopDelayMs: () => lateMs,
    now: () => nowMs,
    nextTurn: (work) => turns.push(work),
    later: (work, delayMs) => timers.push({ atMs: nowMs + delayMs, work }),
  });
  const turn = () => {
    const due = turns;
    turns = [];
    for (const work of due) work();
  };
  const answer = (name: string) => {
    open.get(name)?.();
    open.delete(name);
    turn();
  };
  return {
    scheduler,
    started,
    refused,
    submit: (name: string, kind: RequestClass, key: string) =>
      scheduler.submit({
        kind,
        key,
        start(done) {
          started.push(name);
          open.set(name, done);
        },
        refuse: (refusal) => refused.push({ name, ...refusal }),
      }),
    answer,
    pass(ms: number) {
      nowMs += ms;
      const due = timers.filter(({ atMs }) => atMs <= nowMs);
      timers = timers.filter(({ atMs }) => atMs > nowMs);
      for (const { work } of due) work();
      turn();
    },
    drain() {
      while (open.size > 0) for (const name of [...open.keys()]) answer(name);
    },
  };
}

const many = (count: number) => Array.from({ length: count }, (_, at) => at);

describe("the request scheduler", () => {
  test("starts requests at once while there is room", () => {
    const { submit, started } = manual();
    for (const at of many(8)) submit(`ada ${at}`, "list", "ada");
    expect(started).toHaveLength(8);
  });

  test("serves an owner with one request before the rest of a flood", () => {
    const { submit, answer, started } = manual();
    for (const at of many(60)) submit(`ada ${at}`, "list", "ada");
    submit("bob", "list", "bob");
    answer("ada 0");
    answer("ada 1");
    expect(started.indexOf("bob")).toBeLessThan(10);
    expect(started).toContain("bob");
  });

  test("serves health and stops before work, and work before lists", () => {
    const { submit, drain, started } = manual();
    for (const at of many(8)) submit(`busy ${at}`, "work", "ada");
    submit("list", "list", "ada");
    submit("work", "work", "ada");
    submit("stop", "control", "ada");
    submit("health", "vital", "ada");
    drain();
    expect(started.slice(8)).toEqual(["health", "stop", "work", "list"]);
  });

  test("refuses the lists of a caller with too many waiting, and keeps its stops", () => {
    const { submit, pass, drain, started, refused } = manual();
    for (const at of many(200)) submit(`ada ${at}`, "list", "ada");
    submit("stop", "control", "ada");
    pass(200);
    drain();
    expect(started).toContain("stop");
    expect(refused.length).toBeGreaterThan(100);
    expect(refused.every(({ why, retryAfterSeconds }) => why === "share" && retryAfterSeconds >= 1)).toBe(true);
  });

  test("makes room for another owner when the whole queue is full", () => {
    const { submit, refused } = manual();
    for (const key of ["a", "b", "c", "d"]) for (const at of many(64 + (key === "a" ? 8 : 0))) submit(`${key} ${at}`, "work", key);
    submit("eve", "work", "eve");
    expect(refused).toHaveLength(1);
    expect(refused[0]?.name).not.toBe("eve");
  });

  test("refuses requests that waited too long while their caller kept a queue", () => {
    const { submit, pass, refused } = manual();
    for (const at of many(12)) submit(`ada ${at}`, "list", "ada");
    pass(1_500);
    expect(refused.map(({ name, why }) => `${name}: ${why}`)).toEqual(many(4).map((at) => `ada ${at + 8}: overload`));
  });

  test("delays refusals when there are many of them", () => {
    const { submit, refused, pass, scheduler } = manual();
    for (const at of many(400)) submit(`ada ${at}`, "list", "ada");
    const atOnce = refused.length;
    expect(atOnce).toBeLessThan(100);
    pass(200);
    const { list } = scheduler.figures().refused;
    expect(list).toBeGreaterThan(atOnce);
    expect(refused.length).toBeGreaterThanOrEqual(list - 30);
  });

  test("runs fewer requests at once while the event loop is late", () => {
    const late = manual({ lateMs: 500 });
    for (const _ of many(10)) late.pass(200);
    for (const at of many(10)) {
      late.pass(101);
      late.submit(`first ${at}`, "work", "ada");
      late.answer(`first ${at}`);
    }
    for (const at of many(10)) late.submit(`ada ${at}`, "work", "ada");
    expect(late.started.filter((name) => name.startsWith("ada"))).toHaveLength(4);
  });

  test("forgets a request whose caller disconnected", () => {
    const { submit, drain, started, scheduler } = manual();
    for (const at of many(8)) submit(`busy ${at}`, "work", "ada");
    submit("gone", "work", "bob").cancel();
    expect(scheduler.figures().waiting).toBe(0);
    drain();
    expect(started).not.toContain("gone");
  });
});
