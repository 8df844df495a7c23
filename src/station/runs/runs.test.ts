import { describe, expect, test } from "vitest";
import { permissionFloor } from "../../agent/permissions.ts";
import type { RunEvent } from "../../contract/run-event.ts";
import { createTestStation } from "./testing.ts";

const write = (path: string, content: string) => ({ tool: "write", arguments: { path, content } });
const read = (path: string) => ({ tool: "read", arguments: { path } });
const types = (events: readonly RunEvent[]) => events.map((event) => event.type);
const ended = (events: readonly RunEvent[]) =>
  events.flatMap((event) => (event.type === "tool.ended" ? [{ outcome: event.data.outcome, text: event.data.text }] : []));
const never = new AbortController().signal;

describe("a run", () => {
  test("goes from the task to the model's last word, every effect between its intent and its outcome", async () => {
    await using station = await createTestStation({
      script: {
        turns: [
          { say: "Writing.", calls: [write("a.txt", "hello\n")], expect: { contains: ["You are coder.", "do it"] } },
          { calls: [read("a.txt")], expect: { news: ["Wrote 6 bytes"] } },
          { say: "Done.", expect: { news: ["hello"], contains: ["do it"] } },
        ],
      },
    });
    const { state, events } = await station.finish();
    expect(state.ended).toEqual({ reason: "done", text: "Done." });
    const shown = types(events).filter((type) => type !== "model.streamed");
    expect(shown.slice(0, 9)).toEqual([
      "run.created",
      "run.claimed",
      "run.sandboxed",
      "step.started",
      "model.requested",
      "model.ended",
      "tool.requested",
      "tool.started",
      "file.changed",
    ]);
    expect(shown.at(-1)).toBe("run.ended");
    expect(shown.filter((type) => type === "run.ended")).toHaveLength(1);
    expect(await station.runtime.list()).toEqual([]);
  });

  test("tells the model what was wrong with a call instead of failing", async () => {
    await using station = await createTestStation({
      script: {
        turns: [
          { calls: [{ tool: "fly", arguments: {} }, { tool: "read", arguments: { pth: 1 } }, read("missing.txt")] },
          { say: "I see.", expect: { news: ["There is no tool", "do not fit", "missing.txt"] } },
        ],
      },
    });
    const { state, events } = await station.finish();
    expect(state.ended?.reason).toBe("done");
    expect(ended(events).map((each) => each.outcome)).toEqual(["error", "error", "error"]);
  });

  test("tries a transient failure of the model again and gives up on others", async () => {
    await using station = await createTestStation({
      script: { turns: [{ say: "There.", fail: { code: "unavailable", times: 1 } }] },
    });
    const { state, events } = await station.finish();
    expect(state.ended?.reason).toBe("done");
    expect(events.filter((event) => event.type === "model.requested").map((event) => event.data.attempt)).toEqual([1, 2]);
    await using broken = await createTestStation({ script: { turns: [{ say: "There.", fail: { code: "invalid", times: 1 } }] } });
    expect((await broken.finish()).state.ended).toMatchObject({ reason: "error", text: expect.stringContaining("Scripted failure") });
  });

  test("asks a model that answers nothing, then ends", async () => {
    await using station = await createTestStation({ script: { turns: [{}, { say: "Sorry. Done." }] } });
    const { state } = await station.finish();
    expect(state.ended?.reason).toBe("done");
    await using mute = await createTestStation({ script: { turns: [{}, {}, {}, {}] } });
    expect((await mute.finish()).state.ended?.reason).toBe("error");
  });
});

