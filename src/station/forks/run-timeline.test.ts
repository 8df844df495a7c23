import { expect, test } from "vitest";
import { createTestStation, write } from "../../../test/support/testing-runs.ts";
import type { Script } from "../../agent/model/scripted-model.ts";

const script: Script = {
  turns: [{ calls: [write("a.txt", "one\n")] }, { say: "One." }, { calls: [write("a.txt", "two\n")] }, { say: "Two." }],
  costUsdPerCall: 1,
};
const by = "me";

test("the timeline of every run of a family shows the others", async () => {
  await using station = await createTestStation({ script });
  const { runs } = station.verbs;
  const { run } = await runs.start({ task: "do it", source: { kind: "folder", path: station.folder } });
  await runs.wait(run);
  const [fork] = await runs.fork(run, { by });
  const forkId = fork?.run ?? "";
  await runs.continue(forkId, { text: "go on", by });
  await runs.wait(forkId);
  const { tail } = await runs.rewind(forkId, { to: 2, by });
  const names = (relatives: readonly { run: string; isTail: boolean }[]) => relatives.map((each) => [each.run, each.isTail]);

  const parents = await runs.timeline(run);
  expect(names(parents.forks)).toEqual([
    [forkId, false],
    [tail, true],
  ]);
  expect(parents.forks[0]).toMatchObject({ from: { run, step: 2 }, steps: 2, costUsd: 2 });
  expect(parents.relatives).toEqual([]);
  const forks = await runs.timeline(forkId);
  expect(names(forks.forks)).toEqual([[tail, true]]);
  expect(names(forks.relatives)).toEqual([[run, false]]);
  expect(forks.relatives[0]).toMatchObject({ from: null, finish: "done", costUsd: 2 });
  const tails = await runs.timeline(tail);
  expect(names(tails.relatives)).toEqual([
    [run, false],
    [forkId, false],
  ]);

  // A fork of a run that no longer exists is the oldest of its family.
  await runs.remove(run);
  expect((await runs.timeline(forkId)).relatives).toEqual([]);
  expect(names((await runs.timeline(tail)).relatives)).toEqual([[forkId, false]]);
});

test("a step that a fork inherited has the files of the run that took it", async () => {
  await using station = await createTestStation({ script });
  const { runs } = station.verbs;
  const { run } = await runs.start({ task: "do it", source: { kind: "folder", path: station.folder } });
  await runs.wait(run);
  const steps = async (name: string) =>
    (await runs.timeline(name)).steps.map(({ step, isStored, isInherited }) => [step, isStored, isInherited]);
  await runs.continue(run, { text: "go on", by });
  await runs.wait(run);
  // This runtime stores files between turns.
  const own = [
    [1, false, false],
    [2, true, false],
    [3, false, false],
    [4, false, false],
  ];
  expect(await steps(run)).toEqual(own);
  const forkOf = async (name: string) => (await runs.fork(name, { at: 2, by }))[0]?.run ?? "";
  const fork = await forkOf(run);
  const forkOfFork = await forkOf(fork);
  const inherited = [
    [1, false, true],
    [2, true, true],
  ];
  expect(await steps(fork)).toEqual(inherited);
  expect(await steps(forkOfFork)).toEqual(inherited);
  // The run takes these steps back, and others have their numbers.
  await runs.rewind(run, { to: 0, by });
  await runs.resume(run, { by });
  await runs.wait(run);
  await runs.continue(run, { text: "go on", by });
  await runs.wait(run);
  expect(await steps(run)).toEqual(own);
  expect(await steps(forkOfFork)).toEqual([
    [1, false, true],
    [2, false, true],
  ]);
});
