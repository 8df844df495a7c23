import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { createTestStation, type TestStation } from "../../../test/support/testing-runs.ts";
import type { ParsedArguments } from "../command.ts";
import type { CliContext } from "../context.ts";
import type { Line } from "../terminal/line.ts";
import { agreesToLose } from "./unapplied-work.ts";

const script = { turns: [{ calls: [{ tool: "write", arguments: { path: "a.txt", content: "new\n" } }] }, { say: "Done." }] };

function commandLine(station: TestStation, typed: string | null) {
  const printedLines: string[] = [];
  const stdin = Object.assign(new PassThrough(), { isTTY: typed !== null });
  const say = async (lines: Line | readonly Line[]) => void printedLines.push(...[lines].flat().map(({ text }) => text));
  const stdout = {
    isTerminal: typed !== null,
    print: say,
    async prompt(question: Line) {
      await say(question);
      stdin.write(`${typed}\n`);
    },
  };
  const interruption = { signal: new AbortController().signal };
  return { said: printedLines, context: { station: station.verbs, stdin, stdout, interruption } as unknown as CliContext };
}
const withFlags = (...flags: string[]) => ({ flag: (name: string) => flags.includes(name) }) as ParsedArguments;

test("lists unapplied files and asks; without a terminal, requires --yes", async () => {
  await using station = await createTestStation({ script, files: { "a.txt": "old\n" } });
  const { runs, sessions } = station.verbs;
  const { run } = await runs.start({ task: "do it", source: { kind: "folder", path: station.folder } });
  await runs.wait(run);
  const loss = `1 file of ${run} was not applied: a.txt`;
  await expect(agreesToLose(commandLine(station, null).context, withFlags(), [run])).rejects.toMatchObject({
    code: "conflict",
    message: loss,
    hint: expect.stringContaining("--yes"),
  });
  expect(await agreesToLose(commandLine(station, null).context, withFlags("yes"), [run])).toBe(true);
  const no = commandLine(station, "");
  expect(await agreesToLose(no.context, withFlags(), [run])).toBe(false);
  expect(no.said[0]).toBe(loss);
  expect(await agreesToLose(commandLine(station, "y").context, withFlags(), [run])).toBe(true);
  await sessions.apply(run);
  expect(await agreesToLose(commandLine(station, null).context, withFlags(), [run])).toBe(true);
});

test("a branch protects changes from loss, unless another run has started since", async () => {
  await using station = await createTestStation({ script, files: { "a.txt": "old\n" } });
  const { runs } = station.verbs;
  const start = { task: "do it", session: { id: "mine" } };
  const { run } = await runs.start({ ...start, source: { kind: "folder", path: station.folder } });
  await runs.wait(run);
  await station.sessions.record("mine", { type: "session.branched", data: { repository: "/r", branch: "b", commit: "c" } });
  expect(await agreesToLose(commandLine(station, null).context, withFlags(), ["mine"])).toBe(true);
  const second = await runs.start(start);
  await runs.wait(second.run);
  await expect(agreesToLose(commandLine(station, null).context, withFlags(), ["mine"])).rejects.toMatchObject({
    message: expect.stringContaining(`mine (${second.run})`),
  });
});
