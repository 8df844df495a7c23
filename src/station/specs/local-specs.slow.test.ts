import { describe, expect, test } from "vitest";
import { CaissonError } from "../../contract/error/error.ts";
import {
  executed,
  goodData,
  inWaves,
  keysOf,
  SPECS_NOW as NOW,
  propose,
  type StandInResult,
  threeTasks,
  useSpecs,
  whole,
} from "./testing-specs.ts";

const station = useSpecs();

test("completes all phases, runs tasks in waves, and ends with their merged session", async () => {
  const { specs, made: startedRuns, merged, driver } = station();
  const draft = await specs.create(propose({ name: "words" }));
  expect(draft).toMatchObject({ status: "draft", phase: "explore", version: 0, title: "Count words." });
  const view = await executed(specs, "words");
  expect(view).toMatchObject({ status: "done", phase: "complete", version: 6, session: startedRuns[8]?.session });
  expect(keysOf(startedRuns)).toEqual([
    ...["explore", "prd", "requirements", "design", "tasks", "sync"].map((phase) => `${phase}/1`),
    ...["TASK-001/1", "TASK-002/2", "TASK-003/3"],
  ]);
  expect(merged).toEqual([{ key: `${view.spec}/merge/1`, sessions: startedRuns.slice(6, 8).map(({ session }) => session) }]);
  // The task after a merge starts from its session.
  expect(startedRuns[8]?.from).toBe("merged-0");
  expect(view.coverage.map(({ requirement, state, changes }) => [requirement, state, changes.map(({ path }) => path)])).toEqual([
    ["REQ-001", "done", ["src/task-001.ts"]],
    ["REQ-002", "done", ["src/task-002.ts", "src/task-003.ts"]],
  ]);
  expect(await specs.list()).toMatchObject({ items: [{ spec: view.spec, name: "words", status: "done", phase: "complete", version: 6 }] });
  expect(driver.defects).toEqual([]);
});

test("names are unique per owner, and id prefixes are accepted", async () => {
  const { specs } = station();
  const { spec } = await specs.create(propose({ name: "words" }), { owner: "ann" });
  await expect(specs.create(propose({ name: "words" }), { owner: "ann" })).rejects.toMatchObject({ code: "exists" });
  await specs.create(propose({ name: "words" }));
  expect((await specs.get("words")).owner).toBe("local");
  expect((await specs.get(spec.slice(0, 12))).spec).toBe(spec);
  await expect(specs.get("lines")).rejects.toMatchObject({ code: "not_found" });
  expect((await specs.list({ owner: "ann" })).items.map((each) => each.spec)).toEqual([spec]);
});

test("a page has the requested size, and reports the total", async () => {
  const { specs } = station();
  const ids: string[] = [];
  for (const _ of [1, 2, 3]) ids.unshift((await specs.create(propose())).spec);
  for (const spec of ids.slice(1)) await specs.cancel(spec, { by: "ann" });
  await specs.create(propose());
  const first = await specs.list({ status: "cancelled", limit: 1 });
  expect(first).toMatchObject({ items: [{ status: "cancelled" }], total: 2 });
  const second = await specs.list({ status: "cancelled", limit: 1, cursor: first.next ?? "" });
  expect([...first.items, ...second.items].map(({ spec }) => spec).sort()).toEqual(ids.slice(1).sort());
  expect(await specs.list({ createdBefore: "2000-01-01T00:00:00Z" })).toEqual({ items: [], total: 0, totalIsMinimum: false, next: null });
});

test.each([
  [1, ["spec.task_started", "spec.task_running", "spec.task_ended"]],
  [3, ["spec.task_started", "spec.task_started"]],
])("starts independent tasks together if there is room (%i at a time)", async (parallel, types) => {
  const { specs, log } = station();
  const { spec } = await whole(specs, { parallel });
  const events = (await log.read(`spec/${spec}`)).map(({ type }) => type).filter((type) => type.startsWith("spec.task"));
  expect(events.slice(0, types.length)).toEqual(types);
});

test("runs tasks in sequence on each other's files, without merges", async () => {
  const { specs, made: startedRuns, merged } = station();
  const { session, coverage } = await whole(specs, { parallel: 1 });
  const tasks = startedRuns.slice(6);
  expect(tasks.map(({ from }) => from)).toEqual([null, tasks[0]?.session, tasks[1]?.session]);
  expect([session, merged]).toEqual([tasks[2]?.session, []]);
  expect(coverage.map(({ state }) => state)).toEqual(["done", "done"]);
});

