import { afterEach, describe, expect, test } from "vitest";
import type { Script } from "../../src/agent/model/scripted-model.ts";
import { useRunsCli } from "../support/runs-cli.ts";
import { bash, reasonOf, strictRuns } from "../support/strict-runs.ts";

const cli = useRunsCli();
afterEach(() => {
  expect(cli.sandboxes(), "sandboxes left behind").toEqual([]);
});

const start = strictRuns(cli);

describe("limits", () => {
  const busy = (n: number) => Array.from({ length: n }, (_, at) => ({ calls: [bash(`echo ${at}`)] }));

  test("nudge and then stop a run in a doom loop", async () => {
    const same = { calls: [bash("false")] };
    const { going } = await start({
      turns: [same, same, same, { ...same, expect: { news: ["is not making progress"] } }, same, same, same, same],
    });
    const done = await going.ended;
    expect(done.code).toBe(1);
    expect(reasonOf(done.events)).toBe("stuck");
    expect(done.events.filter((event) => event.type === "loop.noticed").map((event) => event.data.action)[0]).toBe("nudged");
  });

  test("compact the conversation, but keep the task and the repository's rules", async () => {
    const folder = await cli.folder({ "AGENTS.md": "Rule seven: tabs only.\n" });
    const long = (at: number) => ({ calls: [bash(`echo part ${at}; seq 1 ${700 + at}`)] });
    const script: Script = {
      contextTokens: 4_000,
      summary: "Everything was looked at.",
      turns: [
        long(1),
        long(2),
        long(3),
        long(4),
        { say: "Done.", expect: { contains: ["the task", "Rule seven: tabs only.", "Everything was looked at."], absent: ["part 1"] } },
      ],
    };
    const done = await cli.run(["run", "the task", "--repo", folder, "--model", await cli.script(script), "--json"]);
    expect(done.code, done.text.slice(-1500)).toBe(0);
    expect(done.events.some((event) => event.type === "context.compacted")).toBe(true);
    // The log still has all of it.
    expect(done.events.find((event) => event.type === "tool.ended")).toMatchObject({ data: { text: expect.stringContaining("part 1") } });
  });

  test("end a run at --max-steps", async () => {
    const { going } = await start({ turns: busy(5) }, "--max-steps", "2", "--on-budget", "stop");
    const done = await going.ended;
    expect([done.code, reasonOf(done.events)]).toEqual([1, "max_steps"]);
  });

  test("ask at --max-cost, and the run continues if the answer raises it", async () => {
    const { going, id } = await start(
      { turns: [...busy(3), { say: "Done." }], costUsdPerCall: 1 },
      "--max-cost",
      "2",
      "--on-budget",
      "ask",
    );
    const questionEvent = await going.event("permission.asked");
    expect(questionEvent.data).toMatchObject({ kind: "budget", text: expect.stringContaining("$2") });
    expect((await cli.run(["answer", id, "allow", "--max-cost", "10"])).code).toBe(0);
    const done = await going.ended;
    expect([done.code, reasonOf(done.events)]).toEqual([0, "done"]);
  });

  test("end a command that would never end at --timeout", async () => {
    const { going } = await start({ turns: [{ calls: [bash("echo begun; sleep infinity")] }] }, "--timeout", "2s", "--on-budget", "stop");
    const done = await going.ended;
    expect([done.code, reasonOf(done.events)]).toEqual([124, "timeout"]);
  });
});
