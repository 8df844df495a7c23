import { existsSync, readdirSync, readFileSync } from "node:fs";
import { readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { useRunsCli } from "../support/runs-cli.ts";
import { isThroughStation } from "../support/station-modes.ts";

const cli = useRunsCli();
const ok = async (argv: readonly string[], cwd: string) => {
  const result = await cli.run(argv, { cwd });
  expect(result.code, `${argv.join(" ")}: ${result.stderr}${result.text}`).toBe(0);
  return result;
};
const namesIn = (path: string) => (existsSync(path) ? readdirSync(path) : []);

/** Returns what is wrong with the stored layers: half ones, and references that nothing explains. */
function storeProblems(): string[] {
  const home = cli.home();
  const layers = join(home, "layers");
  const wrong = namesIn(join(home, "snapshots")).filter((name) => !existsSync(join(home, "snapshots", name, "snapshot.json")));
  for (const name of namesIn(layers)) {
    const references = namesIn(join(layers, name, "references"));
    if (references.length === 0) wrong.push(`unused: ${name}`);
    for (const file of references) {
      const { holder } = JSON.parse(readFileSync(join(layers, name, "references", file), "utf8")) as { holder: string };
      const folder = join(home, holder);
      const [kind] = file.split("-");
      const machine = existsSync(join(folder, "machine.json")) ? JSON.parse(readFileSync(join(folder, "machine.json"), "utf8")) : {};
      const base = (machine.base ?? []).some(({ id }: { id: string }) => id === name);
      const isUsed = {
        point: () => existsSync(join(folder, "points", name)),
        last: () => machine.last?.id === name,
        base: () => base,
      }[kind ?? ""];
      if (!existsSync(folder) || isUsed?.() === false) wrong.push(`${kind} of ${holder} for ${name}`);
    }
  }
  for (const session of namesIn(join(home, "sessions"))) {
    const file = join(home, "sessions", session, "restore-points.json");
    const { points } = existsSync(file) ? JSON.parse(readFileSync(file, "utf8")) : { points: [] };
    for (const { files } of points)
      if (files.id !== null && !existsSync(join(layers, files.id))) wrong.push(`lost: ${files.id} of ${session}`);
  }
  return wrong;
}

interface Case {
  /** Prepares, and returns what to run. */
  prepare: (cwd: string, made: { run: string; newFork: () => Promise<string> }) => Promise<string[]>;
  /** Whether its repetition may fail, because the first attempt did everything. */
  once?: boolean;
}

const cases: Record<string, Case> = {
  "sandbox snapshot": {
    prepare: async (cwd) => {
      const { text } = await ok(["sandbox", "create", "--runtime", "oci"], cwd);
      await ok(["exec", "--sandbox", text.trim(), "--", "sh", "-c", "echo x > ~/x"], cwd);
      return ["sandbox", "snapshot", text.trim()];
    },
  },
  "snapshot rm": {
    prepare: async (cwd) => {
      const [name = ""] = (await ok(["sandbox", "create", "--runtime", "oci"], cwd)).text.trim().split("\n");
      await ok(["exec", "--sandbox", name, "--", "sh", "-c", "echo x > ~/x"], cwd);
      const { text } = await ok(["sandbox", "snapshot", name], cwd);
      await ok(["sandbox", "rm", name, "--yes"], cwd);
      return ["snapshot", "rm", text.trim()];
    },
    once: true,
  },
  fork: { prepare: async (_, { run }) => ["fork", run] },
  "session fork": { prepare: async (_, { run }) => ["session", "fork", run] },
  "session rm": { prepare: async (_, { newFork }) => ["session", "rm", await newFork(), "--yes"], once: true },
  undo: { prepare: async (_, { newFork }) => ["undo", await newFork()], once: true },
  rewind: { prepare: async (_, { newFork }) => ["rewind", await newFork(), "--to", "3"], once: true },
};

/** Points after which nothing but a trace of the process tells the next command that something is unfinished. */
const SILENT = /^(?:layer\.(?:held|published|collected|merged)|machine\.written|restore\.moved|snapshot\.\w+):after$|^(?:session|point)\./;

test.for(Object.entries(cases))(
  "%s: the next command clears what kill -9 left at any write",
  {
    timeout: 900_000,
  },
  async ([, { prepare, once = false }], { skip }) => {
    skip(isThroughStation, "the process that does the work is killed");
    const cwd = await cli.folder({ "a.txt": "zero\n" });
    const write = (text: string) => ({ calls: [{ tool: "bash", arguments: { command: `echo ${text} >> a.txt; mkdir -p ${text}/d` } }] });
    const model = await cli.script({
      turns: [write("one"), { say: "One." }, write("two"), { say: "Two." }, write("three"), { say: "Three." }],
    });
    const { events } = await ok(["run", "do it", "--json", "--model", model, "--runtime", "oci"], cwd);
    const run = events[0]?.type === "run.created" ? events[0].data.run : "";
    await ok(["run", `--continue=${run}`, "go on"], cwd);
    const diff = async (name: string) => (await ok(["diff", name, "--no-pager"], cwd)).text;
    const whole = await diff(run);
    let later = "";
    /** A separate run for each crash: a fork with another turn. */
    const newFork = async () => {
      const { runs } = JSON.parse((await ok(["fork", run, "--json"], cwd)).text) as { runs: { run: string }[] };
      const fork = runs[0]?.run ?? "";
      await ok(["run", `--continue=${fork}`, "go on"], cwd);
      if (later === "") later = await diff(fork);
      return fork;
    };
    const list = join(cli.base(), `points-${run}`);
    const listed = await cli.run(await prepare(cwd, { run, newFork }), { cwd, env: { CAISSON_CRASH_LIST: list } });
    expect(listed.code, listed.stderr).toBe(0);
    const points = [...new Set((await readFile(list, "utf8")).trimEnd().split("\n"))];
    const silent = points.filter((point) => SILENT.test(point));
    expect(silent.length).toBeGreaterThan(0);
    const wrong: string[] = [];
    for (const point of silent) {
      const argv = await prepare(cwd, { run, newFork });
      const died = await cli.run(argv, { cwd, env: { CAISSON_CRASH_AT: `${point}#1` } });
      if (died.signal !== "SIGKILL") wrong.push(`${point}: it did not die: ${died.stderr}`);
      // The very next look shows all or nothing.
      if (argv[0] === "undo" && ![whole, later].includes(await diff(argv[1] ?? ""))) wrong.push(`${point}: half undone`);
      await ok(["sandbox", "ls"], cwd);
      wrong.push(...storeProblems().map((problem) => `${point}: ${problem}`));
      const again = await cli.run(argv, { cwd });
      if (!once && again.code !== 0) wrong.push(`${point}: again: ${again.stderr}`);
      const leftNotes = namesIn(join(cli.home(), "sessions")).filter((name) => !/^(?:run|ses)_/.test(name));
      if (leftNotes.length > 0) wrong.push(`${point}: left ${leftNotes.join(" ")}`);
    }
    console.log(`${silent.length} of ${points.length} crashes: ${silent.join(" ")}`);
    expect(wrong).toEqual([]);
    expect(await diff(run)).toBe(whole);
    await ok(["sandbox", "rm", "--all", "--yes"], cwd);
    await rm(list);
    expect(JSON.parse((await ok(["logs", "--check", "--json"], cwd)).text)).toEqual([]);
  },
);