describe("attempts", () => {
  const nonsense = (times: number) => {
    let left = times;
    return (task: string): StandInResult => (task.startsWith("Spec phase: design") && left-- > 0 ? { text: "I am done." } : inWaves(task));
  };

  test("that fail are repeated with growing pauses and feedback", async () => {
    const { specs, made: startedRuns, log } = station({ answer: nonsense(2) });
    const { spec, status } = await whole(specs);
    expect(status).toBe("done");
    const designs = startedRuns.filter(({ key }) => key.includes("/design/"));
    expect(keysOf(designs)).toEqual(["design/1", "design/2", "design/3"]);
    expect(designs[0]?.task).not.toContain("What was wrong before");
    expect(designs[1]?.task).toContain("- the last answer has no JSON");
    const judged = (await log.read(`spec/${spec}`)).filter(({ type }) => type === "spec.phase_judged").map(({ data }) => data);
    const retries = (judged as { retryAt: string | null }[]).flatMap(({ retryAt }) => (retryAt === null ? [] : Date.parse(retryAt) - NOW));
    expect(retries).toEqual([2000, 4000]);
  });

  test("that fail three times fail the phase, which can be resumed", async () => {
    const { specs, made: startedRuns } = station({ answer: nonsense(4) });
    const failed = await whole(specs);
    expect(failed).toMatchObject({ status: "failed", phase: "design", ended: { text: expect.stringContaining("no JSON") } });
    expect(failed.phases.find(({ phase }) => phase === "design")?.state).toBe("failed");
    expect((await executed(specs, failed.spec)).status).toBe("done");
    expect(startedRuns.filter(({ key }) => key.includes("/design/"))).toHaveLength(5);
    expect(startedRuns.filter(({ key }) => key.includes("/explore/"))).toHaveLength(1);
  });

  test("whose run fails count as attempts", async () => {
    const { specs } = station({
      answer: (task) => (task.includes("attempt 1") ? { finish: "error", text: "out of paper" } : inWaves(task)),
    });
    const { status, attempts } = await whole(specs);
    expect(status).toBe("done");
    expect(attempts[0]?.judgement?.checks[0]?.feedback).toContain("ended with error: out of paper");
  });

  test("whose run does not start count as attempts, with the reason", async () => {
    const { specs, runs } = station();
    runs.start = async () => {
      throw new CaissonError("unauthenticated", "there is no key for the model");
    };
    expect(await whole(specs)).toMatchObject({ status: "failed", ended: { text: expect.stringContaining("no key for the model") } });
  });
});

describe("gates", () => {
  test("wait for a person, whose decision is recorded", async () => {
    const { specs } = station();
    const view = await whole(specs, { gates: ["requirements", "design"] });
    const { spec } = view;
    expect(view).toMatchObject({ status: "waiting", phase: "requirements", asked: { phase: "requirements", version: 3 } });
    await expect(specs.decide(spec, { approved: true, version: 2, by: "ann" })).rejects.toMatchObject({ code: "stale" });
    await expect(specs.decide(spec, { approved: true, phase: "design", by: "ann" })).rejects.toMatchObject({ code: "conflict" });
    await specs.decide(spec, { approved: true, version: 3, by: "ann" });
    expect((await specs.wait(spec)).asked).toEqual({ phase: "design", version: 4 });
    await specs.decide(spec, { approved: true, by: "ben" });
    const decisions = [
      { phase: "requirements", version: 3, by: "ann", approved: true },
      { phase: "design", version: 4, by: "ben" },
    ];
    expect(await specs.wait(spec)).toMatchObject({ status: "done", decisions });
    await expect(specs.decide(spec, { approved: true, by: "ann" })).rejects.toMatchObject({ code: "conflict" });
  });

  test("that are rejected repeat the phase with the comment", async () => {
    const { specs, made: startedRuns } = station();
    const { spec } = await whole(specs, { gates: ["requirements"] });
    await expect(specs.decide(spec, { approved: false, by: "ann" })).rejects.toThrow("must say what to change");
    await specs.decide(spec, { approved: false, text: "say more of empty texts", by: "ann" });
    expect((await specs.wait(spec)).asked).toEqual({ phase: "requirements", version: 4 });
    expect(startedRuns.at(-1)?.task).toContain("ann rejected it: say more of empty texts");
    expect(startedRuns.at(-1)?.task).toContain("The previous version of this phase, for you to revise");
    expect((await specs.diff(spec)).diff).toBe("");
  });
});

