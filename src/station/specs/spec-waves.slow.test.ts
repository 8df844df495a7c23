import { expect, test } from "vitest";
import { MERGED_SESSIONS_MAX } from "../../contract/merge/merge-verbs.ts";
import { crashAt } from "../durable/testing-durable.ts";
import { goodAnswer, keysOf, propose, type StandInResult, settled, useSpecs, whole } from "./testing-specs.ts";

const station = useSpecs();

/** An agent that plans this many independent tasks, and one that waits for all of them. */
function wideAnswer(count: number): (task: string) => StandInResult {
  const id = (index: number) => `TASK-${String(index + 1).padStart(3, "0")}`;
  const wide = Array.from({ length: count }, (_, index) => id(index));
  const of = (task: string, dependsOn: string[]) => ({ id: task, title: task, hours: 1, dependsOn, requirements: ["REQ-001", "REQ-002"] });
  const tasks = [...wide.map((each) => of(each, [])), of(id(count), wide)];
  return (task) => {
    if (task.startsWith("Spec phase: tasks")) return { text: JSON.stringify({ tasks, criticalPath: [id(0), id(count)] }) };
    if (!task.startsWith("Spec phase: sync")) return goodAnswer(task);
    const matrix = ["REQ-001", "REQ-002"].map((requirement) => ({
      requirement,
      components: ["words"],
      tasks: tasks.map((each) => each.id),
    }));
    return { text: JSON.stringify({ matrix, gaps: [], ready: true }) };
  };
}

test.each([
  [16, [16]],
  [17, [9, 8, 2]],
  [33, [11, 11, 11, 3]],
  [49, [12, 13, 12, 12, 4]],
])("merges a wave of %i tasks in rounds within the limit of a merge", async (count, sizes) => {
  const { specs, made: startedRuns, merged } = station({ answer: wideAnswer(count) });
  const view = await whole(specs, { parallel: 16 });
  expect(view, view.ended?.text).toMatchObject({ status: "done" });
  expect(merged.map(({ sessions }) => sessions.length)).toEqual(sizes);
  expect(Math.max(...sizes)).toBeLessThanOrEqual(MERGED_SESSIONS_MAX);
  const wide = startedRuns.slice(6, 6 + count).map(({ session }) => session);
  const rounds = merged.slice(0, -1).length === 0 ? merged : merged.slice(0, -1);
  expect(rounds.flatMap(({ sessions }) => sessions)).toEqual(wide);
  if (rounds !== merged) expect(merged.at(-1)?.sessions).toEqual(rounds.map((_, index) => `merged-${index}`));
  // The task after the wave starts with the result of the whole wave.
  expect(startedRuns.at(-1)).toMatchObject({ from: `merged-${merged.length - 1}` });
});

test("a failed round ends the spec, and resuming repeats only that round", async () => {
  const rig = station({ answer: wideAnswer(17) });
  const { result } = rig.merges;
  let fails = true;
  rig.merges.result = async (merge) => (merge === "1" && fails ? { session: null, text: "too hard" } : await result(merge));
  const failed = await whole(rig.specs, { parallel: 16 });
  expect(failed).toMatchObject({ status: "failed", ended: { text: "the tasks could not be merged: too hard" } });
  fails = false;
  await rig.specs.execute(failed.spec, { by: "ann" });
  expect(await rig.specs.wait(failed.spec)).toMatchObject({ status: "done" });
  expect(rig.merged.map(({ sessions }) => sessions.length)).toEqual([9, 8, 8, 2]);
  expect(keysOf(rig.merged)).toEqual(["merge/1", "merge/2", "merge/3", "merge/4"]);
});

test("merges no round twice, wherever its driver crashes", { timeout: 120_000 }, async () => {
  const expected = station({ answer: wideAnswer(17) });
  await whole(expected.specs, { parallel: 16 });
  // Only the last points, after the end of the tasks, concern merges.
  const counted = crashAt(0);
  const all = station({ answer: wideAnswer(17), crashpoint: counted });
  const { spec: first } = await all.specs.create(propose({ parallel: 16 }));
  await all.specs.execute(first, { by: "ann" });
  await all.specs.wait(first);
  for (let nth = counted.points - 45; nth <= counted.points; nth += 1) {
    const one = station({ answer: wideAnswer(17), crashpoint: crashAt(nth) });
    const { spec } = await one.specs.create(propose({ parallel: 16 }));
    await one.jobs.say(spec, () => [{ type: "spec.executed", data: { by: "ann", from: null, until: "complete" } }]);
    one.jobs.drive(spec);
    await settled(one, spec);
    await one.driver[Symbol.asyncDispose]();
    const two = one.another();
    await two.driver.serve();
    expect((await two.specs.wait(spec)).status, `after point ${nth}`).toBe("done");
    expect(keysOf(one.merged), `after point ${nth}`).toEqual(keysOf(expected.merged));
  }
});

test("the planner writes phases and the coder does tasks, by default", async () => {
  const agents = (runs: readonly { key: string; agent?: string }[]) =>
    runs.map(({ key, agent }) => `${key.split("/")[1]?.replace(/-.*/, "")} ${agent}`);
  const usual = station();
  await whole(usual.specs);
  const six = ["explore", "prd", "requirements", "design", "tasks", "sync"];
  expect(agents(usual.made)).toEqual([...six.map((phase) => `${phase} planner`), "TASK coder", "TASK coder", "TASK coder"]);
  const other = station();
  await whole(other.specs, { runs: { planner: "thinker", coder: "hand", phaseAgents: { explore: "scout", design: "architect" } } });
  const named = ["explore scout", "prd thinker", "requirements thinker", "design architect", "tasks thinker", "sync thinker"];
  expect(agents(other.made)).toEqual([...named, "TASK hand", "TASK hand", "TASK hand"]);
});
