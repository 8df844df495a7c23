import { expect, test } from "vitest";
import type { SpecView } from "../../contract/spec/spec-verbs.ts";
import { crashAt } from "../durable/testing-durable.ts";
import { inWaves, keysOf, propose, type SpecsRig, type StandInResult, settled, useSpecs } from "./testing-specs.ts";

const station = useSpecs();
const summarize = ({ status, phase, version, phases, coverage, attempts, ended }: SpecView) => ({
  ...{ status, phase, version, phases, coverage, text: ended?.text },
  attempts: attempts.map(({ phase: of, attempt, judgement }) => [of, attempt, judgement?.passed, judgement?.score]),
});

/** Returns an agent whose first `times` designs are nonsense. */
function nonsense(times: number): (task: string) => StandInResult {
  let left = times;
  return (task) => (task.startsWith("Spec phase: design") && left-- > 0 ? { text: "I am done." } : inWaves(task));
}

/** A sequence of decisions by people, independent of the driver. */
interface Way {
  name: string;
  answer: () => (task: string) => StandInResult;
  gates: ("requirements" | "design")[];
  /** Makes the next decision for a spec that waits for a person or has ended. Returns false if none is left. */
  say(view: SpecView, to: Pick<SpecsRig, "specs" | "jobs">): Promise<boolean>;
  /** The minimum number of crash points. */
  points: number;
}

const by = "ann";
const execution = { type: "spec.executed", data: { by, from: null, until: "complete" } } as const;
const nothing = async () => false;
const ways: Way[] = [
  { name: "all is well", answer: () => inWaves, gates: [], say: nothing, points: 80 },
  { name: "a phase is nonsense three times: the spec has failed", answer: () => nonsense(3), gates: [], say: nothing, points: 40 },
  {
    name: "a phase is nonsense three times, and somebody resumes it",
    answer: () => nonsense(3),
    gates: [],
    async say({ status, spec }, { jobs }) {
      if (status !== "failed") return false;
      // We cannot use `execute`, which would wait for a dead driver to start the work.
      await jobs.say(spec, () => [{ type: "driven.reopened", data: { by } }, execution]);
      jobs.drive(spec);
      return true;
    },
    points: 90,
  },
  {
    name: "a person rejects a phase, and agrees to the next version",
    answer: () => inWaves,
    gates: ["requirements"],
    async say({ asked: pendingGate, spec }, { specs }) {
      if (pendingGate === null) return false;
      await specs.decide(spec, { approved: pendingGate.version > 3, text: "more of it", version: pendingGate.version, by });
      return true;
    },
    points: 90,
  },
];

/** Lets a live driver finish the spec, with every decision that it needs. */
async function walked(rig: Pick<SpecsRig, "specs" | "jobs">, spec: string, way: Way): Promise<SpecView> {
  for (;;) {
    const view = await rig.specs.wait(spec);
    if (!(await way.say(view, rig))) return view;
  }
}

test.each(ways)(
  "ends the same after a crash at any point, and runs nothing twice: $name",
  {
    timeout: 120_000,
  },
  async (way) => {
    const expected = station({ answer: way.answer() });
    const proposal = propose({ gates: way.gates });
    const first = (await expected.specs.create(proposal)).spec;
    await expected.specs.execute(first, { by });
    const good = await walked(expected, first, way);
    let last = Number.POSITIVE_INFINITY;
    for (let nth = 1; nth <= last; nth++) {
      const crashpoint = crashAt(nth);
      const one = station({ answer: way.answer(), crashpoint });
      const { spec } = await one.specs.create(proposal);
      await one.driver.idle();
      const before = crashpoint.points;
      // The driver may have died at its very first step.
      await one.jobs.say(spec, () => [execution]);
      one.jobs.drive(spec);
      await untilDeathOrEnd(one, spec, way);
      if (crashpoint.points < nth && before < nth) last = nth;
      await one.driver[Symbol.asyncDispose]();
      const two = one.another();
      await two.driver.serve();
      const view = await walked(two, spec, way);
      expect(summarize(view), `after point ${nth}`).toEqual(summarize(good));
      expect(keysOf(one.made), `after point ${nth}`).toEqual(keysOf(expected.made));
      expect(one.merged.map(({ sessions }) => sessions)).toEqual(expected.merged.map(({ sessions }) => sessions));
      expect(two.driver.defects).toEqual([]);
    }
    expect(last).toBeGreaterThan(way.points);
  },
);

/** Makes decisions as long as the driver lives. */
async function untilDeathOrEnd(rig: SpecsRig, spec: string, way: Way): Promise<void> {
  for (;;) {
    await settled(rig, spec);
    if (rig.driver.defects.length > 0) return;
    if (!(await way.say(await rig.specs.get(spec), rig))) return;
  }
}