describe("budgets", () => {
  const busy = Array.from({ length: 6 }, (_, n) => ({ calls: [write(`f${n}.txt`, `${n}`)] }));

  test("end the run where nobody is to be asked", async () => {
    await using station = await createTestStation({ script: { turns: busy } });
    const { state } = await station.finish({ definition: { harness: { maxSteps: 2, onBudget: "stop" } } });
    expect(state.ended).toMatchObject({ reason: "max_steps" });
    expect(state.step).toBe(2);
  });

  test("pause it and ask; raised, it goes on; declined, it ends", async () => {
    await using station = await createTestStation({ script: { turns: [...busy.slice(0, 3), { say: "Done." }], costUsdPerCall: 1 } });
    const run = await station.start({ budgets: { costUsd: 2 } });
    const driven = station.runs.drive(run, { signal: never });
    const asked = await station.until(run, "permission.asked");
    expect(asked.data).toMatchObject({ kind: "budget", text: expect.stringContaining("$2") });
    await station.runs.answer(run, { answer: "allow", by: "me", budgets: { costUsd: 10 } });
    expect((await driven).ended?.reason).toBe("done");

    const other = await station.start({ budgets: { costUsd: 2 } });
    const again = station.runs.drive(other, { signal: never });
    await station.until(other, "permission.asked");
    await station.runs.answer(other, { answer: "deny", by: "me" });
    expect((await again).ended?.reason).toBe("budget");
  });

  test("time is a budget too, and interrupts what takes too long", async () => {
    await using station = await createTestStation({ script: { turns: [{ say: "one two three four five", pauseMs: 10_000 }] } });
    const { state } = await station.finish({ definition: { harness: { timeoutMs: 1000, onBudget: "stop" } } });
    expect(state.ended?.reason).toBe("timeout");
  });
});

describe("permissions", () => {
  const rules = { permissions: { "write:secret*": "ask", "write:never*": "deny" } } as const;

  test.each([
    ["its caller", { settings: { permissions: "strict" as const } }],
    ["the agent that hands it work", { agent: "boss" }],
  ])("a sub-agent has the preset of %s, whatever its own rules say", async (_, request) => {
    const bash = (command: string) => ({ tool: "bash", arguments: { command } });
    const handing = [{ calls: [{ tool: "agent", arguments: { agent: "helper", task: "help" } }] }, { say: "Done." }];
    const helping = [{ calls: [bash("rm -rf build"), bash("git commit -m x")] }, { say: "Helped.", expect: { news: ["denies"] } }];
    await using station = await createTestStation({
      script: { turns: handing, agents: { helper: helping } },
      agents: {
        coder: { agents: ["helper"] },
        boss: { agents: ["helper"], floor: permissionFloor("strict") },
        helper: { permissions: { "bash:rm -rf build": "allow", "bash:git commit*": "deny" } },
      },
    });
    const { runs } = station.verbs;
    const { run } = await runs.start({ task: "do it", ...request });
    expect(await runs.wait(run)).toMatchObject({ finish: "done" });
    const [sub] = (await runs.list({ parent: run })).runs;
    expect(ended(await station.events(sub?.run ?? "")).map(({ outcome }) => outcome)).toEqual(["denied", "denied"]);
  });

  test("a denied call is told to the model; an asked one waits for an answer from another process", async () => {
    await using station = await createTestStation({
      script: {
        turns: [
          { calls: [write("never.txt", "x"), write("secret.txt", "y")] },
          { say: "Done.", expect: { news: ["denies", "Wrote 1 bytes"] } },
        ],
      },
    });
    const run = await station.start({ definition: rules });
    const driven = station.runs.drive(run, { signal: never });
    const asked = await station.until(run, "permission.asked");
    expect(asked.data.text).toContain("secret.txt");
    await station.second({ pid: 7 }).answer(run, { answer: "allow", by: "somebody" });
    const state = await driven;
    expect(state.ended?.reason).toBe("done");
  });

  test("an answer given while nobody drives the run is found by the next owner", async () => {
    await using station = await createTestStation({
      script: { turns: [{ calls: [write("secret.txt", "y")] }, { say: "Done.", expect: { news: ["A person said no: not that"] } }] },
    });
    const run = await station.start({ definition: rules });
    const letGo = new AbortController();
    const driven = station.runs.drive(run, { signal: letGo.signal }).catch((error: unknown) => error);
    await station.until(run, "run.paused");
    letGo.abort();
    expect(await driven).toMatchObject({ code: "cancelled" });
    await station.runs.answer(run, { answer: "deny", by: "me", text: "not that" });
    expect((await station.second().drive(run, { signal: never })).ended?.reason).toBe("done");
  });

  test("always holds for the rest of the run", async () => {
    await using station = await createTestStation({
      script: { turns: [{ calls: [write("secret1.txt", "y")] }, { calls: [write("secret2.txt", "y")] }, { say: "Done." }] },
    });
    const run = await station.start({ definition: rules });
    const driven = station.runs.drive(run, { signal: never });
    await station.until(run, "permission.asked");
    await station.runs.answer(run, { answer: "always", by: "me" });
    await driven;
    expect((await station.events(run)).filter((event) => event.type === "permission.asked")).toHaveLength(1);
  });
});

