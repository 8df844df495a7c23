import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { useTerminalCli } from "../../../test/support/cli-context.ts";
import { placeText, priorityFrom, startAtFrom } from "./queue-commands.ts";

const cli = useTerminalCli();

async function model(): Promise<string> {
  const script = join(cli.base(), "script.json");
  await writeFile(script, JSON.stringify({ turns: [{ say: "Done." }] }));
  return `scripted:${script}`;
}

describe("without a station", () => {
  test("rejects a priority or a start time, and explains how to start a station", async () => {
    for (const options of [
      ["--priority", "high"],
      ["--start-at", "2h"],
    ]) {
      const { code, text } = await cli.onTerminal(["run", "go", "--model", await model(), ...options]);
      expect([code, text]).toEqual([125, expect.stringMatching(/no station runs here[\s\S]*caisson up --detach/)]);
    }
    expect(JSON.parse((await cli.onTerminal(["ps", "--all", "--json"])).text)).toEqual([]);
  });

  test("has an empty queue, and adopts no run that has ended", async () => {
    expect((await cli.onTerminal(["queue"])).text).toMatch(/nothing waits/);
    expect(await cli.onTerminal(["run", "go", "--name", "over", "--model", await model()])).toMatchObject({ code: 0 });
    expect((await cli.onTerminal(["prioritize", "over", "high"])).text).toMatch(/has ended/);
    expect((await cli.onTerminal(["adopt", "over"])).text).toMatch(/has ended \(done\)/);
    expect((await cli.onTerminal(["adopt"])).text).toMatch(/name the runs, or use --all/);
    expect((await cli.onTerminal(["adopt", "--all"])).text).toMatch(/no run was interrupted/);
  });
});

test("accepts a priority as a word or a number", () => {
  expect(["low", "normal", "high", "-100", "7"].map((text) => priorityFrom("--priority", text))).toEqual([-50, 0, 50, -100, 7]);
  for (const wrong of ["", "101", "-101", "urgent", "1.5", "toString"])
    expect(() => priorityFrom("--priority", wrong)).toThrow(/is not a priority/);
});

test("accepts a point in time, or a duration from now", () => {
  expect(startAtFrom("2030-01-31T22:00Z")).toBe("2030-01-31T22:00:00.000Z");
  expect(startAtFrom("2030-01-31T22:00+02:00")).toBe("2030-01-31T20:00:00.000Z");
  expect(Date.parse(startAtFrom("2h")) - Date.now()).toBeGreaterThan(7_100_000);
  for (const wrong of ["", "soon", "2030", "1", "2030-13-01"]) expect(() => startAtFrom(wrong)).toThrow(/is not a time/);
});

test("describes a place in the queue in one or two words", () => {
  const place = { why: "", priority: 0, startAt: null, since: "2026-01-01T00:00:00Z" };
  expect(placeText({ status: "queued", queue: { ...place, position: 4, waitsFor: "runs" } })).toBe("queued behind 3");
  expect(placeText({ status: "queued", queue: { ...place, position: 1, waitsFor: "runs" } })).toBe("queued: next");
  expect(placeText({ status: "queued", queue: { ...place, position: null, waitsFor: "resume" } })).toBe("queued: resume");
  expect(placeText({ status: "running", queue: null })).toBe("running");
});
