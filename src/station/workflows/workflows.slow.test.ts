// biome-ignore-all lint/suspicious/noTemplateCurlyInString: expressions of workflows are written so.
import { afterEach, describe, expect, test } from "vitest";
import type { WorkflowView } from "../../contract/workflow/workflow-verbs.ts";
import { createMemoryLog } from "../../log/memory/log.ts";
import type { Json } from "../../workflow/state.ts";
import { ownerOf } from "../durable/testing-durable.ts";
import { createTestWorkflows, type TestWorkflows } from "./testing-workflows.ts";

const open: AsyncDisposable[] = [];
afterEach(async () => {
  for (const each of open.splice(0).reverse()) await each[Symbol.asyncDispose]();
});

type Command = Parameters<typeof createTestWorkflows>[0]["command"];

/**
 * `echo` returns its arguments, `fail` fails, `fail-once` fails on its first attempt only, and `hang` hangs until it is
 * cancelled.
 */
const world: Command = async ({ argv, attempt, cancel }, signal) => {
  const [program = "", ...words] = argv;
  if (cancel === true) return { status: "cancelled" };
  if (program === "fail" || (program === "fail-once" && attempt === 1))
    return { status: "failed", error: { code: "exit", text: `${program} failed` } };
  if (program === "hang") {
    if (!signal.aborted) await new Promise((resolve) => signal.addEventListener("abort", resolve));
    return { status: "cancelled" };
  }
  return { status: "completed", output: { exitCode: 0, stdout: words.join(" ") } };
};

function workflows(options: Partial<Parameters<typeof createTestWorkflows>[0]> = {}): TestWorkflows {
  const station = createTestWorkflows({ log: createMemoryLog(), command: world, ...options });
  open.push(station);
  return station;
}

const echo = (name: string, ...words: string[]) => ({ name, kind: "command", argv: ["echo", ...words] });

async function outcomeOf(definition: object, input: Record<string, Json> = {}): Promise<WorkflowView> {
  const { verbs, driver } = workflows();
  const { id } = await verbs.start({ definition: { name: "test", ...definition } as Json, input });
  const view = await verbs.wait(id);
  expect(driver.defects).toEqual([]);
  return view;
}

const RICH = {
  name: "rich",
  input: {
    type: "object",
    required: ["names"],
    properties: { names: { type: "array", items: { type: "string" } }, mode: { type: "string", default: "fast" } },
  },
  data: { seen: [] },
  steps: [
    { name: "first", kind: "command", argv: ["echo", "${input.mode}", "${input.names[0]}"], result: "first.line" },
    { name: "note", kind: "set", data: { upper: "${steps.first.output.stdout + '!'}" } },
    { name: "never", kind: "fail", text: "not this", when: "input.mode == 'slow'" },
    {
      name: "pick",
      kind: "switch",
      cases: [{ when: "size(input.names) > 1", steps: [echo("many", "${string(size(input.names))}")] }],
      default: [echo("few", "few")],
    },
    {
      name: "both",
      kind: "parallel",
      branches: { left: [echo("l1", "left"), echo("l2", "${steps.l1.output.stdout}")], right: [echo("r1", "right")] },
    },
    { name: "each", kind: "foreach", in: "input.names", concurrency: 2, steps: [echo("hello", "hello", "${item}", "${string(index)}")] },
    { name: "again", kind: "command", argv: ["fail-once"], retry: { attempts: 3, backoff: "1ms" } },
    {
      name: "guard",
      kind: "try",
      steps: [{ name: "bad", kind: "command", argv: ["fail"] }],
      catch: [echo("sorry", "${error.code}")],
      finally: [echo("tidy", "tidied")],
    },
    { name: "nap", kind: "timer", for: "1ms" },
    { name: "ask", kind: "approval", text: "May ${input.names[0]} go on?" },
    { name: "hear", kind: "signal", signal: "deployed" },
    {
      name: "sub",
      kind: "workflow",
      input: { word: "${steps.hear.output.word}" },
      definition: { name: "inner", steps: [echo("say", "${input.word}")], output: { said: "${steps.say.output.stdout}" } },
    },
  ],
  output: {
    first: "${data.first.line.stdout}",
    upper: "${data.upper}",
    pick: "${steps.pick.output.stdout}",
    both: "${steps.both.output.left.output.stdout}",
    each: "${steps.each.output.map(e, e.output.stdout)}",
    caught: "${steps.guard.output.stdout}",
    approved: "${steps.ask.output.approved}",
    sub: "${steps.sub.output.said}",
  },
};
const RICH_OUTPUT = {
  first: "fast ana",
  upper: "fast ana!",
  pick: "2",
  both: "left",
  each: ["hello ana 0", "hello bo 1"],
  caught: "exit",
  approved: true,
  sub: "hi",
};