describe("messages", () => {
  test("a steer is seen by the next model call, which its receipt names; a queued one waits for the end of the turn", async () => {
    await using station = await createTestStation({
      script: {
        turns: [
          { calls: [write("secret.txt", "y")] },
          { calls: [read("secret.txt")], expect: { news: ["look at b"], absent: ["later"] } },
          { say: "First part done." },
          { say: "All done.", expect: { news: ["later"] } },
        ],
      },
    });
    const run = await station.start({ definition: { permissions: { "write:secret*": "ask" } } });
    const driven = station.runs.drive(run, { signal: never });
    await station.until(run, "permission.asked");
    const steer = await station.runs.send(run, { text: "look at b", mode: "steer", source: "user" });
    const queued = await station.runs.send(run, { text: "later", mode: "queue", source: "user" });
    await station.runs.answer(run, { answer: "allow", by: "me" });
    const state = await driven;
    expect(state.ended).toEqual({ reason: "done", text: "All done." });
    expect(state.receipts.get(steer)).toBe("m2");
    expect(state.receipts.get(queued)).toBe("m4");
  });

  test("an interrupt breaks off the model's answer, and what was said so far stays", async () => {
    await using station = await createTestStation({
      script: {
        turns: [
          { say: "Counting: one two three", pauseMs: 300 },
          { say: "All right.", expect: { contains: ["Counting:"], news: ["stop that"] } },
        ],
      },
    });
    const run = await station.start();
    const driven = station.runs.drive(run, { signal: never });
    await station.until(run, "model.streamed");
    await station.runs.send(run, { text: "stop that", mode: "interrupt", source: "user" });
    const state = await driven;
    expect(state.ended?.text).toBe("All right.");
    expect((await station.events(run)).find((event) => event.type === "model.ended")?.data).toMatchObject({ stop: "interrupted" });
  });

  test("a stop ends it as cancelled, also when nobody drives it", async () => {
    await using station = await createTestStation({ script: { turns: [{ say: "word ".repeat(50), pauseMs: 1000 }] } });
    const run = await station.start();
    const driven = station.runs.drive(run, { signal: never });
    await station.until(run, "model.requested");
    await station.runs.stop(run, { by: "me" });
    expect((await driven).ended?.reason).toBe("cancelled");
    const idle = await station.start();
    await station.runs.stop(idle, { by: "me" });
    expect((await station.runs.state(idle)).ended?.reason).toBe("cancelled");
  });
});

