import { expect, test } from "vitest";
import { phaseText, taskLevels } from "./phase-text.ts";

test("a phase is told under headings, and what it has nothing of is left out", () => {
  const requirements = [{ id: "R1", statement: "The program shall count words.", criteria: ["two words are 2"] }];
  expect(phaseText("requirements", { requirements: { requirements } })).toEqual([
    { title: "Requirements", lines: [{ id: "R1", text: "The program shall count words.", notes: ["two words are 2"] }] },
  ]);
  const explore = { summary: "small", keyFiles: [], scope: { inside: [], outside: [] }, questions: [] };
  expect(phaseText("explore", { explore }).map(({ title }) => title)).toEqual(["What is there"]);
  expect(phaseText("design", {})).toEqual([]);
});

test("tasks stand in the order in which they can be done", () => {
  const task = (id: string, ...dependsOn: string[]) => ({ id, dependsOn });
  const levels = (...tasks: ReturnType<typeof task>[]) => taskLevels(tasks).map((level) => level.map(({ id }) => id));
  expect(levels(task("c", "a", "b"), task("a"), task("b"), task("d", "c"))).toEqual([["a", "b"], ["c"], ["d"]]);
  expect(levels(task("a", "gone"))).toEqual([["a"]]);
  expect(levels(task("a", "b"), task("b", "a"))).toEqual([["a", "b"]]);
  expect(levels()).toEqual([]);
});
