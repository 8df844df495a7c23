import { describe, expect, test } from "vitest";
import { createTestStation, read, type TestStation, write } from "../../../test/support/testing-runs.ts";
import type { ReplayEvent, ReplayResult, ReplayRunInput } from "../../contract/run/run-replay.ts";

async function replay(station: TestStation, run: string, request: ReplayRunInput = {}) {
  const events: ReplayEvent[] = [];
  for await (const event of station.verbs.runs.replay(run, request)) events.push(event);
  const last = events.at(-1) as { result: ReplayResult };
  const steps = events.flatMap((event) => ("step" in event ? [event.step] : []));
  return { steps, result: last.result };
}

const start = async (station: TestStation) => {
  const { run } = await station.verbs.runs.start({ task: "do it", source: { kind: "folder", path: station.folder } });
  await station.verbs.runs.wait(run);
  return run;
};

describe("a replay with recorded tools", () => {
  test("repeats every event of a run with parallel calls, a todo list and rules", async () => {
    const script = {
      turns: [
        { think: "hm", say: "first", calls: [write("a.txt", "1\n"), read("a.txt"), read("b.txt"), read("AGENTS.md")] },
        {
          calls: [
            { tool: "todo_write", arguments: { todo: [{ id: "1", text: "x", status: "pending" }] } },
            { tool: "nope", arguments: {} },
          ],
        },
        { calls: [{ tool: "edit", arguments: { wrong: true } }] },
        { say: "done" },
      ],
      costUsdPerCall: 0.25,
    };
    await using station = await createTestStation({ script, files: { "AGENTS.md": "Be kind.\n", "b.txt": "b\n" } });
    const run = await start(station);
    expect((await station.events(run)).map(({ type }) => type)).toContain("rules.loaded");
    const { result, steps } = await replay(station, run);
    expect(result).toMatchObject({ isSame: true, difference: null, steps: 4, tools: "recorded", notCompared: [], session: null });
    expect(steps.map(({ step }) => step)).toEqual([1, 2, 3, 4]);
    expect(result.events).toBeGreaterThan(20);
  });
});
