import { join } from "node:path";
import { expect, test } from "vitest";
import { createSqliteLog } from "../../src/log/sqlite/log.ts";
import { type LoggedEvent, useRunsCli } from "../support/runs-cli.ts";

const cli = useRunsCli();
const STEPS = 2_500;

/** Writes the log of a finished run that repeats a step of a short one. Returns its id and its number of events. */
async function longRun(): Promise<{ run: string; count: number }> {
  const model = await cli.script({ turns: [{ calls: [{ tool: "bash", arguments: { command: "echo hi" } }] }, { say: "Done." }] });
  const { events } = await cli.run(["run", "a long task", "--no-workspace", "--model", model, "--json"]);
  const run = "run_aaaaaaaaaaa2";
  const short = events[0]?.type === "run.created" ? events[0].data.run : "";
  const write = ({ type, version, data }: LoggedEvent) => ({
    type,
    version,
    data: JSON.parse(JSON.stringify(data).replaceAll(short, run)),
  });
  const from = events.findIndex(({ type }) => type === "step.started");
  const to = events.findIndex(({ type }) => type === "tool.ended") + 1;
  const before = events.slice(0, from).map(write);
  const step = events.slice(from, to).map(write);
  const all = [...before, ...Array.from({ length: STEPS }, () => step).flat(), ...events.slice(-1).map(write)];
  await using log = createSqliteLog({ path: join(cli.home(), "log.db") });
  for (let at = 0; at < all.length; at += 1000) await log.append(`run/${run}`, all.slice(at, at + 1000));
  return { run, count: all.length };
}

test("attach abbreviates a long run and counts what it omits, unless --all or --json", async () => {
  const { run, count } = await longRun();
  const steps = (text: string) => text.match(/^step 1$/gm)?.length ?? 0;
  const attached = await cli.run(["attach", run]);
  expect(attached.code, attached.stderr).toBe(0);
  const left = count - 2_001;
  expect(attached.text.split("\n")[1]).toBe("  a long task");
  expect(attached.text.split("\n")[2]).toBe(
    `… ${left.toLocaleString("en")} events are left out; \`caisson attach --all ${run}\` shows them`,
  );
  expect(attached.text).toContain("done after 2 steps");
  expect(steps(attached.text)).toBeLessThan(STEPS / 2);
  expect(steps((await cli.run(["attach", "--all", run])).text)).toBe(STEPS);
  for (const command of [
    ["attach", "--json", run],
    ["logs", "--json", run],
  ])
    expect((await cli.run(command)).events.map(({ seq }) => seq)).toEqual(Array.from({ length: count }, (_, at) => at + 1));
});
