import { expect, test } from "vitest";
import type { SpecView } from "../../contract/spec-verbs.ts";
import { crashAt } from "../driven/testing.ts";
import { inWaves, keysOf, propose, type SpecsRig, type StandInResult, settled, useSpecs } from "./testing.ts";

const station = useSpecs();
const told = ({ status, phase, version, phases, coverage, attempts, ended }: SpecView) => ({
  ...{ status, phase, version, phases, coverage, text: ended?.text },
  attempts: attempts.map(({ phase: of, attempt, judgement }) => [of, attempt, judgement?.passed, judgement?.score]),
});

/** An agent that writes nonsense so often when it is asked for a design. */
function nonsense(times: number): (task: string) => StandInResult {
  let left = times;
  return (task) => (task.startsWith("Spec phase: design") && left-- > 0 ? { text: "I am done." } : inWaves(task));
}

/** What people say on the way, whoever drives it by then. */
interface Way {
  name: string;
  answer: () => (task: string) => StandInResult;
  gates: ("requirements" | "design")[];
  /** Says the next thing to a spec that waits for a person or has ended; false when there is nothing left to say. */
  say(view: SpecView, to: Pick<SpecsRig, "specs" | "things">): Promise<boolean>;
  /** How many points there are at least. */
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
    async say({ status, spec }, { things }) {
      if (status !== "failed") return false;
      // Not by `execute`, which waits for what one that has died does not begin.
      await things.say(spec, () => [{ type: "driven.reopened", data: { by } }, execution]);
      things.drive(spec);
      return true;
    },
    points: 90,
  },
  {
    name: "a person rejects a phase, and agrees to the next version",
    answer: () => inWaves,
    gates: ["requirements"],
    async say({ asked, spec }, { specs }) {
      if (asked === null) return false;
      await specs.decide(spec, { approved: asked.version > 3, text: "more of it", version: asked.version, by });
      return true;
    },
    points: 90,
  },
];

/** Goes the whole way with one that drives it, however often it has to be told something. */
async function walked(rig: Pick<SpecsRig, "specs" | "things">, spec: string, way: Way): Promise<SpecView> {
  for (;;) {
    const view = await rig.specs.wait(spec);
    if (!(await way.say(view, rig))) return view;
  }
}

test.each(ways)(
  "whatever point its driver dies at, the next one ends it the same, and nothing is run twice: $name",
  {
    timeout: 120_000,
  },
  async (way) => {
    const expected = station({ answer: way.answer() });
    const asked = propose({ gates: way.gates });
    const first = (await expected.specs.create(asked)).spec;
    await expected.specs.execute(first, { by });
    const good = await walked(expected, first, way);
    let last = Number.POSITIVE_INFINITY;
    for (let nth = 1; nth <= last; nth++) {
      const crashpoint = crashAt(nth);
      const one = station({ answer: way.answer(), crashpoint });
      const { spec } = await one.specs.create(asked);
      await one.driver.idle();
      const before = crashpoint.points;
      // It may have died at the first look already.
      await one.things.say(spec, () => [execution]);
      one.things.drive(spec);
      await untilDeathOrEnd(one, spec, way);
      if (crashpoint.points < nth && before < nth) last = nth;
      await one.driver[Symbol.asyncDispose]();
      const two = one.another();
      await two.driver.serve();
      const view = await walked(two, spec, way);
      expect(told(view), `after point ${nth}`).toEqual(told(good));
      expect(keysOf(one.made), `after point ${nth}`).toEqual(keysOf(expected.made));
      expect(one.merged.map(({ sessions }) => sessions)).toEqual(expected.merged.map(({ sessions }) => sessions));
      expect(two.driver.defects).toEqual([]);
    }
    expect(last).toBeGreaterThan(way.points);
  },
);

/** Tells it what is to be told for as long as its driver lives. */
async function untilDeathOrEnd(rig: SpecsRig, spec: string, way: Way): Promise<void> {
  for (;;) {
    await settled(rig, spec);
    if (rig.driver.defects.length > 0) return;
    if (!(await way.say(await rig.specs.get(spec), rig))) return;
  }
}
