import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { useRunsCli } from "../support/runs-cli.ts";

const cli = useRunsCli();
const ok = async (argv: readonly string[], cwd: string) => {
  const result = await cli.run(argv, { cwd });
  expect(result.code, `${argv.join(" ")}: ${result.stderr}${result.text}`).toBe(0);
  return result;
};
const bash = (command: string) => ({ calls: [{ tool: "bash", arguments: { command } }] });
const turns = [bash("echo one > a.txt; mkdir d; echo x > d/x"), { say: "One." }, bash("echo two > a.txt; rm -r d"), { say: "Two." }];

interface Row {
  run: string;
  status: string;
  steps: number;
  forked: { run: string; step: number } | null;
}

/** Every order in which four things can begin; three of them stand for all. */
const orders = [
  ["fork", "rewind", "apply", "fork"],
  ["rewind", "apply", "fork", "fork"],
  ["apply", "fork", "fork", "rewind"],
] as const;

test.each(orders)("two forks, a rewind and an apply at once: %s, %s, %s, %s", { timeout: 240_000 }, async (...order) => {
  const cwd = await cli.folder({ "a.txt": "zero\n" });
  const model = await cli.script({ turns });
  const { events } = await ok(["run", "first", "--json", "--model", model, "--runtime", "oci"], cwd);
  const run = events[0]?.type === "run.created" ? events[0].data.run : "";
  await ok(["run", `--continue=${run}`, "second"], cwd);
  const diff = async (name: string, ...argv: string[]) => (await ok(["diff", name, "--no-pager", ...argv], cwd)).text;
  // As a diff from the original file, whatever the folder has by then.
  const show = async (name: string) => (await ok(["show", `${name}@2`, "a.txt"], cwd)).text;
  expect(await diff(run)).toContain("+two");
  const argvOf = {
    fork: ["fork", `${run}@4`, "--json"],
    rewind: ["rewind", run, "--to", "2", "--json"],
    apply: ["apply", run, "--json"],
  };
  const ended = await Promise.all(order.map(async (what) => ({ what, ...(await cli.run(argvOf[what], { cwd })) })));
  // Whatever is refused names the other operation, and can be repeated.
  for (const { what, code, text, stderr } of ended.filter((each) => each.code !== 0)) {
    expect([what, code, stderr]).toEqual([what, 125, ""]);
    expect(text).toMatch(/"message":"[^"]*(?:in use|rewound|continued|no step 4)[^"]*","hint":"/);
  }
  const rows = JSON.parse((await ok(["ps", "--all", "--json"], cwd)).text) as Row[];
  const own = rows.filter((row) => row.run === run || row.forked?.run === run);
  const isRewound = ended.some(({ what, code }) => what === "rewind" && code === 0);
  expect(own.find((row) => row.run === run)).toMatchObject(
    isRewound ? { status: "paused: rewound", steps: 2 } : { status: "done", steps: 4 },
  );
  const forks = ended.filter(({ what, code }) => what === "fork" && code === 0).length;
  expect(own).toHaveLength(1 + forks + (isRewound ? 1 : 0));
  // The folder has one whole state, and no run lost its own.
  const applied = readFileSync(join(cwd, "a.txt"), "utf8");
  expect(["zero\n", "one\n", "two\n"]).toContain(applied);
  for (const { run: fork, steps } of own.filter((row) => row.run !== run)) {
    expect(steps).toBe(4);
    expect(await show(fork)).toBe("one\n");
    await ok(["fork", `${fork}@4`], cwd);
  }
  if (!isRewound) await ok(["rewind", run, "--to", "2"], cwd);
  expect(await show(run)).toBe("one\n");
  expect(JSON.parse((await ok(["logs", "--check", "--json"], cwd)).text)).toEqual([]);
  expect(cli.sandboxes()).toEqual([]);
});

test("a rewind during a run interrupts it, and two at once end as one", { timeout: 180_000 }, async () => {
  const cwd = await cli.folder({ "a.txt": "zero\n" });
  const model = await cli.script({ turns: [bash("echo one > a.txt"), bash("echo two > a.txt; sleep 1000"), { say: "Done." }] });
  const going = cli.start(["run", "first", "--json", "--model", model, "--runtime", "oci"], { cwd });
  const { data } = await going.event("run.created");
  await going.event("tool.started", (event) => event.data.call.includes("2."));
  // A step that runs has no end yet.
  const running = await cli.run(["fork", `${data.run}@2`], { cwd });
  expect([running.code, running.stderr]).toEqual([125, expect.stringMatching(/step 2[\s\S]*hint: /)]);
  const tooFar = await cli.run(["rewind", data.run, "--to", "2"], { cwd });
  expect([tooFar.code, tooFar.stderr]).toEqual([125, expect.stringMatching(/step 2[\s\S]*hint: /)]);
  const both = await Promise.all([1, 2].map(() => cli.run(["rewind", data.run, "--to", "1"], { cwd })));
  await going.ended;
  expect(both.map(({ code }) => code).sort()).toEqual([0, 125]);
  expect(both.find(({ code }) => code !== 0)?.stderr).toMatch(/rewound|as it was after step 1/);
  const rows = JSON.parse((await ok(["ps", "--all", "--json"], cwd)).text) as Row[];
  expect(rows.filter((row) => row.run === data.run || row.forked?.run === data.run)).toHaveLength(2);
  expect((await ok(["show", `${data.run}@1`, "a.txt"], cwd)).text).toBe("one\n");
  expect(cli.sandboxes()).toEqual([]);
});
