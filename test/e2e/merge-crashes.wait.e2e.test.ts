import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import { useRunsCli } from "../support/runs-cli.ts";
import { stationMode } from "../support/station-modes.ts";

const cli = useRunsCli();
const lines = (...all: string[]) => `${all.join("\n")}\n`;
const commands = (...all: string[]) => ({
  turns: [...all.map((command) => ({ calls: [{ tool: "bash", arguments: { command } }] })), { say: "Done." }],
});

async function ok(argv: readonly string[], cwd: string): Promise<string> {
  const { code, text, stderr } = await cli.run(argv, { cwd });
  expect(code, `${argv.join(" ")}: ${stderr}${text}`).toBe(0);
  return text;
}
const json = async <Value>(argv: readonly string[], cwd: string) => JSON.parse(await ok([...argv, "--json"], cwd)) as Value;
const sessionsIn = async (cwd: string) => (await json<{ id: string }[]>(["session", "ls"], cwd)).map(({ id }) => id).sort();
const mergesIn = async (cwd: string) => (await json<{ id: string }[]>(["merge", "ls"], cwd)).map(({ id }) => id);
const mergers = async (cwd: string) =>
  (await json<{ run: string; agent: string }[]>(["ps", "--all"], cwd)).filter(({ agent }) => agent === "merger").length;

/**
 * Returns the crash points of the merge; other tests cover those of the run that resolves the conflict. The log does
 * not change between two events, so the point after one event and the point before the next differ only if something
 * happens in between.
 */
async function pointsIn(list: string): Promise<string[]> {
  const names = (await readFile(list, "utf8")).split("\n").filter((name) => /^(?:merge|driven)\.(?!effect)/.test(name));
  const distinct = names.filter((name) => name.endsWith(":before") || /(?:_started|waiting|driven\.ended):after$/.test(name));
  return [...new Set(distinct)].map((name) => `${name}#1`);
}

// Only without a station: otherwise the test would have to kill the station.
test.runIf(stationMode === "none")(
  "a merge killed before or after any write has the same result, and no leftovers",
  {
    timeout: 1_200_000,
  },
  async () => {
    const folder = await cli.folder({ "a.txt": lines("1", "2", "3", "4", "5", "6", "7", "8", "9") });
    const changes = {
      one: "sed -i 's/^9$/nine/' a.txt; printf 'a\\000b' > bin",
      two: "sed -i 's/^5$/two/' a.txt",
      three: "sed -i 's/^5$/three/' a.txt",
    };
    for (const [session, command] of Object.entries(changes)) {
      const model = await cli.script(commands(command));
      await ok(["run", "do it", "--model", model, "--runtime", "oci", "--session", session], folder);
    }
    const model = await cli.script(
      commands("awk '/^<<<<<<< /{skip=1} !skip{print} /^>>>>>>> /{skip=0; print \"both\"}' a.txt > /tmp/a && cat /tmp/a > a.txt"),
    );
    const merge = (name: string) => ["merge", "one", "two", "three", "--conflicts", "agent", "--model", model, "--name", name];
    const list = join(cli.base(), "points");
    const whole = await cli.run(merge("whole"), { cwd: folder, env: { CAISSON_CRASH_LIST: list } });
    expect(whole.code, whole.stderr).toBe(0);
    const expected = await ok(["diff", "whole"], folder);
    expect(expected).toContain("+both");
    const points = await pointsIn(list);
    expect(points.length).toBeGreaterThan(20);
    expect(points).toEqual(expect.arrayContaining(["merge.step_started:after#1", "merge.step_ended:before#1", "merge.published:before#1"]));
    const known = new Set(await mergesIn(folder));
    // merge-kind.test.ts dies at every event, in a process. Here a process dies, at every fourth.
    const tried = points.filter((_, index) => index % 4 === 0);
    for (const [index, point] of tried.entries()) {
      const name = `m-${index}`;
      const died = await cli.run(merge(name), { cwd: folder, env: { CAISSON_CRASH_AT: point } });
      expect([died.signal, died.stderr], `it does not die at ${point}`).toEqual(["SIGKILL", expect.any(String)]);
      const [id] = (await mergesIn(folder)).filter((each) => !known.has(each));
      if (id === undefined) {
        expect(point).toBe("driven.created:before#1");
        continue;
      }
      known.add(id);
      // Resuming a merge that has ended fails, but then the result exists.
      await cli.run(["merge", "resume", id], { cwd: folder });
      expect(await ok(["diff", name], folder), point).toBe(expected);
    }
    // One agent per conflict despite the crashes, and no temporary session remains.
    expect(await mergers(folder)).toBe(tried.length);
    expect(await sessionsIn(folder)).toEqual(
      ["one", "three", "two", "whole", ...tried.slice(1).map((_, index) => `m-${index + 1}`)].sort(),
    );
    const merges = await json<{ id: string; finish: string }[]>(["merge", "ls"], folder);
    expect(merges.map(({ finish }) => finish)).toEqual(tried.map(() => "completed"));
    expect(cli.sandboxes()).toEqual([]);
    expect(existsSync(join(folder, "bin"))).toBe(false);
  },
);