describe("going in circles", () => {
  const same = Array.from({ length: 8 }, () => ({ calls: [read("missing.txt")] }));

  test("the same failing call is nudged after three, then the configured action follows", async () => {
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

  test("two calls that alternate are noticed", async () => {
    const turns = Array.from({ length: 12 }, (_, n) => ({ calls: [read(n % 2 === 0 ? "a" : "b")] }));
    await using station = await createTestStation({ script: { turns } });
    const { events } = await station.finish({ definition: { harness: { doomLoop: { threshold: 3, action: "fail" } } } });
    expect(events.find((event) => event.type === "loop.noticed")?.data).toMatchObject({ pattern: "alternating" });
  });

  test("one who takes the hint is left alone", async () => {
    await using station = await createTestStation({
      script: {
        turns: [...same.slice(0, 3), { calls: [write("x.txt", "1")], expect: { news: ["does not lead further"] } }, { say: "Done." }],
      },
    });
    const { state } = await station.finish({ definition: { harness: { doomLoop: { threshold: 3, action: "fail" } } } });
    expect(state.ended?.reason).toBe("done");
  });
});

describe("compaction", () => {
  test("leaves the task, the rules and the newest steps, and the log whole", async () => {
    const long = "x".repeat(2000);
    const turns = [
      ...Array.from({ length: 8 }, (_, n) => ({ calls: [write(`f${n}.txt`, `${n} ${long}`)] })),
      { say: "Done.", expect: { contains: ["do it", "Always use tabs", "(scripted summary)"], absent: ["0 xxx"] } },
    ];
    await using station = await createTestStation({
      script: { contextTokens: 3000, turns, summary: "(scripted summary)" },
      files: { "AGENTS.md": "Always use tabs.\n" },
    });
    const { state, events } = await station.finish();
    expect(state.ended?.reason).toBe("done");
    expect(events.filter((event) => event.type === "context.compacted").length).toBeGreaterThan(0);
    expect(events.filter((event) => event.type === "tool.requested")).toHaveLength(8);
  });
});

describe("hooks", () => {
  test("block with a reason the model reads, and interrupt the run", async () => {
    await using station = await createTestStation({
      script: { turns: [{ calls: [write("a.txt", "x")] }, { say: "Done.", expect: { news: ["not on Sundays"] } }] },
      hooks: { before: [(call) => (call.tool === "write" ? { kind: "block", reason: "not on Sundays" } : { kind: "continue" })] },
    });
    const { state, events } = await station.finish();
    expect(state.ended?.reason).toBe("done");
    expect(ended(events)).toMatchObject([{ outcome: "blocked" }]);
    await using strict = await createTestStation({
      script: { turns: [{ calls: [write("a.txt", "x")] }, { say: "Done." }] },
      hooks: { before: [() => ({ kind: "block", reason: "x" }), () => ({ kind: "interrupt", reason: "enough" })] },
    });
    expect((await strict.finish()).state.ended).toMatchObject({ reason: "cancelled", text: expect.stringContaining("enough") });
  });
});

describe("sub-agents", () => {
  test("work in the same workspace and count towards the parent's budgets", async () => {
    await using station = await createTestStation({
      script: {
        costUsdPerCall: 1,
        turns: [
          { calls: [{ tool: "agent", arguments: { agent: "helper", task: "write b" } }] },
          { calls: [read("b.txt")], expect: { news: ["b is written"] } },
          { say: "Done.", expect: { news: ["from the helper"] } },
        ],
        agents: {
          helper: [
            { calls: [write("b.txt", "from the helper")], expect: { contains: ["write b"], absent: ["do it"] } },
            { say: "b is written" },
          ],
        },
      },
      agents: { helper: { description: "helps" } },
    });
    const { state } = await station.finish({ definition: { agents: ["helper"] } });
    expect(state.ended?.reason).toBe("done");
    expect(state.costUsd).toBe(5);
    const { runs } = await station.verbs.runs.list();
    expect(runs).toHaveLength(2);
    expect(runs.find(({ parent }) => parent !== null)).toMatchObject({ parent: { run: state.run, call: "t1.1" } });
  });
});

describe("ownership", () => {
  test("a run has one owner at a time; a dead one's run is taken over and goes on", async () => {
    await using station = await createTestStation({
      script: { turns: [{ calls: [write("a.txt", "x")] }, { say: "slow words here", pauseMs: 500 }] },
    });
    const run = await station.start();
    const letGo = new AbortController();
    const driven = station.runs.drive(run, { signal: letGo.signal }).catch((error: unknown) => error);
    await station.until(run, "tool.ended");
    letGo.abort();
    await driven;
    const state = await station.second().drive(run, { signal: never });
    expect(state.ended?.reason).toBe("done");
    const events = await station.events(run);
    expect(events.filter((event) => event.type === "tool.started")).toHaveLength(1);
    expect(events.filter((event) => event.type === "run.claimed").map((event) => event.data.epoch)).toEqual([1, 2]);
  });

  test("a session in use refuses a second run and says who has it", async () => {
    await using station = await createTestStation({ script: { turns: [{ say: "word word word", pauseMs: 2000 }] } });
    const run = await station.start();
    const driven = station.runs.drive(run, { signal: never });
    await station.until(run, "model.requested");
    const { session, definition } = await station.runs.state(run);
    const other = await station.runs.create({ definition, task: "also", model: "scripted", session });
    await expect(station.runs.drive(other, { signal: never })).rejects.toMatchObject({
      code: "conflict",
      message: expect.stringContaining(run),
    });
    await station.runs.stop(run, { by: "me" });
    await driven;
  });
});