/** Gives the workflow each answer and signal that it waits for, until it ends. */
async function attend({ verbs, driver, jobs }: TestWorkflows, id: string): Promise<WorkflowView> {
  const end = new AbortController();
  const over = verbs.wait(id).finally(() => end.abort());
  const answered = new Set<string>();
  for await (const { type } of verbs.events(id, { follow: true, signal: end.signal })) {
    if (type !== "driven.waiting") continue;
    const { waits } = await jobs.get(id);
    if (waits?.person != null && !answered.has("person"))
      await verbs.approve(id, { approved: true, by: "ana" }).then(
        () => answered.add("person"),
        () => undefined,
      );
    if (waits?.signal != null) await verbs.signal(id, { name: "deployed", data: { word: "hi" }, key: "one", by: "ana" });
  }
  expect(driver.defects).toEqual([]);
  return await over;
}

describe("a workflow", () => {
  test("runs steps of every kind and returns the defined output", async () => {
    const station = workflows();
    const { id } = await station.verbs.start({ definition: RICH as Json, input: { names: ["ana", "bo"] } });
    const view = await attend(station, id);
    expect(view).toMatchObject({ finish: "completed", output: RICH_OUTPUT });
    expect(view.steps.find(({ path }) => path === "never")).toMatchObject({ status: "skipped" });
    expect(view.steps.find(({ path }) => path === "again")).toMatchObject({ attempt: 2, status: "completed" });
    expect((await station.verbs.list({ parent: `workflow/${id}` })).items).toHaveLength(1);
  });

  test("ends the same after a crash at any event, and repeats no finished step", async () => {
    const whole = workflows();
    const { id } = await whole.verbs.start({ definition: RICH as Json, input: { names: ["ana", "bo"] } });
    await attend(whole, id);
    const events = await readAll(whole, id);
    const [inner] = (await whole.verbs.list({ parent: `workflow/${id}` })).items;
    const ofInner = await readAll(whole, inner?.id ?? "");
    expect(events.length).toBeGreaterThan(50);
    for (let cut = 2; cut < events.length; cut++) {
      const half = createMemoryLog();
      await half.append(`workflow/${id}`, events.slice(0, cut));
      if (events.slice(0, cut).some(({ type }) => type === "workflow.child_started")) await half.append(`workflow/${inner?.id}`, ofInner);
      const next = workflows({ log: half, pid: 2, gone: new Set([ownerOf(1)]) });
      const done = new Set(
        events
          .slice(0, cut)
          .flatMap(({ type, data }) =>
            type === "workflow.step_ended" ? [`${id}/${(data as { path: string }).path}#${(data as { attempt: number }).attempt}`] : [],
          ),
      );
      await next.driver.serve();
      const view = await attend(next, id);
      expect(view, `cut after ${cut}`).toMatchObject({ finish: "completed", output: RICH_OUTPUT });
      expect(
        next.asked.filter((effect) => done.has(effect)),
        `cut after ${cut}`,
      ).toEqual([]);
      await next[Symbol.asyncDispose]();
    }
  });

  test.each([
    ["all, failing fast", { join: "all" }, "failed"],
    ["any", { join: "any" }, "completed"],
    ["one of them", { join: 1 }, "completed"],
  ])("joins %s", async (_, join, finish) => {
    const view = await outcomeOf({
      steps: [
        {
          name: "race",
          kind: "parallel",
          ...join,
          branches: {
            slow: [{ name: "hang", kind: "command", argv: ["hang"] }],
            other: [{ name: "other", kind: "command", argv: finish === "failed" ? ["fail"] : ["echo", "quick"] }],
          },
        },
      ],
    });
    expect(view.finish).toBe(finish);
    expect(view.steps.find(({ path }) => path === "race/slow/hang")).toMatchObject({ status: "cancelled" });
  });

  test("that is cancelled ends its active steps and runs its `finally` steps", async () => {
    const station = workflows();
    const definition = {
      name: "stopped",
      steps: [
        { name: "t", kind: "try", steps: [{ name: "hang", kind: "command", argv: ["hang"] }], finally: [echo("tidy", "x")] },
        echo("never", "x"),
      ],
    };
    const { id } = await station.verbs.start({ definition: definition as Json });
    for await (const { type, data } of station.verbs.events(id, { follow: true })) {
      if (type === "workflow.step_started" && (data as { path: string }).path === "t/try/hang") break;
    }
    await station.verbs.cancel(id, { by: "ana", text: "enough" });
    const view = await station.verbs.wait(id);
    expect(view).toMatchObject({ finish: "cancelled", text: "enough" });
    expect(Object.fromEntries(view.steps.map(({ path, status }) => [path, status]))).toEqual({
      t: "cancelled",
      "t/try/hang": "cancelled",
      "t/finally/tidy": "completed",
    });
  });

  test("handles a step's timeout in `catch`, and ends at its own time limit", async () => {
    const caught = await outcomeOf({
      steps: [
        {
          name: "t",
          kind: "try",
          steps: [{ name: "hang", kind: "command", argv: ["hang"], timeout: "1ms" }],
          catch: [echo("late", "${error.code}")],
        },
      ],
    });
    expect(caught).toMatchObject({ finish: "completed", output: { stdout: "timeout" } });
    expect(await outcomeOf({ timeout: "1ms", steps: [{ name: "hang", kind: "command", argv: ["hang"] }] })).toMatchObject({
      finish: "timed_out",
    });
  });

  test("that failed continues from the failed step, and repeats no finished step", async () => {
    let isMended = false;
    const station = workflows({
      command: (effect, signal) =>
        isMended && effect.argv[0] === "fail" ? { status: "completed", output: { stdout: "mended" } } : world(effect, signal),
    });
    const definition = {
      name: "mended",
      steps: [echo("one", "1"), { name: "p", kind: "parallel", branches: { a: [{ name: "bad", kind: "command", argv: ["fail"] }] } }],
    };
    const { id } = await station.verbs.start({ definition: definition as Json });
    expect(await station.verbs.wait(id)).toMatchObject({ finish: "failed", text: "fail failed" });
    isMended = true;
    await station.verbs.retry(id, { by: "ana" });
    expect(await station.verbs.wait(id)).toMatchObject({ finish: "completed", output: { a: { output: { stdout: "mended" } } } });
    expect(station.asked).toEqual([`${id}/one#1`, `${id}/p/a/bad#1`, `${id}/p/a/bad#2`]);
    await expect(station.verbs.retry(id, { by: "ana" })).rejects.toMatchObject({ code: "conflict" });
  });

  test("stores early signals, and counts a repeated key once", async () => {
    const station = workflows();
    const definition = {
      name: "signals",
      steps: [
        { name: "ask", kind: "approval", text: "?" },
        { name: "a", kind: "signal", signal: "go" },
        { name: "b", kind: "signal", signal: "go" },
      ],
    };
    const { id } = await station.verbs.start({ definition: definition as Json });
    await station.verbs.wait(id, { orPerson: true });
    for (const key of ["1", "1", "2"]) await station.verbs.signal(id, { name: "go", data: key, key, by: "ana" });
    await station.verbs.approve(id, { approved: true, by: "ana" });
    expect(await station.verbs.wait(id)).toMatchObject({ finish: "completed", output: "2" });
    await expect(station.verbs.approve(id, { approved: true, by: "ana" })).rejects.toMatchObject({ code: "conflict" });
  });

  test("fails at a rejected approval, with the name and the reason", async () => {
    const station = workflows();
    const { id } = await station.verbs.start({
      definition: { name: "no", steps: [{ name: "ask", kind: "approval", text: "Merge?" }] } as Json,
    });
    await station.verbs.wait(id, { orPerson: true });
    await station.verbs.approve(id, { approved: false, text: "not yet", by: "bo" });
    expect(await station.verbs.wait(id)).toMatchObject({ finish: "failed", text: "bo denied it: not yet" });
  });

  test("is not created if its input does not match its definition", async () => {
    const { verbs } = workflows();
    await expect(verbs.start({ definition: RICH as Json, input: { names: "ana" } })).rejects.toMatchObject({
      code: "invalid",
      message: "input.names must be an array",
    });
    await expect(verbs.start({ definition: RICH as Json, input: { names: ["x".repeat(10_000_000)] } })).rejects.toMatchObject({
      code: "too_large",
    });
    await expect(verbs.start({ definition: { name: "x", steps: [] } as Json })).rejects.toMatchObject({ code: "invalid" });
    expect((await verbs.list()).items).toEqual([]);
  });
});

async function readAll(station: TestWorkflows, id: string) {
  const events: { type: string; version: number; data: object }[] = [];
  for await (const event of station.verbs.events(id)) {
    const { type, version, data } = event as unknown as { type: string; version: number; data: object };
    events.push({ type, version, data });
  }
  return events;
}
