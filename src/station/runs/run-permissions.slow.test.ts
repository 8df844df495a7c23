import { describe, expect, onTestFinished, test } from "vitest";
import { createTestStation, ended, never, write } from "../../../test/support/testing-runs.ts";
import { permissionFloor } from "../../agent/permissions.ts";
import { markTurns } from "../../lib/turns.ts";

test("every tool call starts in the run's turn, even after the first wait", async () => {
  let turns = 0;
  const marks: number[] = [];
  markTurns({ begin: () => void turns++, end: () => {} });
  onTestFinished(() => markTurns(null));
  await using station = await createTestStation({
    script: { turns: [{ calls: [write("a", "x"), write("b", "y")] }, { say: "Done." }] },
    crashpoint: (place) => void (place.startsWith("tool.effect") && marks.push(turns)),
  });
  const run = await station.start({});
  expect((await station.runs.drive(run, { signal: never })).ended?.reason).toBe("done");
  const [first = 0, afterFirst = 0, second = 0, afterSecond = 0] = marks;
  expect([afterFirst > first, second > afterFirst, afterSecond > second]).toEqual([true, true, true]);
});

describe("permissions", () => {
  const rules = { permissions: { "write:secret*": "ask", "write:never*": "deny" } } as const;

  test.each([
    ["its caller", { settings: { permissions: "strict" as const } }],
    ["the agent that hands it work", { agent: "boss" }],
  ])("give a sub-agent the preset of %s, whatever its own rules say", async (_, request) => {
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

  test("report denied calls to the model and accept answers from other processes", async () => {
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
    const question = await station.until(run, "permission.asked");
    expect(question.data.text).toContain("secret.txt");
    await station.second({ pid: 7 }).answer(run, { answer: "allow", by: "somebody" });
    const state = await driven;
    expect(state.ended?.reason).toBe("done");
  });

  test("keep an answer given without a driver for the next holder", async () => {
    await using station = await createTestStation({
      script: { turns: [{ calls: [write("secret.txt", "y")] }, { say: "Done.", expect: { news: ["A person said no: not that"] } }] },
    });
    const run = await station.start({ definition: rules });
    const releaseController = new AbortController();
    const driven = station.runs.drive(run, { signal: releaseController.signal }).catch((error: unknown) => error);
    await station.until(run, "run.paused");
    releaseController.abort();
    expect(await driven).toMatchObject({ code: "cancelled" });
    await station.runs.answer(run, { answer: "deny", by: "me", text: "not that" });
    expect((await station.second().drive(run, { signal: never })).ended?.reason).toBe("done");
  });

  test("apply the answer `always` to the rest of the run", async () => {
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
