import { readdirSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { BestView } from "../../src/contract/best/best-verbs.ts";
import { useRunsCli } from "../support/runs-cli.ts";
import { stationMode } from "../support/station-modes.ts";

const cli = useRunsCli();
const json = async <Value>(argv: readonly string[], cwd: string): Promise<Value> => {
  const { code, text, stderr } = await cli.run([...argv, "--json"], { cwd });
  expect(code, `${argv.join(" ")}: ${stderr}${text}`).toBe(0);
  return JSON.parse(text.trim().split("\n").at(-1) ?? "") as Value;
};

/** The points between two writes of the best-of; other tests cover those of its runs and sessions. */
async function pointsIn(list: string): Promise<string[]> {
  const names = (await readFile(list, "utf8")).split("\n").filter((name) => /^(?:best|driven)\./.test(name));
  return [...new Set(names)].map((name) => `${name}#1`);
}

// Only without a station: otherwise the test would have to kill the station.
test.runIf(stationMode === "none")(
  "a best-of killed at any write promotes the same attempt, with no leftovers",
  { timeout: 1_200_000 },
  async () => {
    const folder = await cli.folder({ "n.txt": "0\n" });
    const models = await Promise.all(
      [1, 2].map((number) =>
        cli.script({ turns: [{ calls: [{ tool: "bash", arguments: { command: `echo ${number} > n.txt` } }] }, { say: "Done." }] }),
      ),
    );
    const argv = ["best", "count", "-n", "2", "--models", models.join(","), "--grade", "grep -q 2 n.txt", "--runtime", "oci"];
    const list = join(cli.base(), "points");
    const whole = await cli.run(argv, { cwd: folder, env: { CAISSON_CRASH_LIST: list } });
    expect(whole.code, whole.stderr).toBe(0);
    const points = await pointsIn(list);
    expect(points).toEqual(expect.arrayContaining(["best.attempted:before#1", "best.effect:before#1", "best.promoted:before#1"]));
    let known = 1;
    for (const point of points.filter((_, index) => index % 3 === 0)) {
      const died = await cli.run(argv, { cwd: folder, env: { CAISSON_CRASH_AT: point } });
      expect(died.signal, `it does not die at ${point}: ${died.stderr}`).toBe("SIGKILL");
      const bests = await json<{ id: string; finish: string | null }[]>(["best", "ls"], folder);
      if (bests.length === known) {
        expect(point).toBe("driven.created:before#1");
        continue;
      }
      known = bests.length;
      const [newest] = bests;
      if (newest?.finish === null) await cli.run(["best", "resume", newest.id], { cwd: folder });
      const view = await json<BestView>(["best", "show", newest?.id ?? ""], folder);
      expect([point, view.finish, view.winner?.attempt, view.text]).toEqual([point, "completed", 2, expect.stringContaining("Attempt 2")]);
      const labelled = await json<{ runs?: unknown[] } | unknown[]>(["ps", "--all", "--label", `best=${view.id}`], folder);
      expect([point, (Array.isArray(labelled) ? labelled : (labelled.runs ?? [])).length]).toEqual([point, 2]);
    }
    // Each best-of left its two runs with their sessions, and nothing else.
    expect(cli.sandboxes()).toEqual([]);
    expect(readdirSync(join(cli.home(), "sessions")).filter((name) => !name.startsWith("run_"))).toEqual([]);
    expect(readdirSync(join(cli.home(), "sessions"))).toHaveLength(2 * known);
  },
);