test("an edit by a person makes later phases stale, and they are rewritten", async () => {
  const { specs, made: startedRuns } = station();
  const { spec } = await whole(specs, { gates: ["requirements"] });
  await specs.decide(spec, { approved: true, by: "ann" });
  await specs.wait(spec);
  const data = { requirements: goodData.requirements.requirements.slice(0, 1) };
  const changed = await specs.edit(spec, { phase: "requirements", data, by: "ann" });
  expect(changed.phases.filter(({ state }) => state === "stale").map(({ phase }) => phase)).toEqual(["design", "tasks", "sync"]);
  expect((await specs.diff(spec)).diff).toMatch(/^-### REQ-002/m);
  // A person's edit still needs approval.
  expect((await executed(specs, spec)).asked).toEqual({ phase: "requirements", version: 7 });
  await specs.decide(spec, { approved: true, by: "ann" });
  expect(await specs.wait(spec)).toMatchObject({ status: "done", data: { requirements: data } });
  expect(startedRuns.filter(({ key }) => key.includes("/prd/"))).toHaveLength(1);
  expect(startedRuns.filter(({ key }) => key.includes("/design/"))).toHaveLength(2);
});

test("rejects cyclic tasks, a phase before earlier ones, and a missing project", async () => {
  const { specs } = station();
  const { spec } = await specs.create({ idea: "Count words.", gates: ["requirements"] });
  await expect(specs.edit(spec, { phase: "design", data: goodData.design, by: "ann" })).rejects.toThrow("explore is not written yet");
  await expect(specs.execute(spec, { by: "ann" })).rejects.toThrow("has no project");
  await executed(specs, spec, { source: { kind: "empty" } });
  await expect(specs.execute(spec, { by: "ann", from: "prd" })).rejects.toMatchObject({ code: "conflict" });
  await expect(specs.remove(spec)).rejects.toMatchObject({ code: "conflict" });
  await specs.decide(spec, { approved: true, by: "ann" });
  await specs.wait(spec);
  const tasks = threeTasks.tasks.map((task) => ({ ...task, dependsOn: ["TASK-003"] }));
  await expect(specs.edit(spec, { phase: "tasks", data: { tasks }, by: "ann" })).rejects.toThrow(
    "wait for each other: TASK-003 → TASK-003",
  );
  await expect(specs.edit(spec, { phase: "tasks", data: { jobs: [] }, by: "ann" })).rejects.toThrow("does not match the schema of tasks");
  await expect(specs.diff(spec, { to: 99 })).rejects.toMatchObject({ code: "not_found" });
  await specs.remove(spec);
  await expect(specs.get(spec)).rejects.toMatchObject({ code: "not_found" });
});

test("can be rewritten from a phase on, and can stop after the plan", async () => {
  const { specs, merged } = station();
  const { spec } = await specs.create(propose());
  expect(await executed(specs, spec, { until: "sync" })).toMatchObject({ status: "planned", phase: "complete" });
  const { versions } = await executed(specs, spec, { until: "sync", from: "design" });
  const first = ["explore", "prd", "requirements", "design", "tasks", "sync"];
  expect(versions.map(({ phase }) => phase)).toEqual([...first, "design", "tasks", "sync"]);
  expect(merged).toEqual([]);
  const { text } = await specs.export(spec, { format: "json", version: 3 });
  expect(Object.keys(JSON.parse(text))).toEqual(["spec", "name", "idea", "version", "explore", "prd", "requirements", "coverage"]);
});

test("a failed task ends the spec with the error, and resuming repeats only that task", async () => {
  let fails = true;
  const { specs, made: startedRuns } = station({
    answer: (task) => (task.startsWith("Spec task: TASK-002") && fails ? { finish: "error", text: "no paper" } : inWaves(task)),
  });
  const failed = await whole(specs);
  expect(failed).toMatchObject({ status: "failed", ended: { text: "TASK-002 ended with error: no paper" } });
  fails = false;
  expect((await executed(specs, failed.spec)).status).toBe("done");
  const tasks = keysOf(startedRuns).filter((key) => key.startsWith("TASK"));
  expect(tasks.map((key) => key.split("/")[0])).toEqual(["TASK-001", "TASK-002", "TASK-002", "TASK-003"]);
});

test("a cancelled spec ends with its runs and can be continued", async () => {
  const { specs, stopped, another } = station();
  const { spec } = await whole(specs, { gates: ["design"] });
  expect(await another().specs.cancel(spec, { by: "ann" })).toMatchObject({ status: "cancelled", ended: { text: "cancelled by ann" } });
  expect(stopped).toEqual([]);
  await expect(specs.cancel(spec, { by: "ann" })).rejects.toMatchObject({ code: "conflict" });
  expect((await executed(specs, spec)).asked).toEqual({ phase: "design", version: 4 });
});
